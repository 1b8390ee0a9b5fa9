"""The paths of rows through the trees of an isolation forest, as a sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.ensemble import IsolationForest

__all__ = ["Paths"]


class Paths:
    """Trees that isolate rows: the shorter its paths, the stranger a row is.

    Parameters
    ----------
    X
        Rows to grow the trees with.
    seed
        Of the trees.
    """

    def __init__(self, X: NDArray[np.floating], *, seed: int) -> None:
        self._forest = IsolationForest(random_state=seed).fit(X)
        self.n_nodes = sum(tree.tree_.node_count for tree in self._forest.estimators_)

    def __call__(self, X: NDArray[np.floating]) -> Any:
        """Return which nodes each row passes: a sparse matrix ``(n, n_nodes)`` of 0 and 1."""
        rows = np.asarray(X, np.float32)
        parts = [tree.decision_path(rows) for tree in self._forest.estimators_]
        return sparse.hstack(parts).tocsr()
