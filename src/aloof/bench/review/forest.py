"""An isolation forest that learns from answers: weights of the nodes that a row passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloof.feedback.paths import Paths

__all__ = ["FeedbackForest"]


class FeedbackForest:
    """Feedback by online optimisation of a linear loss, over the nodes of the trees.

    A row's score is minus the sum of the weights of the nodes on its paths, all 1 at first:
    the isolation forest's own ranking. An anomaly takes `rate` off each weight on its paths, a
    normal row adds it; weights stay at least 0.

    Parameters
    ----------
    X
        Rows to grow the trees with.
    seed
        Of the trees.
    rate
        Of learning.
    """

    def __init__(self, X: NDArray[np.float64], *, seed: int, rate: float = 1.0) -> None:
        self._paths = Paths(X, seed=seed)
        self._weights = np.ones(self._paths.n_nodes)
        self._rate = rate

    def anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how anomalous each row is."""
        return -np.asarray(self._paths(X) @ self._weights)

    def learn(self, row: NDArray[np.float64], label: int) -> None:
        """Take an answer about a row: 1 anomaly, 0 normal."""
        path = np.asarray(self._paths(row[None]).todense())[0]
        step = -self._rate if label else self._rate
        self._weights = np.maximum(self._weights + step * path, 0.0)
