"""Detectors of PyOD behind the contract; they need ``pip install aloof[bench]``."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from aloof.baselines.contract import Baseline, LabelUse, numpy_seed
from aloof.baselines.optional import needed
from aloof.labels import ANOMALY

__all__ = ["ECOD", "XGBOD"]


@dataclass(kw_only=True, repr=False, eq=False)
class _PyOD(Baseline):
    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.floating]:
        with _contained(self.seed_):
            scores: NDArray[np.floating] = self._model.decision_function(X)
        return scores

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        with _contained(seed):
            self._model = self._fitted(X, labels, seed)

    @abstractmethod
    def _fitted(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> Any:
        """Return PyOD's fitted detector."""


@dataclass(kw_only=True, repr=False, eq=False)
class ECOD(_PyOD):
    """PyOD's ECOD: how far out each feature is in its empirical distribution.

    Notes
    -----
    PyOD puts the rows to score together with the training rows before it ranks them. So a
    score depends on the rows it is asked for with; all other baselines' do not.

    References
    ----------
    Li et al., "ECOD: Unsupervised Outlier Detection Using Empirical Cumulative Distribution
    Functions", TKDE 2022.
    """

    def _fitted(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> Any:
        detector = _class("ecod", "ECOD")()
        return detector.fit(X[labels != ANOMALY])


@dataclass(kw_only=True, repr=False, eq=False)
class XGBOD(_PyOD):
    """PyOD's XGBOD: boosted trees on the features and the scores of 41 detectors.

    Unlabelled rows are taken as normal. Slow: the detectors include eleven one-class SVMs on
    all rows, and scoring runs them all.

    References
    ----------
    Zhao and Hryniewicki, "XGBOD: Improving Supervised Outlier Detection with Unsupervised
    Representation Learning", IJCNN 2018.
    """

    label_use: ClassVar[LabelUse] = "required"

    def _fitted(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> Any:
        # XGBoost's seeds are signed.
        detector = _class("xgbod", "XGBOD", "xgboost")(random_state=numpy_seed(seed) >> 1)
        return detector.fit(X, (labels == ANOMALY).astype(np.int64))


def _class(module: str, name: str, *needs: str) -> Any:
    """Import a detector, and before it what PyOD would only print that it misses."""
    for package in ("pyod", *needs):
        needed(package, name)
    return getattr(import_module(f"pyod.models.{module}"), name)


@contextmanager
def _contained(seed: int) -> Iterator[None]:
    """Silence PyOD's routine warnings, and give it NumPy's global generator for a while."""
    state = np.random.get_state()
    np.random.seed(numpy_seed(seed))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)
