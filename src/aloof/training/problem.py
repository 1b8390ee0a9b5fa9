"""One (normal data, labelled anomalies) pair, and the members that learn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

from aloof.training.objective import Objective

__all__ = ["Problem"]

_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
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
    objective
        The method and its numbers.
    validation_normal, validation_anomaly
        Rows held out for early stopping.
    rows_per_epoch
        How many normal rows an epoch draws; None: every one once. Problems of different sizes
        are one stack if they draw equally many.
    """

    normal: NDArray[np.int64]
    seeds: Sequence[int]
    objective: Objective = field(default_factory=Objective)
    anomaly: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    validation_normal: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    validation_anomaly: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    rows_per_epoch: int | None = None

    @property
    def uses_anomalies(self) -> bool:
        """Whether any step of the training sees a labelled anomaly."""
        return self.objective.method != "vae" and len(self.anomaly) > 0

    def n_steps(self, batch_size: int) -> int:
        """Return the steps of an epoch."""
        return ceil(self._n_drawn / batch_size)

    def n_rows(self, batch_size: int) -> int:
        """Return the rows of a batch: an epoch is split into equal batches.

        1,000 rows in batches of at most 128 are 8 batches of 125, so no batch is a small
        remainder and no row is left out.
        """
        return ceil(self._n_drawn / self.n_steps(batch_size))

    @property
    def _n_drawn(self) -> int:
        return len(self.normal) if self.rows_per_epoch is None else self.rows_per_epoch

    def shape(self, batch_size: int) -> tuple[object, ...]:
        """Return what the problems of one stack must have in common."""
        return (
            self.n_steps(batch_size),
            self.n_rows(batch_size),
            self.uses_anomalies,
            len(self.validation_normal),
            len(self.validation_anomaly),
            self.objective.kind,
        )
