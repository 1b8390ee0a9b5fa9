"""What is done to columns before networks see them, as state that is a few arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.preprocessing import StandardScaler

__all__ = ["REACH", "RankStandardizer", "Scaling", "Standardizer"]

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


# Quantiles of a column that its ranks are read from, and how far into the tails of the normal
# distribution they reach: a value beyond all of training is no more than an extreme one.
_KNOTS, REACH = 201, 3.5


@dataclass(frozen=True)
class RankStandardizer:
    """Columns to the normal quantiles of their ranks, then to mean 0 and variance 1.

    Heavy tails, units and monotone transformations of a column make no difference. Values that
    many rows share get the middle of their ranks.

    Attributes
    ----------
    knots
        Quantiles of each column at equal steps, ``(n_knots, n_features)``.
    standard
        What standardises the normal quantiles.
    """

    knots: NDArray[np.float64]
    standard: Standardizer

    @classmethod
    def fit(cls, X: NDArray[np.floating]) -> RankStandardizer:
        """Learn quantiles from rows ``(n, n_features)``."""
        steps = np.linspace(0, 1, min(_KNOTS, len(X)))
        knots = np.quantile(np.asarray(X, np.float64), steps, axis=0)
        return cls(knots, Standardizer.fit(_normal_quantiles(knots, X)))

    def transform(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return scaled rows in float64."""
        return self.standard.transform(_normal_quantiles(self.knots, X))

    def inverse(self, Z: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return scaled rows in the units of the data."""
        normal = self.standard.inverse(Z)
        at = _quantiles(len(self.knots))
        columns = [
            np.interp(normal[:, j], at, self.knots[:, j]) for j in range(normal.shape[1])
        ]
        return np.stack(columns, 1)


Scaling = Standardizer | RankStandardizer


def _quantiles(n: int) -> NDArray[np.float64]:
    """Return normal quantiles at `n` equal steps."""
    found: NDArray[np.float64] = np.clip(ndtri(np.linspace(0, 1, n)), -REACH, REACH)
    return found


def _normal_quantiles(
    knots: NDArray[np.float64], X: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the normal quantile of each value's rank.

    Interpolated from below and from above: a value that several knots share is in the middle.
    """
    steps, rows = np.linspace(0, 1, len(knots)), np.asarray(X, np.float64)
    ranks = np.empty_like(rows)
    for j in range(rows.shape[1]):
        up = np.interp(rows[:, j], knots[:, j], steps)
        down = np.interp(-rows[:, j], -knots[::-1, j], -steps[::-1])
        ranks[:, j] = 0.5 * (up - down)
    found: NDArray[np.float64] = np.clip(ndtri(ranks), -REACH, REACH)
    return found
