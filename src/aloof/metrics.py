"""How good a detector is, for scikit-learn's searches and cross-validation.

scikit-learn's own scorers take the greater label for the class that scores high, and what a
detector scores high is normal: ``scoring="roc_auc"`` on labels 0 and 1 is upside down, for
every outlier detector there is. These scorers know which way is up, and which label means
what.

>>> from aloof.metrics import scorer
>>> scorer("roc_auc")
scorer('roc_auc')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.exceptions import LabelError
from aloof.labels import ANOMALY, NORMAL, UNLABELLED, Labels, read_labels

__all__ = [
    "SCORERS",
    "Scorer",
    "average_precision",
    "check_both",
    "hits_at_k",
    "region_overlap",
    "roc_auc",
    "scorer",
]


def check_both(
    labels: NDArray[np.int64], things: str = "rows", *, in_folds: bool = False
) -> None:
    """Raise unless there are labelled anomalies and labelled normal rows.

    Parameters
    ----------
    labels
        1, 0 and -1.
    things
        What they are of, in the plural.
    in_folds
        Whether they may be those of a fold, which somebody else chose.
    """
    anomaly, normal = labels == ANOMALY, labels == NORMAL
    if not anomaly.any() or not normal.any():
        missing = f"{things} labelled as {'normal' if anomaly.any() else 'anomalies'}"
        raise LabelError(
            f"There are no {missing}, but an evaluation needs both kinds: of {len(labels):,} "
            f"{things}, {int(anomaly.sum()):,} are labelled as anomalies and "
            f"{int(normal.sum()):,} as normal. Unlabelled ones do not count. Label known "
            f"anomalies with 1 and known normal {things} with 0."
            + (" If this is a fold, use cv=StratifiedKFold(shuffle=True)." if in_folds else "")
        )


def roc_auc(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """Return the area under the ROC curve.

    Parameters
    ----------
    labels
        1 for anomalies, 0 for normal rows, some of each; -1 does not count.
    scores
        Anomaly scores: higher is worse.

    Examples
    --------
    >>> roc_auc(np.array([0, 0, 1, -1]), np.array([0.1, 0.2, 0.9, 5.0]))
    1.0
    """
    from sklearn.metrics import roc_auc_score

    known = labels != UNLABELLED
    return float(roc_auc_score(labels[known] == ANOMALY, scores[known]))


def average_precision(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """Return the area under the precision-recall curve; parameters as in `roc_auc`."""
    from sklearn.metrics import average_precision_score

    known = labels != UNLABELLED
    return float(average_precision_score(labels[known] == ANOMALY, scores[known]))


def hits_at_k(labels: NDArray[np.int64], scores: NDArray[np.float64], k: int) -> float:
    """Return how many anomalies are among the `k` rows with the highest scores.

    Of rows with equal scores, each is as likely to be among them: the order of the rows does
    not matter. Unlabelled rows do not count.

    Examples
    --------
    >>> hits_at_k(np.array([1, 0, 1, 0]), np.array([0.9, 0.5, 0.5, 0.1]), k=2)
    1.5
    """
    known = labels != UNLABELLED
    anomaly, scores = labels[known] == ANOMALY, scores[known]
    if not 1 <= k <= len(scores):
        raise ValueError(f"k must be from 1 to the {len(scores)} labelled rows; got {k}.")
    level = np.partition(scores, len(scores) - k)[len(scores) - k]
    above, at = scores > level, scores == level
    return float(anomaly[above].sum() + (k - above.sum()) * anomaly[at].mean())


# From labels (both kinds among them), anomaly scores, what was flagged, and k to a number.
_Metric = Callable[
    [NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_] | None, int | None], float
]


def _at_k(share_of: str) -> _Metric:
    def metric(
        labels: NDArray[np.int64], scores: NDArray[np.float64], _: Any, k: int | None
    ) -> float:
        n_anomalies = int((labels == ANOMALY).sum())
        k = n_anomalies if k is None else k
        hits = hits_at_k(labels, scores, k)
        return hits / (k if share_of == "flagged" else n_anomalies)

    return metric


def _of_decisions(name: str) -> _Metric:
    def metric(labels: NDArray[np.int64], _: Any, flagged: Any, __: int | None) -> float:
        from sklearn import metrics

        known = labels != UNLABELLED
        options = {} if "accuracy" in name else {"zero_division": 0.0}
        function = getattr(metrics, f"{name}_score")
        return float(function(labels[known] == ANOMALY, flagged[known], **options))

    return metric


_OF_SCORES: dict[str, _Metric] = {
    "roc_auc": lambda labels, scores, _, __: roc_auc(labels, scores),
    "average_precision": lambda labels, scores, _, __: average_precision(labels, scores),
    "precision_at_k": _at_k("flagged"),
    "recall_at_k": _at_k("anomalies"),
}
_OF_DECISIONS: dict[str, _Metric] = {
    name: _of_decisions(name)
    for name in ("f1", "precision", "recall", "accuracy", "balanced_accuracy")
}


@dataclass(frozen=True, repr=False)
class Scorer:
    """What `scorer` returns: call it with a fitted estimator, rows and labels."""

    name: str
    labels: Labels | None = None
    k: int | None = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        """Return the figure; higher is better."""
        n_rows = len(X) if hasattr(X, "__len__") else X.shape[0]
        convention = _convention(estimator) if self.labels is None else self.labels
        labels = read_labels(y, n_rows, convention, training=False)
        check_both(labels, in_folds=True)
        if self.name in _OF_DECISIONS:
            flagged = np.asarray(estimator.predict(X)) == -1
            return _OF_DECISIONS[self.name](labels, np.empty(0), flagged, None)
        return _OF_SCORES[self.name](labels, _anomaly_score(estimator, X), None, self.k)

    def __repr__(self) -> str:
        more = "".join(
            f", {name}={value!r}"
            for name, value in (("labels", self.labels), ("k", self.k))
            if value is not None
        )
        return f"scorer({self.name!r}{more})"


def scorer(name: str, *, labels: Labels | None = None, k: int | None = None) -> Scorer:
    """Return a scorer for ``cross_val_score``, ``GridSearchCV`` and ``RandomizedSearchCV``.

    It takes the detectors of aloof, pipelines that end with one, and scikit-learn's outlier
    detectors. Rows without a label have no say.

    Parameters
    ----------
    name
        Of the anomaly scores: ``"roc_auc"``, ``"average_precision"``, ``"precision_at_k"``
        (share of anomalies among the `k` worst rows) and ``"recall_at_k"`` (share of the
        anomalies that are among them). Of what `predict` decides at the threshold: ``"f1"``,
        ``"precision"`` and ``"recall"`` of anomalies, ``"accuracy"`` and
        ``"balanced_accuracy"``.
    labels
        Who wrote the labels, as in `aloof.encode_labels`. None: what the detector's own
        parameter `labels` says; without one, 1 is an anomaly and 0 is normal.
    k
        Of the scorers at k; None: as many as there are anomalies.

    Examples
    --------
    >>> from sklearn.ensemble import IsolationForest
    >>> X = np.r_[np.random.default_rng(0).normal(size=(99, 2)), [[9, 9]]]
    >>> y = ["ok"] * 99 + ["fraud"]
    >>> forest = IsolationForest(random_state=0).fit(X)
    >>> scorer("roc_auc", labels={"ok": 0, "fraud": 1})(forest, X, y)
    1.0
    """
    known = {**_OF_SCORES, **_OF_DECISIONS}
    if name not in known:
        raise ValueError(f"There is no scorer {name!r}. Choose from {', '.join(known)}.")
    if k is not None and not name.endswith("_at_k"):
        raise ValueError(f"The scorer {name!r} takes no k.")
    return Scorer(name, labels, k)


SCORERS = {name: Scorer(name) for name in (*_OF_SCORES, *_OF_DECISIONS)}
"""All of them, by name: what ``scoring`` may be where several figures are wanted."""


def _anomaly_score(estimator: Any, X: Any) -> NDArray[np.float64]:
    """Return anomaly scores, whatever it is that gives them."""
    if hasattr(estimator, "anomaly_score"):
        return np.asarray(estimator.anomaly_score(X), np.float64)
    if hasattr(estimator, "score_samples"):  # a pipeline, a search, or of scikit-learn
        return -np.asarray(estimator.score_samples(X), np.float64)
    raise TypeError(
        f"{type(estimator).__name__} has neither anomaly_score nor score_samples; "
        "aloof.metrics only scores outlier detectors."
    )


def _convention(estimator: Any) -> Labels:
    """Return how a detector reads labels, also inside of pipelines and searches."""
    for inside in ("best_estimator_", "estimator"):
        if hasattr(estimator, inside):
            return _convention(getattr(estimator, inside))
    if hasattr(estimator, "steps"):
        return _convention(estimator.steps[-1][1])
    found: Labels = getattr(estimator, "labels", "aloof")
    return found


def region_overlap(
    masks: NDArray[np.bool_], maps: NDArray[np.float64], *, limit: float = 0.3
) -> float:
    """Return how much of each defect is found, on average over few false alarms (PRO).

    The share of each connected defect above a threshold, averaged over defects, as a function
    of the share of other pixels above it, up to `limit`: the area under that curve, from 0 to
    1. A small defect counts as much as a large one.

    Parameters
    ----------
    masks
        ``(n, height, width)``: true where something is bad; somewhere something must be.
    maps
        Anomaly scores of pixels, of the same shape.
    limit
        The largest share of false alarms.

    Examples
    --------
    >>> masks = np.zeros((1, 4, 4), bool)
    >>> masks[0, 1, 1] = True
    >>> round(region_overlap(masks, masks.astype(float)), 6)
    1.0
    """
    from scipy.ndimage import label

    if masks.shape != maps.shape or not masks.any() or masks.all():
        raise ValueError("Masks must have the shape of the maps, and mark some pixels.")
    normal = np.sort(maps[~masks])
    regions = []
    for mask, scores in zip(masks, maps, strict=True):
        parts, n = label(mask, np.ones((3, 3)))
        regions += [np.sort(scores[parts == k]) for k in range(1, n + 1)]
    alarms = np.linspace(0, limit, 301)
    # The threshold at which just so many other pixels are above it.
    places = np.clip(len(normal) - 1 - np.floor(alarms * len(normal)), 0, None).astype(int)
    levels = normal[places]
    found = [1 - np.searchsorted(one, levels, side="right") / len(one) for one in regions]
    curve = np.mean(found, axis=0)
    return float(((curve[1:] + curve[:-1]) / 2).mean())
