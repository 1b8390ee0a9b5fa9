"""The RBF kernel of many rows, of which a solver sees one line at a time."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

__all__ = ["KernelLines"]

_BYTES = 500_000_000  # of lines that are kept


class KernelLines:
    """Lines of ``exp(-gamma |x - x'|^2)``, made when asked for; the last ones are kept.

    Parameters
    ----------
    rows
        ``(n, d)``.
    gamma
        The factor.
    """

    def __init__(self, rows: NDArray[np.float64], gamma: float) -> None:
        self._rows, self._gamma = rows, gamma
        self._squares = np.einsum("ij,ij->i", rows, rows)
        self._kept: OrderedDict[int, NDArray[np.float64]] = OrderedDict()
        self._most = max(2, _BYTES // (8 * len(rows)))

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> NDArray[np.float64]:
        """Return a line, ``(n,)``."""
        index = int(index)
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        line: NDArray[np.float64] = self._rows @ self._rows[index]
        line *= -2.0
        line += self._squares
        line += self._squares[index]
        np.maximum(line, 0.0, out=line)
        line *= -self._gamma
        np.exp(line, out=line)
        line[index] = 1.0
        self._kept[index] = line
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return line

    def __matmul__(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the lines, each times its weight, ``(n,)``."""
        total = np.zeros(len(self))
        for index in map(int, np.flatnonzero(weights)):
            total += weights[index] * self[index]
        return total

    def diagonal(self) -> NDArray[np.float64]:
        """Return what a row has with itself: 1."""
        return np.ones(len(self))
