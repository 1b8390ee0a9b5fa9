"""An isolation forest that learns from answers: weights of the nodes that a row passes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import IsolationForest

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
        self._forest = IsolationForest(random_state=seed).fit(X)
        self._weights = np.ones(self._paths(X[:1]).shape[1])
        self._rate = rate

    def anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how anomalous each row is."""
        return -np.asarray(self._paths(X) @ self._weights)

    def learn(self, row: NDArray[np.float64], label: int) -> None:
        """Take an answer about a row: 1 anomaly, 0 normal."""
        path = np.asarray(self._paths(row[None]).todense())[0]
        step = -self._rate if label else self._rate
        self._weights = np.maximum(self._weights + step * path, 0.0)

    def _paths(self, X: NDArray[np.float64]) -> Any:
        rows = X.astype(np.float32)
        trees = self._forest.estimators_
        return sparse.hstack([tree.decision_path(rows) for tree in trees]).tocsr()
