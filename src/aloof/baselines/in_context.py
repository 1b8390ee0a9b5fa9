"""TabPFN and TabICL of today: their own packages, with weights that are already here."""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from aloof.baselines.contract import LabelUse, SubsampledBaseline, numpy_seed
from aloof.baselines.optional import needed
from aloof.baselines.weights import WEIGHTS, find_weights
from aloof.estimators._parameters import Check
from aloof.labels import ANOMALY
from aloof.training import resolve_device

__all__ = ["TabICL", "TabPFN"]

_NAMES = ("*.safetensors", "*.ckpt")


@dataclass(kw_only=True, repr=False, eq=False)
class _InContext(SubsampledBaseline):
    """A table as the context of a network that was trained on others.

    Parameters
    ----------
    weights
        The file. None: the only ``.safetensors`` or ``.ckpt`` file in the folder of
        ``ALOOF_DATA`` that is called ``tabpfn`` or ``tabicl``, as the package.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"mps"``.
    """

    weights: str | os.PathLike[str] | None = None
    max_rows: int | None = 10_000
    device: str = "auto"

    label_use: ClassVar[LabelUse] = "required"
    needs_weights: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {"weights": WEIGHTS}

    # Where they are published, and under which terms.
    _origin: ClassVar[str]

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        name = type(self).__name__
        package = needed(name.lower(), name, "in-context")
        path = find_weights(self.weights, name, name.lower(), _NAMES, self._origin)
        rows = self.drawn_with_anomalies(labels, seed)
        device = str(resolve_device(self.device))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model = self._classifier(package, path, device, numpy_seed(seed) >> 1)
            self._model.fit(X[rows], (labels[rows] == ANOMALY).astype(np.int64))

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.floating]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores: NDArray[np.floating] = self._model.predict_proba(X)[:, 1]
        return scores

    @abstractmethod
    def _classifier(self, package: Any, path: Path, device: str, seed: int) -> Any:
        """Return the package's classifier, with the weights of a file that is there."""


@dataclass(kw_only=True, repr=False, eq=False)
class TabPFN(_InContext):
    """TabPFN as its makers ship it today; the score is the probability of an anomaly.

    Needs ``pip install aloof[in-context]`` and weights, which are never downloaded. Labelled
    anomalies are one class, everything else is the other.

    References
    ----------
    Hollmann et al., "Accurate predictions on small data with a tabular foundation model",
    Nature 2025.
    """

    _origin: ClassVar[str] = (
        "Prior Labs publishes them on Hugging Face; mind the licence, not every use is free."
    )

    def _classifier(self, package: Any, path: Path, device: str, seed: int) -> Any:
        return package.TabPFNClassifier(
            model_path=str(path),
            device=device,
            random_state=seed,
            ignore_pretraining_limits=True,
        )


@dataclass(kw_only=True, repr=False, eq=False)
class TabICL(_InContext):
    """TabICL as its makers ship it today; the score is the probability of an anomaly.

    Needs ``pip install aloof[in-context]`` and weights, which are never downloaded. Labelled
    anomalies are one class, everything else is the other.

    References
    ----------
    Qu et al., "TabICL: A Tabular Foundation Model for In-Context Learning on Large Data",
    ICML 2025.
    """

    _origin: ClassVar[str] = (
        "Its authors publish them on Hugging Face, such as tabicl-classifier-v2-20260212.ckpt."
    )

    def _classifier(self, package: Any, path: Path, device: str, seed: int) -> Any:
        return package.TabICLClassifier(
            model_path=str(path), allow_auto_download=False, device=device, random_state=seed
        )
