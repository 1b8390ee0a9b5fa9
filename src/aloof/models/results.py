"""What models say about many things at once: a file that was scored, and what stands out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import AloofError

__all__ = ["Drift", "MostAnomalous", "Progress", "ScoredFile", "highest"]

# Called now and then with how many are done, and how many there are, if that is known.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Drift:
    """One way in which data does not look like what a model learned from.

    Attributes
    ----------
    column
        The column it is about; None: the whole.
    what
        The kind of difference: "gone", "new column", "missing", "unreadable", "unit",
        "values", "new values", "shares", "times" or "flagged".
    words
        What to say, in a line.
    """

    column: str | None
    what: str
    words: str


@dataclass(frozen=True)
class ScoredFile:
    """What `Model.score_file` did.

    Attributes
    ----------
    n_rows
        How many rows or images were scored.
    n_anomalies
        How many of them are flagged: anomalies by the model's threshold, or the highest.
    n_resumed
        How many of them an earlier run had scored.
    skipped
        Files that were left out, and why.
    drift
        In which ways the data does not look like what was learned from.
    remark
        Why nothing is flagged, and what would change it, in words.
    n_suppressed
        How many would be flagged, but are known to be harmless.
    """

    n_rows: int
    n_anomalies: int
    n_resumed: int = 0
    skipped: tuple[tuple[str, str], ...] = ()
    drift: tuple[Drift, ...] = ()
    remark: str = ""
    n_suppressed: int = 0


@dataclass(frozen=True)
class MostAnomalous:
    """The rows or images with the highest scores, and why.

    Attributes
    ----------
    n_rows
        How many there are in all.
    names
        How each of the highest is called, in words.
    rows
        What there is to say about each, as JSON can hold it: its ``anomaly_score``,
        ``p_value`` (None: not calibrated), ``is_anomaly``, and what its kind of model adds.
    remark
        What else to know, in words.
    skipped
        Files that were left out, and why.
    """

    n_rows: int
    names: list[str]
    rows: list[dict[str, Any]]
    remark: str = ""
    skipped: tuple[tuple[str, str], ...] = ()


def highest(scores: NDArray[np.float64], top: int, error: type[AloofError]) -> NDArray[np.intp]:
    """Return where the highest scores are, the highest first, the earlier of equal ones."""
    if top < 1:
        raise error(f"The top must be at least 1; got {top}.")
    return np.argsort(-scores, kind="stable")[:top]
