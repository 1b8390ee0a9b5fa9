"""Hybrids: a shallow method on the features of a converged autoencoder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from aloof.baselines.autoencoder import Autoencoder
from aloof.baselines.contract import Baseline, NetworkBaseline
from aloof.labels import ANOMALY
from aloof.training.seeds import Stream, derive

__all__ = ["Hybrid"]


@dataclass(kw_only=True, repr=False, eq=False)
class Hybrid(NetworkBaseline):
    """A shallow baseline on the codes of an autoencoder.

    The autoencoder is trained on the rows not labelled as anomalies, its codes are
    standardised, and `detector` is fitted to them, with the labels if it uses labels.

    Parameters
    ----------
    detector
        The shallow method. A clone of it is fitted, with a seed derived from
        `random_state`.

    Attributes
    ----------
    autoencoder_, detector_
        The fitted parts.

    Notes
    -----
    The other parameters are those of `aloof.baselines.autoencoder.Autoencoder`.
    """

    detector: Baseline
    learning_rate: float = 1e-3
    weight_decay: float = 5e-4

    @property
    def uses_labels(self) -> bool:
        """Whether `detector` does."""
        return self.detector.uses_labels

    def features(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standardised codes of the fitted autoencoder, ``(n, hidden[-1])``."""
        codes: NDArray[np.float64] = self._scaler.transform(self.autoencoder_.encode(X))
        return codes

    def _check_labels(self, labels: NDArray[np.int64]) -> None:
        """Leave that to `detector`."""

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        self.autoencoder_ = Autoencoder(
            hidden=self.hidden,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            random_state=derive(seed, Stream.MEMBER, 0),
        ).fit(X, labels)
        self._scaler = StandardScaler().fit(self.autoencoder_.encode(X[labels != ANOMALY]))
        detector: Baseline = clone(self.detector)
        detector.set_params(random_state=derive(seed, Stream.MEMBER, 1))
        self.detector_ = detector.fit(self.features(X), labels)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.detector_.anomaly_score(self.features(X))
