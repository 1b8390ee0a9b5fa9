"""The isolation forest: rows that few random cuts set apart are anomalies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest as _IsolationForest

from aloof.baselines.contract import Baseline, numpy_seed
from aloof.estimators._parameters import Check, integer
from aloof.labels import ANOMALY

__all__ = ["IsolationForest"]


@dataclass(kw_only=True, repr=False, eq=False)
class IsolationForest(Baseline):
    """scikit-learn's isolation forest with the sizes of its authors.

    Parameters
    ----------
    n_trees
        Trees.
    n_rows_per_tree
        Rows that each tree is grown on, or all there are.
    """

    n_trees: int = 100
    n_rows_per_tree: int = 256

    checks: ClassVar[Mapping[str, Check]] = {
        "n_trees": integer(1),
        "n_rows_per_tree": integer(1),
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        normal = X[labels != ANOMALY]
        self._model = _IsolationForest(
            n_estimators=self.n_trees,
            max_samples=min(self.n_rows_per_tree, len(normal)),
            random_state=numpy_seed(seed),
        ).fit(normal)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = -self._model.score_samples(X)
        return scores
