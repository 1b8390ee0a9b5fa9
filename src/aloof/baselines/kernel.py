"""The RBF kernel: its width, whole or line by line, and functions made of it."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from aloof.estimators._parameters import Check, real

__all__ = [
    "KERNEL_GAMMA",
    "MOST_AT_ONCE",
    "KernelFunction",
    "KernelLines",
    "kernel_width",
    "shared_distances",
    "whole_kernel",
]

_FACTOR, _WORDS = real(0, above=True)
KERNEL_GAMMA: Check = (
    lambda v: (isinstance(v, str) and v == "scale") or _FACTOR(v),
    f"'scale' or {_WORDS}",
)
MOST_AT_ONCE = 11_000
"""Rows whose kernel is made as a whole, a gigabyte at most: one product of matrices."""

_CHUNK = 1024
_BYTES = 500_000_000  # of lines that are kept


def kernel_width(kernel_gamma: float | Literal["scale"], rows: NDArray[np.float64]) -> float:
    """Return the factor in the kernel.

    ``"scale"`` is one over the number of features times their variance.
    """
    if not isinstance(kernel_gamma, str):
        return float(kernel_gamma)
    variance = float(rows.var())
    return 1.0 / (rows.shape[1] * variance) if variance > 0 else 1.0


_Distances = dict[bytes, NDArray[np.float64]]
_DISTANCES: ContextVar[_Distances | None] = ContextVar("distances", default=None)


@contextmanager
def shared_distances() -> Iterator[None]:
    """Measure the distances of rows once, for kernels of many widths on the same rows."""
    token = _DISTANCES.set({})
    try:
        yield
    finally:
        _DISTANCES.reset(token)


def whole_kernel(rows: NDArray[np.float64], gamma: float) -> NDArray[np.float64]:
    """Return the kernel of all rows with each other, ``(n, n)``."""
    known = _DISTANCES.get()
    if known is None:
        kernel: NDArray[np.float64] = rbf_kernel(rows, gamma=gamma)
        return kernel
    key = hashlib.blake2b(np.ascontiguousarray(rows).data).digest()
    if key not in known:
        known.clear()  # those of other rows
        known[key] = euclidean_distances(rows, squared=True)
    kernel = known[key] * -gamma
    return np.exp(kernel, out=kernel)


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """A sum of kernels, one on each row.

    Attributes
    ----------
    rows, weights
        ``(n, d)`` and ``(n,)``.
    gamma
        The factor in the kernel.
    """

    rows: NDArray[np.float64]
    weights: NDArray[np.float64]
    gamma: float

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return its values at rows."""
        values = np.empty(len(X))
        for start in range(0, len(X), _CHUNK):
            part = slice(start, start + _CHUNK)
            values[part] = rbf_kernel(X[part], self.rows, gamma=self.gamma) @ self.weights
        return values


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
