"""A detector of things that are not rows of numbers, with its decisions and its folder."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import Threshold, p_values
from aloof.estimators import Detector
from aloof.exceptions import AloofError
from aloof.persistence import read_model

__all__ = ["Model"]


class Model(ABC):
    """What scores something, and decides.

    Attributes
    ----------
    detector
        What scores rows of numbers. It was calibrated with what was held out, if there was
        enough.
    """

    detector: Detector
    _things: ClassVar[str]  # what is scored, in the plural
    _error: ClassVar[type[AloofError]]

    @property
    def threshold(self) -> Threshold:
        """The rule that decides; see `set_threshold`."""
        return self.detector.threshold_

    @abstractmethod
    def anomaly_score(self, data: Any) -> NDArray[np.float64]:
        """Return how anomalous each row or image is; higher is worse."""

    def p_values(self, data: Any) -> NDArray[np.float64]:
        """Return how likely a normal row or image is to look at least as anomalous as each.

        Needs what was held out to calibrate with; see `docs/decisions.md`.
        """
        return p_values(self._calibration("p-values need"), self.anomaly_score(data))

    def is_anomaly(self, data: Any) -> NDArray[np.bool_]:
        """Return which are anomalies by the present `threshold`."""
        return self.decide(self.anomaly_score(data))

    def decide(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which of those that have these anomaly scores are anomalies.

        With a false discovery rate they are decided together.
        """
        rule = self.threshold
        if rule.fdr is None:
            return scores > -self.detector.offset_
        return rule.flag(scores, self._calibration("a false discovery rate needs"))

    def set_threshold(
        self,
        *,
        share: float | None = None,
        budget: str | None = None,
        fdr: float | None = None,
        value: float | None = None,
    ) -> Self:
        """Choose how many are called anomalies, without fitting again.

        Takes exactly one rule, as `aloof.VAE.set_threshold` does, and returns the model.
        """
        if fdr is not None:
            self._calibration("a false discovery rate needs")
        self.detector.set_threshold(share=share, budget=budget, fdr=fdr, value=value)
        return self

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, which `aloof.load` and the commands read."""

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> Self:
        """Read a model that `save` wrote; `device` is where to score."""
        return cls.from_model(path, read_model(path), device=device)

    @classmethod
    @abstractmethod
    def from_model(
        cls,
        path: str | os.PathLike[str],
        model: tuple[dict[str, Any], dict[str, Tensor]],
        *,
        device: str = "auto",
    ) -> Self:
        """Return the model of what was read from a folder."""

    def _calibration(self, who: str) -> NDArray[np.float64]:
        scores = self.detector.calibration_scores_
        if scores is None:
            raise self._error(
                f"The model was fitted without calibration {self._things}, and {who} them. Fit "
                f"again with calibration=0.2, or with more {self._things}."
            )
        return scores
