"""Standardisation, as state that is two vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

__all__ = ["Standardizer"]

# A value this many standard deviations away is as far as it gets: its square is still
# finite in float32, and nothing is learned from where beyond it a row lies.
_FARTHEST = 1e6


@dataclass(frozen=True)
class Standardizer:
    """Columns to mean 0 and variance 1; constant columns are only shifted.

    Attributes
    ----------
    mean, scale
        One value for each feature, in the shape of a row.
    limit
        Scaled values are cut off here.
    """

    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    limit: float = _FARTHEST

    @classmethod
    def fit(cls, X: NDArray[np.floating]) -> Standardizer:
        """Learn mean and scale from rows ``(n, *shape)``."""
        scaler = StandardScaler().fit(X.reshape(len(X), -1))
        shape = X.shape[1:]
        return cls(
            scaler.mean_.astype(np.float64).reshape(shape),
            scaler.scale_.astype(np.float64).reshape(shape),
        )

    @classmethod
    def identity(cls, shape: tuple[int, ...]) -> Standardizer:
        """Return the one that changes nothing (but the dtype)."""
        return cls(np.zeros(shape), np.ones(shape), float("inf"))

    def transform(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return standardised rows in float64."""
        with np.errstate(over="ignore"):  # the difference of two huge numbers, clipped next
            scaled = (np.asarray(X, np.float64) - self.mean) / self.scale
        clipped: NDArray[np.float64] = np.clip(scaled, -self.limit, self.limit, out=scaled)
        return clipped

    def inverse(self, Z: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return standardised rows in the units of the data."""
        rows: NDArray[np.float64] = np.asarray(Z, np.float64) * self.scale + self.mean
        return rows
