r"""The quadratic program of SSAD, solved by sequential minimal optimisation.

With :math:`\beta_i = \alpha_i` for normal rows and :math:`\beta_j = -\alpha_j` for labelled
anomalies, the dual of Goernitz et al. (2013) reads

.. math:: \min_\beta \tfrac12 \beta^T K \beta, \quad \textstyle\sum \beta = 1, \quad
    0 \le \beta_i \le C_i, \quad -C_j \le \beta_j \le 0, \quad
    -\textstyle\sum_j \beta_j \ge \kappa

the one-class SVM's, with coefficients that are negative for anomalies and a mass of at
least :math:`\kappa` on them. Its gradient is :math:`f = K\beta`, the function that scores.
A step moves weight from one row to another, as far as the objective asks for or the limits
allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloof.baselines.kernel import KernelLines

__all__ = ["Solution", "solve"]

_FLAT = 1e-12  # a curvature below this is zero, and so is a remaining mass


@dataclass(frozen=True)
class Solution:
    r"""What `solve` returns.

    Attributes
    ----------
    coefficients
        :math:`\beta`, ``(n,)``.
    rho
        The level of f at the boundary: normal rows with less pay for it.
    margin
        How far below `rho` an anomaly has to be to cost nothing, gamma in the paper.
    violation
        How far from optimal it is: the largest difference of f that a step could still use.
    n_steps
        Steps taken.
    """

    coefficients: NDArray[np.float64]
    rho: float
    margin: float
    violation: float
    n_steps: int


def solve(
    kernel: NDArray[np.float64] | KernelLines,
    is_anomaly: NDArray[np.bool_],
    limits: NDArray[np.float64],
    kappa: float,
    *,
    tolerance: float = 1e-4,
    max_steps: int = 1_000_000,
) -> Solution:
    """Solve the program of this module.

    Parameters
    ----------
    kernel
        Symmetric and positive semi-definite, ``(n, n)``; whole, or line by line.
    is_anomaly
        Which rows are labelled as anomalies, ``(n,)``.
    limits
        The limits C, ``(n,)``.
    kappa
        The least mass on the anomalies; taken as 0 where there are none.
    tolerance
        Stop once `Solution.violation` is below this share of the largest absolute f.
    max_steps
        Stop after so many steps in any case.
    """
    normal, anomalies = np.flatnonzero(~is_anomaly), np.flatnonzero(is_anomaly)
    kappa = kappa if len(anomalies) else 0.0
    beta = np.zeros(len(kernel))
    beta[normal] = _filled(limits[normal], 1.0 + kappa, "normal rows", "1 + kappa")
    beta[anomalies] = -_filled(limits[anomalies], kappa, "anomalies", "kappa")
    slack = 0.0  # the mass on the anomalies beyond kappa
    upper = np.where(is_anomaly, 0.0, limits)
    lower = np.where(is_anomaly, -limits, 0.0)
    # Added to f, these hide rows that cannot take weight, or have none to give.
    no_room = np.where(beta < upper, 0.0, np.inf)
    nothing = np.where(beta > lower, 0.0, -np.inf)
    f = kernel @ beta
    diagonal = kernel.diagonal().copy()
    groups = [group for group in (normal, anomalies) if len(group)]
    violation, steps = np.inf, 0
    while True:
        takers = [group[np.argmin(f[group] + no_room[group])] for group in groups]
        givers = [group[np.argmax(f[group] + nothing[group])] for group in groups]
        best = (0, 0)
        violation = -np.inf
        for a, taker in enumerate(takers):
            for b, giver in enumerate(givers):
                if (a, b) == (1, 0) and slack <= _FLAT:
                    continue  # would take mass off the anomalies that kappa asks for
                gain = f[giver] + nothing[giver] - f[taker] - no_room[taker]
                if gain > violation:
                    violation, best = gain, (a, b)
        if violation <= tolerance * np.abs(f).max() or steps >= max_steps:
            break
        i = takers[best[0]]
        candidates = groups[best[1]]
        # Of all rows that could give to i, the one whose gift lowers the objective most.
        difference = f[candidates] + nothing[candidates] - f[i]
        curvature = diagonal[i] + diagonal[candidates] - 2.0 * kernel[i][candidates]
        np.maximum(curvature, _FLAT, out=curvature)
        worth = np.where(difference > 0, difference, 0.0) ** 2 / curvature
        k = int(np.argmax(worth))
        j = candidates[k]
        step = min(difference[k] / curvature[k], upper[i] - beta[i], beta[j] - lower[j])
        if best == (1, 0):
            step = min(step, slack)
        slack += step * (best[1] - best[0])
        beta[i] += step
        beta[j] -= step
        # A row that is meant to reach its limit shall be there, not a rounding error off.
        for row in (i, j):
            if upper[row] - beta[row] < _FLAT * limits[row]:
                beta[row] = upper[row]
            elif beta[row] - lower[row] < _FLAT * limits[row]:
                beta[row] = lower[row]
            no_room[row] = 0.0 if beta[row] < upper[row] else np.inf
            nothing[row] = 0.0 if beta[row] > lower[row] else -np.inf
        f += step * (kernel[i] - kernel[j])
        steps += 1
    levels = [
        _between(f[giver] + nothing[giver], f[taker] + no_room[taker])
        for giver, taker in zip(givers, takers, strict=True)
    ]
    margin = levels[0] - levels[1] if len(levels) == 2 else 0.0
    return Solution(beta, levels[0], max(0.0, margin), max(0.0, violation), steps)


def _filled(
    limits: NDArray[np.float64], mass: float, owners: str, name: str
) -> NDArray[np.float64]:
    """Give each row its limit, one after the other, until `mass` is used up."""
    before = np.cumsum(limits) - limits
    weights: NDArray[np.float64] = np.clip(mass - before, 0.0, limits)
    if weights.sum() < mass * (1.0 - 1e-9):
        raise ValueError(
            f"The limits of the {owners} add up to {limits.sum():.4g}, less than {name} = "
            f"{mass:.4g}: the program has no solution. Lower kappa or raise the limits."
        )
    return weights


def _between(low: float, high: float) -> float:
    """Return the middle, or the finite one."""
    if not np.isfinite(low):
        return float(high)
    return float(low if not np.isfinite(high) else (low + high) / 2.0)
