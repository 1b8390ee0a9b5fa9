"""What is done to columns before networks see them, as state that is a few arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

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

_ROWS = 1024  # that are looked up at once


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
        return cls(knots, Standardizer.fit(_Ranks.among(knots).normal_quantiles(X)))

    def transform(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return scaled rows in float64."""
        return self.standard.transform(self._ranks.normal_quantiles(X))

    def inverse(self, Z: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return scaled rows in the units of the data."""
        normal = self.standard.inverse(Z)
        at = _quantiles(len(self.knots))
        columns = [
            np.interp(normal[:, j], at, self.knots[:, j]) for j in range(normal.shape[1])
        ]
        return np.stack(columns, 1)

    @cached_property
    def _ranks(self) -> _Ranks:
        return _Ranks.among(self.knots)


Scaling = Standardizer | RankStandardizer


def _quantiles(n: int) -> NDArray[np.float64]:
    """Return normal quantiles at `n` equal steps."""
    found: NDArray[np.float64] = np.clip(ndtri(np.linspace(0, 1, n)), -REACH, REACH)
    return found


@dataclass(frozen=True)
class _Ranks:
    """Where values lie among the knots of their columns, for all columns at once.

    A search that goes the same way for all values takes a third of the time of one that every
    value makes its own way through.

    Attributes
    ----------
    knots
        Of each column, behind one that nothing is below; in front of some that nothing reaches.
    finite
        The same, with zeros for what is infinite.
    steps, first
        The rank of a knot, and of the first one that equals it.
    slopes
        How fast ranks rise towards the next knot.
    size
        How many there are for each column: a power of two.
    """

    knots: NDArray[np.float64]
    finite: NDArray[np.float64]
    steps: NDArray[np.float64]
    first: NDArray[np.float64]
    slopes: NDArray[np.float64]
    size: int

    @classmethod
    def among(cls, knots: NDArray[np.float64]) -> _Ranks:
        """Prepare the search among knots ``(n_knots, n_features)``, ascending."""
        n, n_features = knots.shape
        size = 2 ** (n + 1).bit_length()
        columns = np.full((n_features, size), np.inf)
        columns[:, 0], columns[:, 1 : n + 1] = -np.inf, knots.T
        steps = np.pad(np.linspace(0, 1, n), (1, size - n - 1), mode="edge")
        again = columns[:, 1:] == columns[:, :-1]
        number = np.where(np.pad(again, ((0, 0), (1, 0))), 0, np.arange(size))
        first = steps[np.maximum.accumulate(number, axis=1)]
        slopes = np.zeros_like(columns)
        with np.errstate(divide="ignore", over="ignore"):
            slopes[:, 1:n] = np.diff(steps[1 : n + 1]) / np.diff(knots.T, axis=1)
        np.minimum(slopes, np.finfo(np.float64).max, out=slopes)
        finite = np.where(np.isfinite(columns), columns, 0.0)
        every = np.broadcast_to(steps, columns.shape)
        return cls(
            columns.ravel(), finite.ravel(), every.ravel(), first.ravel(), slopes.ravel(), size
        )

    def normal_quantiles(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the normal quantile of each value's rank.

        Interpolated from below and from above: a value that several knots share is in the
        middle.
        """
        rows = np.asarray(X, np.float64)
        ranks = np.empty_like(rows)
        start = self.size * np.arange(rows.shape[1])
        for at in range(0, len(rows), _ROWS):
            ranks[at : at + _ROWS] = self._of(rows[at : at + _ROWS], start)
        found: NDArray[np.float64] = np.clip(ndtri(ranks), -REACH, REACH)
        return found

    def _of(self, values: NDArray[np.float64], start: NDArray[np.int64]) -> NDArray[np.float64]:
        below = np.repeat(start[None], len(values), axis=0)  # the last knot not above
        step = self.size // 2
        while step:
            below += step * (self.knots.take(below + step) <= values)
            step //= 2
        above, slope, knot = below + 1, self.slopes.take(below), self.finite.take(below)
        up = slope * (values - knot) + self.steps.take(below)
        down = slope * (self.finite.take(above) - values) - self.steps.take(above)
        at = values == self.knots.take(below)
        np.copyto(up, self.steps.take(below), where=at)
        np.copyto(down, -self.first.take(below), where=at)
        ranks: NDArray[np.float64] = 0.5 * (up - down)
        return ranks
