"""Scores of rows that come in parts, and what can be said of them when all are known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.calibration import Decision
from aloof.exceptions import TableError, TableWarning
from aloof.models.results import Drift, ScoredFile
from aloof.models.table.drift import RowSample
from aloof.models.table.harmless import Harmless, suppressed
from aloof.models.table.labelling import check_column

if TYPE_CHECKING:
    from aloof.models.table.model import TableModel

__all__ = ["PartScores", "Settled", "Verdict", "chosen_places"]

_SCORE, _P, _FLAG, _RULE = "anomaly_score", "p_value", "is_anomaly", "suppressed_by"

# To recognise a model by its scores: so many random rows.
_PROBES = 64


@dataclass(frozen=True)
class Verdict:
    """What all rows together decide.

    Attributes
    ----------
    schema
        Names and types of the columns of the result.
    level
        The anomaly score above which a row is flagged; with `places`, the lowest of theirs.
    places
        Where the rows are that are flagged, counted from 0, in place of a level; None: the
        level decides.
    why_none
        Why no row is flagged, and what would change it; nothing where some are.
    """

    schema: pa.Schema
    level: float
    places: NDArray[np.int64] | None = None
    why_none: str = ""


@dataclass(frozen=True)
class PartScores:
    """How rows are scored part by part.

    A part has the columns that are kept, the anomaly score, and reasons for the rows that may
    turn out to be anomalies.

    Attributes
    ----------
    model
        What scores.
    keep
        The columns to copy.
    reasons
        How many reasons to give.
    top
        How many rows to flag, those with the highest scores, the earlier of equal ones; None:
        those that the threshold says.
    level
        The anomaly score above which rows are flagged, where it was decided over more rows
        than these; None: the threshold decides.
    harmless
        Rows that are not flagged, whatever their scores. The result has a column
        ``suppressed_by`` where there are such rules.
    """

    model: TableModel
    keep: tuple[str, ...]
    reasons: int
    top: int | None = None
    harmless: tuple[Harmless, ...] = ()
    level: float | None = None

    def __post_init__(self) -> None:
        if self.top is not None and self.top < 1:
            raise TableError(f"The top must be at least 1; got {self.top}.")

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return which columns of a table with these names have to be read."""
        used = [name for name in self.model.columns if name in names]
        rules = [rule.column for rule in self.harmless if rule.column in names]
        return list(dict.fromkeys([*self.keep, *used, *rules]))

    @property
    def each_by_itself(self) -> bool:
        """Whether a row is decided whatever the others are."""
        decided = self.model.threshold.fdr is None or self.level is not None
        return self.top is None and decided

    @property
    def least(self) -> float:
        """The anomaly score that a row has to pass to be flagged, at least."""
        return self.decision.least if self.level is None else self.level

    @cached_property
    def decision(self) -> Decision:
        """What decides."""
        return self.model.detector.decision_

    @cached_property
    def reason_names(self) -> list[str]:
        """The columns of reasons: there are no more reasons than columns."""
        n = min(self.reasons, len(self.model.columns))
        return [f"reason_{place + 1}" for place in range(n)]

    @property
    def _rule_names(self) -> list[str]:
        return [_RULE] if self.harmless else []

    def check(self, names: Sequence[str], warn: Callable[[TableWarning], None]) -> None:
        """Raise where a table with columns of these names cannot be scored.

        Parameters
        ----------
        names
            All columns of the table.
        warn
            Called with a warning about columns that the model does not know.
        """
        for name in self.keep:
            check_column(name, names, "id" if name == self.model.id else "output")
            if name in (_SCORE, _P, _FLAG, *self._rule_names, *self.reason_names):
                raise TableError(
                    f"Cannot keep column {name!r}: the scores have a column of that name. "
                    "Rename it."
                )
        known = [name for name in names if name not in self.keep or name in self.model.columns]
        self.model.encode(pa.table({name: pa.nulls(0) for name in known}), warn=warn)

    def score(self, table: pa.Table, warn: Callable[[TableWarning], None]) -> pa.Table:
        """Return the part that belongs to some rows."""
        given = set(table.column_names)
        used = table.select([name for name in self.model.columns if name in given])
        encoded = self.model.encode(used, warn=warn)
        scores = self.model.detector.anomaly_score(encoded) if len(encoded) else np.empty(0)
        columns: dict[str, Any] = {name: _writable(name, table[name]) for name in self.keep}
        columns[_SCORE] = scores
        hidden = suppressed(table, self.harmless)
        if self.harmless:
            rules = [str(rule) for rule in self.harmless]
            columns[_RULE] = pa.array(
                [rules[n] if n >= 0 else None for n in hidden], pa.string()
            )
        words = np.full((len(scores), len(self.reason_names)), None, dtype=object)
        may_be = self._may_be(np.where(hidden < 0, scores, -np.inf))
        if self.reason_names and len(may_be):
            found = self.model.explain_encoded(encoded[may_be], used.take(pa.array(may_be)))
            told = found.reasons(len(self.reason_names))
            for row, reasons in zip(may_be, told, strict=True):
                words[row, : len(reasons)] = reasons
        for name, column in zip(self.reason_names, words.T, strict=True):
            columns[name] = pa.array(column, pa.string())
        return RowSample(self.model.encoder).carried_by(pa.table(columns), used)

    def verdict(self, parts: Iterable[pa.Table]) -> Verdict:
        """Decide over all parts; reads them once, one at a time."""
        counts = self.decision.counts(())
        kept: list[pa.Schema] = []
        highest, places, done = np.empty(0), np.empty(0, np.int64), 0
        for part in parts:
            schema = part.select(self.keep).schema.remove_metadata()
            if schema not in kept:
                kept.append(schema)
            scores = _array(part[_SCORE])
            counts += self.decision.counts(scores)
            if self.top is not None:
                open_rows = np.flatnonzero(~self._hidden(part))
                highest = np.concatenate([highest, scores[open_rows]])
                places = np.concatenate([places, done + open_rows])
                chosen = np.argsort(-highest, kind="stable")[: self.top]
                highest, places = highest[chosen], places[chosen]
            done += len(scores)
        schema = self.schema(_common(kept))
        if self.top is not None:
            return Verdict(schema, min(highest, default=np.inf), np.sort(places))
        if self.level is not None:
            return Verdict(schema, self.level)
        return Verdict(
            schema, self.decision.level(counts), why_none=self.decision.why_none(counts)
        )

    def schema(self, kept: Iterable[pa.Field]) -> pa.Schema:
        """Return the columns of the result, given those that are kept."""
        p_value = [] if self.decision.calibration is None else [pa.field(_P, pa.float64())]
        return pa.schema(
            [
                *kept,
                pa.field(_SCORE, pa.float64()),
                *p_value,
                pa.field(_FLAG, pa.bool_()),
                *(pa.field(name, pa.string()) for name in self._rule_names),
                *(pa.field(name, pa.string()) for name in self.reason_names),
            ]
        )

    def settle(self, part: pa.Table, verdict: Verdict, first: int = 0) -> pa.Table:
        """Return the rows of a part as they are written; `first` rows are before it."""
        scores = _array(part[_SCORE])
        columns: dict[str, Any] = {
            name: part[name].cast(verdict.schema.field(name).type) for name in self.keep
        }
        columns[_SCORE] = scores
        if (p := self.decision.p_values(scores)) is not None:
            columns[_P] = p
        flagged = scores > verdict.level
        if verdict.places is not None:
            flagged = np.isin(first + np.arange(len(scores)), verdict.places)
        flagged &= ~self._hidden(part)
        columns[_FLAG] = flagged
        columns |= {name: part[name] for name in self._rule_names}
        mask, none = pa.array(flagged), pa.scalar(None, pa.string())
        for name in self.reason_names:
            columns[name] = pc.if_else(mask, part[name], none)
        return pa.table(columns, schema=verdict.schema)

    def n_suppressed(self, rows: pa.Table, verdict: Verdict) -> int:
        """Return how many rows, as they are written, would be flagged but for a rule."""
        return int((self._hidden(rows) & (_array(rows[_SCORE]) > verdict.level)).sum())

    def _hidden(self, part: pa.Table) -> NDArray[np.bool_]:
        if not self.harmless:
            return np.zeros(part.num_rows, bool)
        found: NDArray[np.bool_] = pc.is_valid(part[_RULE]).to_numpy()
        return found

    def fingerprints(self) -> dict[str, str]:
        """Return what a part depends on besides the rows, by a word for people."""
        model, detector = self.model, self.model.detector
        probes = np.random.default_rng(0).standard_normal((_PROBES, model.encoder.n_features))
        numbers = [detector.anomaly_score(probes)]
        if self.decision.calibration is not None:
            numbers.append(self.decision.calibration)
        digest = hashlib.sha256(np.concatenate(numbers).tobytes())
        digest.update(json.dumps(model.encoder.state(), sort_keys=True).encode())
        return {
            "model": digest.hexdigest(),
            "threshold": json.dumps([model.threshold.as_dict(), float(detector.offset_)]),
            "choice of columns": json.dumps(self.keep),
            "number of reasons": str(self.reasons),
            "top": str(self.top),
            **({} if self.level is None else {"level": repr(self.level)}),
            "rules of what is harmless": json.dumps([str(rule) for rule in self.harmless]),
        }

    def _may_be(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the rows that may turn out to be flagged, whatever the other rows are."""
        if self.top is None:
            return np.flatnonzero(scores > self.least)
        order = np.argsort(-scores, kind="stable")[: self.top]
        return np.sort(order[scores[order] > -np.inf])


class Settled:
    """Parts as they are written, one after the other, and what is to be said about all.

    Parameters
    ----------
    scores
        What made the parts.
    verdict
        What all rows decide.

    Attributes
    ----------
    sample
        Of the rows so far.
    """

    def __init__(self, scores: PartScores, verdict: Verdict) -> None:
        self._scores, self._verdict = scores, verdict
        self.sample = RowSample(scores.model.encoder)
        self._n_rows = self._n_anomalies = self._n_suppressed = 0

    def add(self, part: pa.Table) -> pa.Table:
        """Return the rows of the next part as they are written."""
        own = self.sample.add_carried(part)
        rows = self._scores.settle(own, self._verdict, self._n_rows)
        self._n_rows += rows.num_rows
        self._n_anomalies += int(rows[_FLAG].to_numpy().sum())
        self._n_suppressed += self._scores.n_suppressed(rows, self._verdict)
        return rows

    @property
    def n_decided(self) -> int | None:
        """How many rows the threshold flags, harmless or not; None: it has no say."""
        return None if self._scores.top is not None else self._n_anomalies + self._n_suppressed

    def done(self, drift: tuple[Drift, ...]) -> ScoredFile:
        """Return what is to be said, with the drift that was found in the sample."""
        return ScoredFile(
            self._n_rows,
            self._n_anomalies,
            drift=drift,
            remark=self._verdict.why_none,
            n_suppressed=self._n_suppressed,
        )


def chosen_places(
    rows: pa.Table, *, flagged_only: bool = False, sort: bool = False
) -> NDArray[np.intp]:
    """Return which scored rows to show: the flagged, the highest first, or all as they are."""
    places = np.arange(rows.num_rows)
    if flagged_only:
        places = np.flatnonzero(rows[_FLAG].to_numpy())
    if sort:
        places = places[np.argsort(-_array(rows[_SCORE])[places], kind="stable")]
    return places


def _array(column: pa.ChunkedArray) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.to_numpy()
    return values


def _writable(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that all formats can be written with."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_decimal(kind)
    ):
        return column
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise TableError(
            f"Cannot keep column {name!r}: it holds values of type {kind}."
        ) from error


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return types that hold the columns of all parts: text where nothing else does."""
    try:
        return pa.unify_schemas(list(schemas), promote_options="permissive")
    except pa.ArrowException:
        return pa.schema([(name, pa.string()) for name in schemas[0].names])
