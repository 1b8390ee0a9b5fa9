"""From anomaly scores to the probability of an anomaly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit

__all__ = ["ProbabilityCurve"]


@dataclass(frozen=True)
class ProbabilityCurve:
    """A logistic curve over anomaly scores, never falling (Platt scaling).

    Scores have a long tail, so that the curve is one of their inverse hyperbolic sine: linear
    around the middle of the normal rows, logarithmic far above.

    Attributes
    ----------
    middle, spread
        Of the scores of normal rows: the median, and how far their upper tenth is from it.
    intercept, slope
        Of the logistic curve.
    """

    middle: float
    spread: float
    intercept: float
    slope: float

    @classmethod
    def fit(cls, normal: ArrayLike, anomalies: ArrayLike) -> Self:
        """Learn the curve from scores of rows that were not used to fit.

        Both have to be there in the shares in which they are to come. As Platt does, each row
        counts as a little less than certain, so that few rows do not make a curve that is.

        Parameters
        ----------
        normal, anomalies
            Anomaly scores of each; at least one.

        Examples
        --------
        >>> curve = ProbabilityCurve.fit(np.arange(90.0), 60 + 50 * np.arange(10.0))
        >>> low, middle, high = curve([20, 110, 500])
        >>> bool(low < 0.05 < 0.2 < middle < 0.9 < high)
        True
        """
        low, high = np.asarray(normal, np.float64), np.asarray(anomalies, np.float64)
        middle = float(np.median(low))
        spread = float(np.quantile(low, 0.9)) - middle or float(np.std(low)) or 1.0
        x = np.arcsinh((np.concatenate([low, high]) - middle) / spread)
        target = np.concatenate(
            [
                np.full(len(low), 1 / (len(low) + 2)),
                np.full(len(high), (len(high) + 1) / (len(high) + 2)),
            ]
        )

        def loss(numbers: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            logit = numbers[0] + numbers[1] * x
            error = expit(logit) - target
            value = np.mean(np.logaddexp(0.0, logit) - target * logit)
            return float(value), np.array([error.mean(), (error * x).mean()])

        share = target.mean()
        start = np.array([np.log(share / (1 - share)), 0.0])
        bounds = [(None, None), (0.0, None)]
        found = minimize(
            loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-12}
        )
        return cls(middle, spread, float(found.x[0]), float(found.x[1]))

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of an anomaly for each score."""
        x = np.arcsinh((np.asarray(scores, np.float64) - self.middle) / self.spread)
        return np.asarray(expit(self.intercept + self.slope * x), np.float64)
