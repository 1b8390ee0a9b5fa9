"""How well scores and decisions agree with labels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.metrics import average_precision, check_both, roc_auc

__all__ = ["Evaluation", "evaluate_scores"]

_SURE = 3  # standard errors
_LOW = 0.4  # an AUROC above that may be no more than a model that finds nothing


@dataclass(frozen=True)
class Evaluation:
    """What labels say about scores and decisions. Unlabelled rows have no say.

    Attributes
    ----------
    n_rows, n_anomalies, n_normal, n_unlabelled
        How many rows there are, and how many have which label.
    auroc
        Area under the ROC curve.
    average_precision
        Area under the precision-recall curve.
    threshold
        The rule that decided, in words.
    precision
        Share of anomalies among the labelled rows that were flagged; None if none was.
    recall
        Share of the anomalies that were flagged.
    true_positives, false_positives, true_negatives, false_negatives
        Anomalies flagged, normal rows flagged, normal rows passed, anomalies passed.
    pixel_auroc, pro
        With masks of images: area under the ROC curve of pixels, and the share of each defect
        that is found (`aloof.metrics.region_overlap`). None: there were no masks.
    """

    n_rows: int
    n_anomalies: int
    n_normal: int
    n_unlabelled: int
    auroc: float
    average_precision: float
    threshold: str
    precision: float | None
    recall: float
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    pixel_auroc: float | None = None
    pro: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return asdict(self)

    @property
    def upside_down(self) -> bool:
        """Whether anomalies score lower than normal ones, by more than chance explains."""
        n, m = self.n_anomalies, self.n_normal
        if not n * m or self.auroc > _LOW:
            return False
        by_chance = sqrt((n + m + 1) / (12 * n * m))  # standard error, where all are alike
        return self.auroc < 0.5 - _SURE * by_chance


def evaluate_scores(
    labels: NDArray[np.int64],
    scores: NDArray[np.float64],
    flagged: NDArray[np.bool_],
    *,
    threshold: str,
    things: str = "rows",
) -> Evaluation:
    """Compare anomaly scores and decisions with labels.

    Parameters
    ----------
    labels
        1, 0 and -1.
    scores
        Anomaly scores.
    flagged
        Which rows were called anomalies.
    threshold
        What decided, in words.
    things
        What the scores are of, in the plural.
    """
    check_both(labels, things)
    anomaly, normal = labels == ANOMALY, labels == NORMAL
    hits, alarms = int((flagged & anomaly).sum()), int((flagged & normal).sum())
    return Evaluation(
        n_rows=len(labels),
        n_anomalies=int(anomaly.sum()),
        n_normal=int(normal.sum()),
        n_unlabelled=int((labels == UNLABELLED).sum()),
        auroc=roc_auc(labels, scores),
        average_precision=average_precision(labels, scores),
        threshold=threshold,
        precision=hits / (hits + alarms) if hits + alarms else None,
        recall=hits / int(anomaly.sum()),
        true_positives=hits,
        false_positives=alarms,
        true_negatives=int(normal.sum()) - alarms,
        false_negatives=int(anomaly.sum()) - hits,
    )
