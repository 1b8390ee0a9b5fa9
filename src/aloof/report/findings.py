"""What all scores say together, counted as they come, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloof.calibration import Decision
from aloof.labels import ANOMALY, NORMAL, UNLABELLED

__all__ = ["Findings", "Tally"]

# Scores are float32 numbers; these many of their leading bits tell them apart to 0.05 %.
_BITS = 20
_LABELS = (ANOMALY, NORMAL, UNLABELLED)


@dataclass(frozen=True)
class Findings:
    """What was found among rows or images.

    Attributes
    ----------
    things
        What they are, in the plural.
    decision
        What decided.
    score_values
        The anomaly scores there are, ascending, to 0.05 %.
    score_counts
        By label, how many have each of them.
    p_counts
        By label, how many have each of the p-values there can be; see `Decision.counts`.
    n_flagged
        By label, how many are flagged.
    level
        The anomaly score above which they are flagged; infinite where none can be.
    has_labels
        Whether there are labels to compare with.
    """

    things: str
    decision: Decision
    score_values: NDArray[np.float64]
    score_counts: dict[int, NDArray[np.int64]]
    p_counts: dict[int, NDArray[np.int64]]
    n_flagged: dict[int, int]
    level: float
    has_labels: bool

    @property
    def one(self) -> str:
        """What one of them is."""
        return self.things.removesuffix("s")

    def n(self, *labels: int) -> int:
        """Return how many have one of these labels; without any, how many there are."""
        return sum(int(self.score_counts[label].sum()) for label in labels or _LABELS)

    def n_flagged_of(self, *labels: int) -> int:
        """Return how many with one of these labels are flagged."""
        return sum(self.n_flagged[label] for label in labels or _LABELS)


class Tally:
    """Counts scores as they come."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision
        self._scores = {label: np.zeros(2**_BITS, np.int64) for label in _LABELS}
        self._p = {label: decision.counts(()) for label in _LABELS}
        self._above = dict.fromkeys(_LABELS, 0)

    def add(self, scores: NDArray[np.float64], labels: NDArray[np.int64]) -> None:
        """Count some scores, with the labels 1, 0 and -1."""
        for label in _LABELS:
            of_label = scores[labels == label]
            bins, counts = np.unique(_bin(of_label), return_counts=True)
            self._scores[label][bins] += counts
            self._p[label] += self._decision.counts(of_label)
            self._above[label] += int((of_label > self._decision.least).sum())

    def findings(self, things: str, *, has_labels: bool) -> Findings:
        """Return what all of them say."""
        every = np.sum(list(self._p.values()), 0)
        if self._decision.threshold.fdr is not None:
            n = self._decision.discovered(every)
            self._above = {label: int(counts[:n].sum()) for label, counts in self._p.items()}
        seen = np.flatnonzero(sum(self._scores.values()))
        return Findings(
            things=things,
            decision=self._decision,
            score_values=_middle(seen),
            score_counts={label: counts[seen] for label, counts in self._scores.items()},
            p_counts=self._p,
            n_flagged=self._above,
            level=self._decision.level(every),
            has_labels=has_labels,
        )


def _bin(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the leading bits of the scores, as integers in the order of the scores."""
    bits = scores.astype(np.float32).view(np.uint32)
    negative = bits >> 31 == 1
    ordered = np.where(negative, ~bits, bits | np.uint32(1 << 31))
    return (ordered >> np.uint32(32 - _BITS)).astype(np.int64)


def _middle(bins: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the score in the middle of each bin."""
    ordered = (bins.astype(np.uint32) << np.uint32(32 - _BITS)) | np.uint32(1 << (31 - _BITS))
    negative = ordered >> 31 == 0
    bits = np.where(negative, ~ordered, ordered & np.uint32((1 << 31) - 1))
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)
