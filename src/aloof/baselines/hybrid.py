"""Hybrids: a shallow method on the features of a converged autoencoder."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from aloof.baselines.autoencoder import Autoencoder
from aloof.baselines.contract import Baseline
from aloof.baselines.members import Fitted
from aloof.labels import ANOMALY, with_gaps
from aloof.training import Stream, derive

__all__ = ["CodeDetectors", "Encoder", "Hybrid"]


class Encoder(Protocol):
    """What codes come from: trained members of `Autoencoder`, or what stands in for them."""

    def encode(self, X: NDArray[Any], /) -> NDArray[np.float64]:
        """Return each member's codes of rows, ``(members, n, size)``."""
        ...


class CodeDetectors:
    """A shallow method on the standardised codes of each member of an autoencoder.

    Parameters
    ----------
    detector
        The shallow method; clones of it are fitted.
    autoencoder
        Has the codes.
    X, labels
        Rows of any shape; 1 anomaly, 0 normal, -1 unlabelled.
    seed
        Of the detectors.

    Attributes
    ----------
    detectors
        Fitted, one for each member.
    """

    def __init__(
        self,
        detector: Baseline,
        autoencoder: Encoder,
        X: NDArray[Any],
        labels: NDArray[np.int64],
        seed: int,
    ) -> None:
        self._autoencoder = autoencoder
        rows = detector.drawn_with_anomalies(labels, seed)
        codes, labels = autoencoder.encode(X[rows]), labels[rows]
        given = with_gaps(labels)
        self._scalers = [StandardScaler().fit(own[labels != ANOMALY]) for own in codes]
        self.detectors: list[Baseline] = [
            clone(detector).set_params(random_state=seed).fit(scaler.transform(own), given)
            for scaler, own in zip(self._scalers, codes, strict=True)
        ]

    def features(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's standardised codes, ``(members, n, size)``."""
        codes = zip(self._scalers, self._autoencoder.encode(X), strict=True)
        return np.stack([scaler.transform(own) for scaler, own in codes])

    def score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's scores ``(members, n)``; higher is worse."""
        codes = zip(self.detectors, self.features(X), strict=True)
        return np.stack([detector.anomaly_score(own) for detector, own in codes])


@dataclass(kw_only=True, repr=False, eq=False)
class Hybrid(Autoencoder):
    """A shallow baseline on the codes of an autoencoder.

    The autoencoder is trained on the rows not labelled as anomalies, its codes are
    standardised, and `detector` is fitted to them, with the labels if it uses labels.

    Parameters
    ----------
    detector
        The shallow method. A clone of it is fitted to the codes of each member, with a seed
        derived from `random_state`.

    Attributes
    ----------
    autoencoder_, detectors_
        The fitted parts.

    Notes
    -----
    The other parameters are those of `aloof.baselines.autoencoder.Autoencoder`.
    """

    detector: Baseline
    learning_rate: float = 1e-3

    @property
    def uses_labels(self) -> bool:
        """Whether `detector` does."""
        return self.detector.uses_labels

    def fit_problems(self, *args: Any, **options: Any) -> list[Fitted]:
        """Say what to do instead: a hybrid is not a network."""
        raise TypeError(
            "A hybrid cannot be trained as a stack. Fit the Autoencoder on all problems, and "
            "CodeDetectors on the codes of each."
        )

    def _check_labels(self, labels: NDArray[np.int64]) -> None:
        """Leave that to `detector`."""

    def _fit(self, X: NDArray[Any], labels: NDArray[np.int64], seed: int) -> None:
        autoencoder = self._autoencoder(seed).fit(X, with_gaps(labels))
        self._detect(autoencoder, X, labels, seed)

    def _autoencoder(self, seed: int) -> Autoencoder:
        """Return the autoencoder to train."""
        own = {f.name: getattr(self, f.name) for f in fields(Autoencoder) if f.init}
        return Autoencoder(**{**own, "random_state": derive(seed, Stream.MEMBER, 0)})

    def _detect(
        self, autoencoder: Autoencoder, X: NDArray[Any], labels: NDArray[np.int64], seed: int
    ) -> None:
        """Take a trained autoencoder, and fit the detectors to its codes."""
        self.autoencoder_ = autoencoder
        self.fitted_, self.device_ = autoencoder.fitted_, autoencoder.device_
        self.detectors_ = CodeDetectors(
            self.detector, self.fitted_, X, labels, derive(seed, Stream.MEMBER, 1)
        )

    def _anomaly_score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = self.detectors_.score(X).mean(0)
        return scores
