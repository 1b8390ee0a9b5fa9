"""Trees that tell labelled anomalies from everything else."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from aloof.baselines.contract import Baseline, LabelUse, numpy_seed
from aloof.baselines.optional import needed
from aloof.estimators._parameters import BOOLEAN, Check, integer
from aloof.labels import ANOMALY

__all__ = ["ExtraTrees", "GradientBoosting", "LightGBM", "RandomForest"]


@dataclass(kw_only=True, repr=False, eq=False)
class _Forest(Baseline):
    """Trees.

    Parameters
    ----------
    n_trees
        Most trees.
    """

    n_trees: int = 100

    label_use: ClassVar[LabelUse] = "required"
    checks: ClassVar[Mapping[str, Check]] = {"n_trees": integer(1)}

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        self._model = self._classifier(numpy_seed(seed)).fit(X, labels == ANOMALY)

    @abstractmethod
    def _classifier(self, seed: int) -> Any:
        """Return a classifier as scikit-learn has them."""


@dataclass(kw_only=True, repr=False, eq=False)
class _Votes(_Forest):
    """Trees that vote.

    Parameters
    ----------
    balanced
        Whether labelled anomalies weigh as much as all other rows together.
    """

    balanced: bool = False

    checks: ClassVar[Mapping[str, Check]] = {"balanced": BOOLEAN}

    _kind: ClassVar[type[RandomForestClassifier | ExtraTreesClassifier]]

    def _classifier(self, seed: int) -> Any:
        return self._kind(
            n_estimators=self.n_trees, class_weight=_weight(self.balanced), random_state=seed
        )

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._model.predict_proba(X)[:, 1]
        return scores


@dataclass(kw_only=True, repr=False, eq=False)
class RandomForest(_Votes):
    """scikit-learn's random forest; the score is the share of trees' votes."""

    _kind = RandomForestClassifier


@dataclass(kw_only=True, repr=False, eq=False)
class ExtraTrees(_Votes):
    """scikit-learn's extremely randomised trees; the score is the share of their votes."""

    balanced: bool = True

    _kind = ExtraTreesClassifier


@dataclass(kw_only=True, repr=False, eq=False)
class GradientBoosting(_Forest):
    """scikit-learn's histogram gradient boosting; the score is its logit.

    Parameters
    ----------
    learning_rate
        Weight of each tree.
    """

    learning_rate: float = 0.1

    def _classifier(self, seed: int) -> HistGradientBoostingClassifier:
        return HistGradientBoostingClassifier(
            max_iter=self.n_trees, learning_rate=self.learning_rate, random_state=seed
        )

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._model.decision_function(X)
        return scores


@dataclass(kw_only=True, repr=False, eq=False)
class LightGBM(_Forest):
    """LightGBM's boosted trees with its own settings; the score is their logit.

    Needs ``pip install aloof[bench]``.

    Parameters
    ----------
    learning_rate
        Weight of each tree.
    balanced
        Whether labelled anomalies weigh as much as all other rows together.

    References
    ----------
    Ke et al., "LightGBM: A Highly Efficient Gradient Boosting Decision Tree", NeurIPS 2017.
    """

    learning_rate: float = 0.1
    balanced: bool = False

    checks: ClassVar[Mapping[str, Check]] = {"balanced": BOOLEAN}

    def _classifier(self, seed: int) -> Any:
        return needed("lightgbm", "LightGBM").LGBMClassifier(
            n_estimators=self.n_trees,
            learning_rate=self.learning_rate,
            class_weight=_weight(self.balanced),
            random_state=seed >> 1,  # its seeds are signed
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self._model.booster_.predict(X, raw_score=True)
        return scores


def _weight(balanced: bool) -> str | None:
    return "balanced" if balanced else None
