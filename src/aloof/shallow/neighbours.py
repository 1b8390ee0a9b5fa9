"""The distance to the k-th nearest of some normal rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
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
        squared = np.empty(len(X))
        for chunk, distance in self._distances(X, own):
            squared[chunk] = torch.topk(
                torch.from_numpy(distance), self._place + 1, dim=1, largest=False
            ).values[:, -1]
        return np.sqrt(squared)

    def differences(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return how far each row is from its k-th nearest in each feature, squared."""
        number = np.empty(len(X), np.int64)
        for chunk, distance in self._distances(X, None):
            number[chunk] = np.argpartition(distance, self._place, axis=1)[:, self._place]
        found: NDArray[np.float64] = (np.asarray(X, np.float64) - self.rows[number]) ** 2
        return found

    @property
    def _place(self) -> int:
        return min(self.k, len(self.rows)) - 1

    def _distances(
        self, X: NDArray[np.floating], own: NDArray[np.int64] | None
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield some of the rows, and their squared distances to all rows that are kept."""
        norms = (self.rows**2).sum(1)
        padded = np.zeros((_CHUNK, self.rows.shape[1]))
        for start in range(0, len(X), _CHUNK):
            rows = X[start : start + _CHUNK]
            n = len(rows)
            padded[:n], padded[n:] = rows, 0.0
            distance = (padded**2).sum(1)[:, None] - 2 * padded @ self.rows.T + norms
            np.maximum(distance, 0.0, out=distance)
            if own is not None:
                mine = own[start : start + n]
                known = np.flatnonzero(mine >= 0)
                distance[known, mine[known]] = np.inf
            yield slice(start, start + n), distance[:n]
