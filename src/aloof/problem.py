"""One (normal data, labelled anomalies) pair, and the members that learn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Problem"]

_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """What to learn, as rows of an array that all problems of a run share.

    Attributes
    ----------
    normal
        Indices of the rows taken as normal.
    anomaly
        Indices of the labelled anomalies; may be empty.
    seeds
        One seed for each member.
    known
        Which of `normal` are labelled as normal, for methods to which that is more than being
        unlabelled; None: none of them.
    validation_normal, validation_anomaly
        Rows that are held out to choose the epoch; may be empty.
    """

    normal: NDArray[np.int64]
    seeds: Sequence[int]
    anomaly: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    known: NDArray[np.bool_] | None = None
    validation_normal: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    validation_anomaly: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)

    def __post_init__(self) -> None:
        if self.known is not None and len(self.known) != len(self.normal):
            raise ValueError(
                f"known must say for each of the {len(self.normal)} normal rows whether it is "
                f"labelled; it has {len(self.known)} entries."
            )

    def without_anomalies(self) -> Self:
        """Return what is left to a method that does not look at labels."""
        return replace(self, anomaly=self.anomaly[:0], known=None)
