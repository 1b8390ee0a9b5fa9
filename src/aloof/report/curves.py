"""ROC and precision-recall curves from counts of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curves", "curves_from_counts"]


@dataclass(frozen=True)
class Curves:
    """How well scores tell anomalies from normal rows; one point for each threshold.

    Attributes
    ----------
    false_positive_rate, recall, precision
        Share of the normal rows flagged, share of the anomalies flagged, and share of
        anomalies among the rows flagged, from the highest threshold to the lowest.
    auroc, average_precision
        The areas under the ROC and under the precision-recall curve.
    prevalence
        Share of anomalies among all rows: the precision of guessing.
    """

    false_positive_rate: NDArray[np.float64]
    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    auroc: float
    average_precision: float
    prevalence: float


def curves_from_counts(normal: NDArray[np.int64], anomalies: NDArray[np.int64]) -> Curves:
    """Compute the curves.

    Parameters
    ----------
    normal, anomalies
        How many rows of each have the lowest score there is, the next one, and so on. There
        must be some of both.

    Examples
    --------
    >>> import numpy as np
    >>> curves_from_counts(np.array([3, 1, 0]), np.array([0, 1, 1])).auroc
    0.9375
    """
    hits = np.concatenate([[0], np.cumsum(anomalies[::-1])])
    alarms = np.concatenate([[0], np.cumsum(normal[::-1])])
    recall, false_rate = hits / hits[-1], alarms / alarms[-1]
    flagged = hits + alarms
    precision = np.divide(hits, flagged, where=flagged > 0, out=np.ones(len(hits)))
    return Curves(
        false_rate,
        recall,
        precision,
        auroc=round(float(np.diff(false_rate) @ (recall[1:] + recall[:-1]) / 2), 12),
        average_precision=float(np.sum(np.diff(recall) * precision[1:])),
        prevalence=float(hits[-1] / flagged[-1]),
    )
