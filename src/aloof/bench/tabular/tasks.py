"""A task: a table whose anomalies are known, with their kinds."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from aloof.bench.tabular.protocols import cluster_kinds
from aloof.labels import ANOMALY

__all__ = ["TableTask", "digest", "filled"]


@dataclass(frozen=True, eq=False)
class TableTask:
    """One table, ready to be split.

    Attributes
    ----------
    name
        In records and tables.
    X
        Rows ``(n, n_features)``; missing values are NaN.
    y
        1 anomaly, 0 normal.
    sha256
        Of the data, and of how the task is made from it.
    named_kinds
        Of each row, where the data has them; None: anomalies are clustered.
    notes
        What was done to the data, in words.
    """

    name: str
    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)
    sha256: str
    named_kinds: NDArray[np.str_] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """The kind of each anomaly: named ones if there are several, or clusters."""
        if self.named_kinds is not None:
            anomalous = self.named_kinds[self.y == ANOMALY]
            if len(np.unique(anomalous)) > 1:
                return self.named_kinds
        X, _ = filled(self.X, self.X[:0])
        return cluster_kinds(X, self.y)


def filled(
    X_train: NDArray[np.float64], X_test: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Put the medians of the training rows in the place of missing values.

    A column without a value in any training row becomes 0.

    Examples
    --------
    >>> train, test = filled(np.array([[1.0], [np.nan], [3.0]]), np.array([[np.nan]]))
    >>> train.ravel().tolist(), test.tolist()
    ([1.0, 2.0, 3.0], [[2.0]])
    """
    gaps = np.isnan(X_train)
    if not gaps.any() and not np.isnan(X_test).any():
        return X_train, X_test
    medians = np.array(
        [
            np.median(column[~gap]) if not gap.all() else 0.0
            for column, gap in zip(X_train.T, gaps.T, strict=True)
        ]
    )
    return tuple(np.where(np.isnan(X), medians, X) for X in (X_train, X_test))  # type: ignore[return-value]


def digest(*parts: object) -> str:
    """Return the SHA-256 of what a task was made from."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
