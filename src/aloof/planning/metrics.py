"""How good states are: collisions, coverage of the optimal path, and means with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from aloof.planning.worlds import World, collides

__all__ = ["Estimate", "collision_share", "coverage", "estimate_mean", "estimate_share"]


@dataclass(frozen=True)
class Estimate:
    """A mean over worlds, with its 95 % confidence interval; `n` worlds."""

    value: float
    low: float
    high: float
    n: int


def collision_share(world: World, states: NDArray[np.float64]) -> float:
    """Return the share of states in a wall or outside of the square."""
    return float(collides(world.grid, states[:, :2]).mean())


def coverage(
    world: World, trajectory: NDArray[np.float32], states: NDArray[np.float64]
) -> float:
    """Return the share of an optimal trajectory with a free state within half a cell."""
    free = states[~collides(world.grid, states[:, :2]), :2]
    if not len(free):
        return 0.0
    distance = np.linalg.norm(trajectory[:, None, :2] - free[None], axis=-1).min(1)
    return float((distance <= 0.5 / world.size).mean())


def estimate_mean(values: ArrayLike) -> Estimate:
    """Return a mean with Student's interval."""
    data = np.asarray(values, np.float64)
    mean = float(data.mean()) if len(data) else np.nan
    if len(data) < 2:
        return Estimate(mean, mean, mean, len(data))
    half = stats.t.ppf(0.975, len(data) - 1) * stats.sem(data)
    return Estimate(mean, float(mean - half), float(mean + half), len(data))


def estimate_share(outcomes: ArrayLike) -> Estimate:
    """Return the share of true values with Wilson's interval.

    Examples
    --------
    >>> estimate = estimate_share([True] * 90 + [False] * 10)
    >>> round(estimate.low, 3), round(estimate.high, 3)
    (0.826, 0.945)
    """
    data = np.asarray(outcomes, bool)
    test = stats.binomtest(int(data.sum()), len(data))
    interval = test.proportion_ci(0.95, method="wilson")
    return Estimate(float(data.mean()), float(interval.low), float(interval.high), len(data))
