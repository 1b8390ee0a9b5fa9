"""What some members learn from: rows, and how an epoch passes over them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from numpy.typing import NDArray

__all__ = ["Task"]

_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """Rows of an array that all tasks of a run share, as one learner wants to see them.

    Attributes
    ----------
    rows
        Indices of the rows that an epoch passes over.
    seeds
        One seed for each member.
    labels
        A number for each of `rows`, which comes with it in a batch; None: there are none.
    extra
        Indices of rows that join some of the batches beside the others; may be empty.
    held_out, held_out_extra
        Rows to stop early by.
    rows_per_epoch
        How many of `rows` an epoch draws; None: every one once.
    setting
        What the learner is told about this task alone. Members of one stack may have different
        ones; what they must have in common is its `kind`.
    kind
        Tasks of one stack are equal in this.
    """

    rows: NDArray[np.int64]
    seeds: Sequence[int]
    labels: NDArray[np.int64] | None = None
    extra: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    held_out: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    held_out_extra: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)
    rows_per_epoch: int | None = None
    setting: object = None
    kind: Hashable = None

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
        return len(self.rows) if self.rows_per_epoch is None else self.rows_per_epoch

    def shape(self, batch_size: int) -> tuple[Hashable, ...]:
        """Return what the tasks of one stack must have in common."""
        return (
            self.n_steps(batch_size),
            self.n_rows(batch_size),
            self.labels is None,
            len(self.extra) > 0,
            len(self.held_out),
            len(self.held_out_extra),
            self.kind,
        )
