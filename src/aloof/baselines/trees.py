"""Trees that tell labelled anomalies from everything else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from aloof.baselines.contract import Baseline, LabelUse, numpy_seed
from aloof.estimators._parameters import Check, integer
from aloof.labels import ANOMALY

__all__ = ["GradientBoosting", "RandomForest"]


@dataclass(kw_only=True, repr=False, eq=False)
class _Forest(Baseline):
    label_use: ClassVar[LabelUse] = "required"

    checks: ClassVar[Mapping[str, Check]] = {
        "n_trees": integer(1),
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        self._model = self._classifier(numpy_seed(seed)).fit(X, labels == ANOMALY)

    @abstractmethod
    def _classifier(self, seed: int) -> Any:
        """Return scikit-learn's classifier."""


@dataclass(kw_only=True, repr=False, eq=False)
class RandomForest(_Forest):
    """scikit-learn's random forest; the score is the share of trees' votes.

    Parameters
    ----------
    n_trees
        Trees.
    """

    n_trees: int = 100

    def _classifier(self, seed: int) -> RandomForestClassifier:
        return RandomForestClassifier(n_estimators=self.n_trees, random_state=seed)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._model.predict_proba(X)[:, 1]
        return scores


@dataclass(kw_only=True, repr=False, eq=False)
class GradientBoosting(_Forest):
    """scikit-learn's histogram gradient boosting; the score is its logit.

    Parameters
    ----------
    n_trees
        Most trees.
    learning_rate
        Weight of each tree.
    """

    n_trees: int = 100
    learning_rate: float = 0.1

    def _classifier(self, seed: int) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(
            max_iter=self.n_trees, learning_rate=self.learning_rate, random_state=seed
        )

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._model.decision_function(X)
        return scores
