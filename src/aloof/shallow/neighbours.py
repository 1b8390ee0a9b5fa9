"""The distance to the k-th nearest of some normal rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.threads import share_out

__all__ = ["NOISE", "Neighbours"]

_CHUNK = 256  # rows at once, the last ones padded: a product may round otherwise

# Features are padded to a multiple of this: otherwise products round by the place of a row.
_WIDTH = 16

# Nearest rows are looked for in groups of every 64th: those of the smallest minima have them.
_GROUPS = 64

# A squared distance that is a smaller share than this of a row's own square is none: rounding.
NOISE = 1e-12


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

        def measure(chunks: Iterable[slice]) -> None:
            for chunk, distance in self._distances(X, own, chunks):
                near = self._candidates(distance)[0]
                squared[chunk] = np.partition(near, self._place, axis=1)[:, self._place]

        share_out(measure, _chunks(len(X)))
        return _rounded(squared, X)

    def explain(
        self, X: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the distances, and how far away the neighbour is in each feature, squared."""
        squared, number = np.empty(len(X)), np.empty(len(X), np.int64)

        def measure(chunks: Iterable[slice]) -> None:
            for chunk, distance in self._distances(X, None, chunks):
                near, groups = self._candidates(distance)
                at = np.argpartition(near, self._place, axis=1)[:, self._place]
                turn, group = np.divmod(at, self._place + 1)
                own = np.arange(len(at))
                number[chunk] = turn * _GROUPS + groups[own, group]
                squared[chunk] = near[own, at]

        share_out(measure, _chunks(len(X)))
        differences: NDArray[np.float64] = (np.asarray(X, np.float64) - self.rows[number]) ** 2
        return _rounded(squared, X), differences

    @property
    def _place(self) -> int:
        return min(self.k, len(self.rows)) - 1

    def _candidates(
        self, distance: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the distances among which the k smallest are, and the groups they are of.

        Both are ``(n, k)`` for the first row of each group, then for the second, and so on.
        """
        grouped = torch.from_numpy(distance).view(len(distance), -1, _GROUPS)
        first = np.argpartition(grouped.amin(1).numpy(), self._place, axis=1)
        first = first[:, : self._place + 1]
        chosen = torch.from_numpy(first).unsqueeze(1).expand(-1, grouped.shape[1], -1)
        return grouped.gather(2, chosen).flatten(1).numpy(), first

    def _distances(
        self,
        X: NDArray[np.floating],
        own: NDArray[np.int64] | None,
        chunks: Iterable[slice],
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield chunks of the rows, and their squared distances to all rows that are kept.

        Behind them are some that are infinite, to make all groups as large.
        """
        norms, (kept, width) = (self.rows**2).sum(1), self.rows.shape
        known = np.zeros((kept + -kept % _GROUPS, width + -width % _WIDTH))
        known[:kept, :width] = self.rows
        padded = np.zeros((_CHUNK, known.shape[1]))
        product = np.empty((_CHUNK, len(known)))
        distance = np.full(product.shape, np.inf)
        measured, turned = distance[:, :kept], torch.from_numpy(known).T
        for chunk in chunks:
            rows = X[chunk]
            n = len(rows)
            padded[:n, :width], padded[n:] = rows, 0.0
            # By torch, whose threads are counted here; NumPy's own would be in the way.
            torch.mm(torch.from_numpy(2 * padded), turned, out=torch.from_numpy(product))
            np.subtract((padded**2).sum(1)[:, None], product[:, :kept], out=measured)
            measured += norms
            if own is not None:
                mine = own[chunk]
                there = np.flatnonzero(mine >= 0)
                distance[there, mine[there]] = np.inf
            yield chunk, distance[:n]


def _chunks(n_rows: int) -> list[slice]:
    return [slice(at, min(at + _CHUNK, n_rows)) for at in range(0, n_rows, _CHUNK)]


def _rounded(squared: NDArray[np.float64], X: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return distances in which nothing is left of the order of summation.

    Rows of round numbers often have the same distance, and then it must be the same.
    """
    sizes = (np.asarray(X, np.float64) ** 2).sum(1)
    found = np.sqrt(np.where(squared <= NOISE * sizes, 0.0, squared))
    return found.astype(np.float32).astype(np.float64)
