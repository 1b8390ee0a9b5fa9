"""One pass over a table: counts of all rows, and some rows to look at, in bounded memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.calibration import count_p_values, false_discovery_level_from_counts
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.tabular import TableModel
from aloof.tabular.files import joined_table

__all__ = ["Rows", "Survey", "survey"]

# Scores are float32 numbers; these many of their leading bits tell them apart to 0.05 %.
_BITS = 20
# Rows that stand for all others in pictures, and labelled anomalies shown beside them.
_SAMPLE, _SAMPLE_ANOMALIES = 1500, 300
# Rows with the highest scores that are kept, to say which columns flagged rows have in common.
_HIGHEST = 200


@dataclass(frozen=True)
class Rows:
    """Some rows of a table.

    Attributes
    ----------
    table, encoded
        The rows, and as the detector takes them.
    scores, labels, places
        Of each: its anomaly score, its label, and how many rows stand before it.
    """

    table: pa.Table
    encoded: NDArray[np.float32]
    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, which: NDArray[np.intp]) -> Rows:
        """Return the rows at these places, in this order."""
        return Rows(
            self.table.take(pa.array(which)),
            self.encoded[which],
            self.scores[which],
            self.labels[which],
            self.places[which],
        )


@dataclass(frozen=True)
class Survey:
    """What was found in a table.

    Attributes
    ----------
    score_values
        The anomaly scores there are, ascending, to 0.05 %.
    score_counts
        By label, how many rows have each of them.
    p_counts
        By label, how many rows have each of the p-values there can be, see
        `count_p_values`; where the model is not calibrated, all have the p-value 1.
    n_flagged
        By label, how many rows are flagged.
    level
        The anomaly score above which a row of this table is flagged; infinite where none
        can be.
    highest
        The rows with the highest scores, highest first.
    usual
        Rows drawn at random from those that are not labelled as anomalies.
    anomalies
        Rows drawn at random from those that are.
    warnings
        Words about the table.
    has_labels
        Whether the table has the column of labels.
    """

    score_values: NDArray[np.float64]
    score_counts: dict[int, NDArray[np.int64]]
    p_counts: dict[int, NDArray[np.int64]]
    n_flagged: dict[int, int]
    level: float
    highest: Rows
    usual: Rows
    anomalies: Rows
    warnings: tuple[str, ...]
    has_labels: bool

    def n(self, *labels: int) -> int:
        """Return how many rows have one of these labels; without any, how many there are."""
        return sum(int(self.score_counts[label].sum()) for label in labels or _LABELS)

    def n_flagged_of(self, *labels: int) -> int:
        """Return how many rows with one of these labels are flagged."""
        return sum(self.n_flagged[label] for label in labels or _LABELS)


_LABELS = (ANOMALY, NORMAL, UNLABELLED)


def survey(
    model: TableModel,
    batches: Iterable[pa.RecordBatch],
    *,
    top: int,
    seed: int = 0,
    on_rows: Callable[[int], None] | None = None,
) -> Survey:
    """Score a stream of rows and keep what a report needs.

    Parameters
    ----------
    model
        What scores them.
    batches
        The rows.
    top
        How many of the highest rows to keep at least.
    seed
        Decides which rows are drawn.
    on_rows
        Called with the number of rows of each batch, when it is done.
    """
    found = _Found(model, _Lowest(max(top, _HIGHEST)))
    generator = np.random.default_rng(seed)
    for batch in batches:
        found.add(pa.Table.from_batches([batch]), generator)
        if on_rows is not None:
            on_rows(batch.num_rows)
    return found.finish()


@dataclass
class _Found:
    """What is known after some batches."""

    model: TableModel
    highest: _Lowest
    usual: _Lowest = field(default_factory=lambda: _Lowest(_SAMPLE))
    anomalies: _Lowest = field(default_factory=lambda: _Lowest(_SAMPLE_ANOMALIES))
    n_rows: int = 0
    has_labels: bool = False
    remarks: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        detector = self.model.detector
        known = detector.calibration_scores_
        self.calibration = np.empty(0) if known is None else known
        self.fixed = None if self.model.threshold.fdr is not None else -float(detector.offset_)
        self.scores = {label: np.zeros(2**_BITS, np.int64) for label in _LABELS}
        self.p = {label: np.zeros(len(self.calibration) + 1, np.int64) for label in _LABELS}
        self.flagged = dict.fromkeys(_LABELS, 0)

    def add(self, table: pa.Table, generator: np.random.Generator) -> None:
        encoded = self.model.encode(table, warn=self._remark)
        scores = self.model.detector.anomaly_score(encoded)
        labels = self._labels(table)
        places = self.n_rows + np.arange(len(scores))
        self.n_rows += len(scores)
        for label in _LABELS:
            of_label = scores[labels == label]
            bins, counts = np.unique(_bin(of_label), return_counts=True)
            self.scores[label][bins] += counts
            self.p[label] += count_p_values(self.calibration, of_label)
            if self.fixed is not None:
                self.flagged[label] += int((of_label > self.fixed).sum())
        rows = Rows(table, encoded, scores, labels, places)
        ranks = generator.random(len(scores))
        self.highest.add(rows, -scores)
        self.usual.add(rows, np.where(labels == ANOMALY, np.inf, ranks))
        self.anomalies.add(rows, np.where(labels == ANOMALY, ranks, np.inf))

    def finish(self) -> Survey:
        level = self.fixed
        if level is None:
            level = self._discovery_level()
        seen = np.flatnonzero(sum(self.scores.values()))
        return Survey(
            score_values=_middle(seen),
            score_counts={label: counts[seen] for label, counts in self.scores.items()},
            p_counts=self.p,
            n_flagged=self.flagged,
            level=level,
            highest=self.highest.rows(),
            usual=self.usual.rows(),
            anomalies=self.anomalies.rows(),
            warnings=tuple(self.remarks.values()),
            has_labels=self.has_labels,
        )

    def _discovery_level(self) -> float:
        """Decide over all rows together, and return the score that the decision amounts to."""
        n = len(self.calibration)
        target = self.model.threshold.rate
        assert target is not None
        p = false_discovery_level_from_counts(np.sum(list(self.p.values()), 0), target)
        if p is None:
            return np.inf
        n_above = round(p * (n + 1)) - 1  # calibration scores that a discovery may not reach
        self.flagged = {
            label: int(counts[: n_above + 1].sum()) for label, counts in self.p.items()
        }
        return -np.inf if n_above >= n else float(self.calibration[n - n_above - 1])

    def _labels(self, table: pa.Table) -> NDArray[np.int64]:
        name = self.model.label
        if name is None or name not in table.column_names:
            return np.full(table.num_rows, UNLABELLED)
        self.has_labels = True
        return self.model.labels(table)

    def _remark(self, words: str) -> None:
        """Keep words about a batch, once: those about the next differ in numbers only."""
        self.remarks.setdefault(re.sub(r"\d[\d,.]*", "#", words.partition("(")[0]), words)


class _Lowest:
    """The `n` rows with the lowest keys of all that were added; the earlier of equal ones."""

    def __init__(self, n: int) -> None:
        self.n, self.bound = n, np.inf
        self.parts: list[Rows] = []
        self.keys: list[NDArray[np.float64]] = []

    def add(self, rows: Rows, keys: NDArray[np.float64]) -> None:
        """Take rows as far as they are among the lowest yet; infinite keys are never."""
        order = np.argsort(keys, kind="stable")[: self.n]
        order = order[keys[order] < self.bound]
        if len(order) or not self.parts:
            self.parts.append(rows.take(order))
            self.keys.append(keys[order])
        if sum(map(len, self.keys)) > 2 * self.n:
            self._shrink()

    def rows(self) -> Rows:
        """Return the rows, lowest key first."""
        self._shrink()
        return self.parts[0]

    def _shrink(self) -> None:
        keys = np.concatenate(self.keys)
        order = np.argsort(keys, kind="stable")[: self.n]
        parts = self.parts
        joined = Rows(
            joined_table([b for part in parts for b in part.table.to_batches()])
            if any(map(len, parts))
            else parts[0].table,
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("encoded", "scores", "labels", "places")
            ),
        )
        self.parts, self.keys = [joined.take(order)], [keys[order]]
        if len(order) == self.n:
            self.bound = float(self.keys[0][-1])


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
