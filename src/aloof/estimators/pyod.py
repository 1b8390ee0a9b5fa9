"""PyOD's names and signs for a fitted detector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from aloof.estimators._base import Detector

__all__ = ["PyODAdapter"]


class PyODAdapter:
    """A fitted detector as PyOD's users expect one: higher is worse, 1 is an anomaly.

    Attributes
    ----------
    decision_scores_
        Anomaly scores of the training rows.
    labels_
        0 or 1 for each training row.
    threshold_
        Scores above it are anomalies.
    contamination
        The share of training rows that was asked for.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.contamination = detector.contamination
        self.decision_scores_: NDArray[np.float64] = detector.training_scores_

    @property
    def threshold_(self) -> float:
        """Return the detector's threshold as it is now."""
        return -self.detector.offset_

    @property
    def labels_(self) -> NDArray[np.int64]:
        """Return the decisions on the training rows."""
        return self._labels(self.decision_scores_)

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return anomaly scores; higher is worse."""
        return self.detector.anomaly_score(X)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return 1 for anomalies and 0 for normal rows."""
        return self._labels(self.decision_function(X))

    def _labels(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        return self.detector.decision_.flag(scores).astype(np.int64)
