"""scikit-learn's own scorers: which of them are right about a detector, and which are not.

A detector's scores are high for normal rows and its decisions are -1 and 1, as those of all
outlier detectors of scikit-learn. The scorers that it has by name know nothing of that: on
labels 0 and 1, ``"roc_auc"`` is upside down, and ``"accuracy"`` counts a normal row that was
called normal (1) as wrong. Nothing that an estimator returns can put that right, and nothing
that it is told says who asks. So the one who asks is looked for: a figure that would be wrong
is refused, and the scorer that is right is named.

How scorers look inside is scikit-learn's own business, the same from 1.6 to 1.9. Where it is
another, a warning says that nothing can be checked, and no figure is refused.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from inspect import signature
from types import FrameType
from typing import Any, Literal

from aloof.exceptions import LabelError, LabelWarning
from aloof.labels import ANOMALY, NORMAL, UNLABELLED, Labels, meanings

__all__ = ["Response", "check_scorer"]

Response = Literal["decision_function", "predict", "predict_proba"]

_HOME = "sklearn.metrics._scorer"
_INSIDE = ("_score_func", "_response_method", "_kwargs")
# What our scorers are called, by the function of scikit-learn.
_OURS = {
    "accuracy_score": "accuracy",
    "average_precision_score": "average_precision",
    "balanced_accuracy_score": "balanced_accuracy",
    "f1_score": "f1",
    "precision_score": "precision",
    "recall_score": "recall",
}


def check_scorer(owner: str, labels: Labels, response: Response) -> None:
    """Raise where a scorer of scikit-learn is about to make a wrong figure of a response.

    Scorers that people make with a function of their own know what they do.

    Parameters
    ----------
    owner
        The detector's class.
    labels
        How it reads labels.
    response
        The method that was called.
    """
    scorers, unknown = _asking(response)
    if unknown:
        warnings.warn(
            "The scorers of this scikit-learn are not known, so that it cannot be said whether "
            f"a figure of {owner} is right. Use scoring=aloof.metrics.scorer('roc_auc').",
            LabelWarning,
            stacklevel=3,
        )
    for scorer in scorers:
        if reason := _wrong(scorer, meanings(labels), response):
            name = getattr(scorer._score_func, "__name__", "?")
            ours = _OURS.get(name, "roc_auc")
            raise LabelError(
                f"scikit-learn's scorer with {name} would be wrong: {reason}. Use "
                f"scoring=aloof.metrics.scorer({ours!r}), which knows what {owner}'s labels "
                "mean."
            )


def _asking(response: Response) -> tuple[list[Any], bool]:
    """Return the scorers with a function of scikit-learn's own that wait for a response.

    Where several are to be computed, one response is for all of them. The second value says
    whether scorers ask that look otherwise than those that are known.
    """
    found: dict[int, Any] = {}
    unknown = False
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_globals.get("__name__") == _HOME:
            caller = frame.f_locals.get("self")
            several = getattr(caller, "_scorers", None)
            scorers: list[Any] = [caller]
            if isinstance(several, dict):
                scorers = list(several.values())
            for scorer in scorers:
                if type(scorer).__module__ != _HOME or hasattr(scorer, "_estimator"):
                    continue  # one of ours or of the user's, or the detector's own `score`
                if not all(hasattr(scorer, name) for name in _INSIDE):
                    unknown = True
                    continue
                methods = scorer._response_method
                wanted = methods if isinstance(methods, str) else next(iter(methods), "")
                home = getattr(scorer._score_func, "__module__", None) or ""
                if wanted == response and home.startswith("sklearn."):
                    found[id(scorer)] = scorer
        frame = frame.f_back
    return list(found.values()), unknown


def _wrong(scorer: Any, mapping: Mapping[Any, int], response: Response) -> str | None:
    """Return why a figure would be wrong; None: it would not."""
    anomalies = [value for value, meaning in mapping.items() if meaning == ANOMALY]
    normal = [value for value, meaning in mapping.items() if meaning == NORMAL]
    if len(anomalies) != 1 or len(normal) != 1:
        return "it needs one label for anomalies and one for normal rows"
    (anomaly,), (ordinary,) = anomalies, normal
    if response == "predict_proba":
        columns = (
            "the columns of predict_proba are normal and anomaly, but the labels are in the "
            "order"
        )
        return None if _greater(anomaly, ordinary) else f"{columns}"
    if response == "predict" and (anomaly, ordinary) != (-1, 1):
        return f"predict returns -1 and 1, but the labels are {anomaly!r} and {ordinary!r}"
    if response == "predict" and UNLABELLED in mapping.values():
        return "it counts unlabelled rows as wrong"
    positive = _positive(scorer)
    if response == "predict":
        if positive in (None, anomaly):
            return None
        return f"it measures label {positive!r}, which means normal"
    if positive is None and _greater(ordinary, anomaly):
        return None
    if positive is None or positive == anomaly:
        label = anomaly if positive is None else positive
        return f"label {label!r} should score high, but normal rows score high"
    return f"it measures label {positive!r}, which does not mean anomaly"


def _positive(scorer: Any) -> Any | None:
    """Return the label that a figure is about; None: it is about all labels alike."""
    known = signature(scorer._score_func).parameters
    if "pos_label" not in known or scorer._kwargs.get("average", "binary") != "binary":
        return None
    return scorer._kwargs.get("pos_label", known["pos_label"].default)


def _greater(a: Any, b: Any) -> bool:
    try:
        return bool(a > b)
    except TypeError:
        return str(a) > str(b)
