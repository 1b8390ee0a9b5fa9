"""The distance to the k-th nearest of some normal rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Neighbours"]

_CHUNK = 256  # rows at once, the last ones padded: a product may round otherwise


@dataclass(frozen=True)
class Neighbours:
    """Rows to measure distances to.

    Attributes
    ----------
    rows
        The rows ``(n, n_features)``.
    k
        Which of the nearest.
    """

    rows: NDArray[np.float64]
    k: int = 5

    def distance(
        self, X: NDArray[np.floating], own: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:
        """Return the distance of each row to its k-th nearest.

        Parameters
        ----------
        X
            Rows.
        own
            For each, which of the rows it is itself, and is not to be counted; -1: none.
        """
        return np.sqrt(self._nearest(X, own)[0])

    def differences(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return how far each row is from its k-th nearest in each feature, squared."""
        number = self._nearest(X, None)[1]
        found: NDArray[np.float64] = (np.asarray(X, np.float64) - self.rows[number]) ** 2
        return found

    def _nearest(
        self, X: NDArray[np.floating], own: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the squared distance to the k-th nearest row, and which it is."""
        norms = (self.rows**2).sum(1)
        squared, number = np.empty(len(X)), np.empty(len(X), np.int64)
        place = min(self.k, len(self.rows)) - 1
        for start in range(0, len(X), _CHUNK):
            rows = np.asarray(X[start : start + _CHUNK], np.float64)
            n = len(rows)
            padded = np.zeros((_CHUNK, rows.shape[1]))
            padded[:n] = rows
            distance = (padded**2).sum(1)[:, None] - 2 * padded @ self.rows.T + norms
            np.maximum(distance, 0.0, out=distance)
            if own is not None:
                mine = own[start : start + n]
                known = np.flatnonzero(mine >= 0)
                distance[known, mine[known]] = np.inf
            order = np.argpartition(distance, place, axis=1)[:n, place]
            number[start : start + n] = order
            squared[start : start + n] = distance[np.arange(n), order]
        return squared, number
