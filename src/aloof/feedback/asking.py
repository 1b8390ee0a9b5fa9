"""Which rows to ask about next: likely anomalies, the strangest, the most informative."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import AnswerError

__all__ = ["DEFAULT_WAY", "WAYS", "Way", "WhichRows", "informativeness", "which_rows"]

Way = Literal["likely", "anomalous", "informative", "mix"]
WAYS: tuple[Way, ...] = get_args(Way)
DEFAULT_WAY: Way = "likely"
# In a mix, every third question is about an informative row.
_EVERY = 3


class WhichRows:
    """Rows in the order to ask about them.

    Attributes
    ----------
    order
        Their places.
    reasons
        Why each is asked about, by place: "likely", "anomalous" or "informative".
    """

    def __init__(self, order: NDArray[np.int64], reasons: list[str]) -> None:
        self.order, self.reasons = order, reasons


def informativeness(
    member_scores: NDArray[np.float64], scores: NDArray[np.float64], level: float
) -> NDArray[np.float64]:
    """Return how much an answer about each row would teach, at most 1.

    The members disagree about where it stands among the rows, and it is close to the
    threshold.

    Parameters
    ----------
    member_scores
        Anomaly scores, ``(members, n)``.
    scores
        Those of the ensemble.
    level
        The anomaly score from which on rows are flagged.
    """
    n = len(scores)
    ranks = np.argsort(np.argsort(member_scores, axis=1), axis=1) / max(1, n - 1)
    spread = ranks.std(axis=0)
    largest = float(spread.max())
    disagreement = spread / largest if largest > 0 else spread
    place = float((scores <= level).mean())
    margin = np.abs(np.argsort(np.argsort(scores)) / max(1, n - 1) - place)
    found: NDArray[np.float64] = disagreement - margin
    return found


def which_rows(
    way: Way,
    scores: NDArray[np.float64],
    member_scores: NDArray[np.float64],
    level: float,
    evidence: NDArray[np.float64] | None = None,
) -> WhichRows:
    """Return rows in the order to ask about them.

    Parameters
    ----------
    way
        "likely": the most evidence for an anomaly first, by the model and by what was
        answered. "anomalous": the highest scores first. "informative": see
        `informativeness`. "mix": two by their scores, then an informative one.
    scores, member_scores, level
        As in `informativeness`; of the rows nobody has answered yet.
    evidence
        See `aloof.feedback.guide.Guide.evidence`; needed for "likely".
    """
    if way not in WAYS:
        raise AnswerError(f"The way of asking is one of {', '.join(WAYS)}; got {way!r}.")
    if way == "likely":
        if evidence is None:
            raise TypeError("which_rows('likely', ...) needs evidence.")
        likeliest = np.argsort(-evidence, kind="stable")
        return WhichRows(likeliest, ["likely"] * len(likeliest))
    first = np.argsort(-scores, kind="stable")
    if way == "anomalous" or not len(scores):
        return WhichRows(first, ["anomalous"] * len(first))
    value = informativeness(member_scores, scores, level)
    second = np.argsort(-value, kind="stable")
    if way == "informative":
        return WhichRows(second, ["informative"] * len(second))
    order: list[int] = []
    reasons = [""] * len(first)
    queues = {"anomalous": iter(first.tolist()), "informative": iter(second.tolist())}
    while len(order) < len(first):
        kind = "informative" if len(order) % _EVERY == _EVERY - 1 else "anomalous"
        place = next(place for place in queues[kind] if not reasons[place])
        reasons[place] = kind
        order.append(place)
    return WhichRows(np.array(order, np.int64), reasons)
