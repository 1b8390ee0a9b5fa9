"""Scores of rows that come in parts, and what can be said of them when all are known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.calibration import Decision
from aloof.exceptions import TableError, TableWarning
from aloof.models.table.labelling import check_column
from aloof.models.table.model import TableModel

__all__ = ["PartScores", "Verdict"]

_SCORE, _P, _FLAG = "anomaly_score", "p_value", "is_anomaly"

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
        The anomaly score above which a row is an anomaly.
    """

    schema: pa.Schema
    level: float


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
    """

    model: TableModel
    keep: tuple[str, ...]
    reasons: int

    @property
    def columns(self) -> list[str]:
        """Which columns have to be read."""
        return list(dict.fromkeys([*self.keep, *self.model.columns]))

    @cached_property
    def decision(self) -> Decision:
        """What decides."""
        return self.model.detector.decision_

    @cached_property
    def reason_names(self) -> list[str]:
        """The columns of reasons: there are no more reasons than columns."""
        n = min(self.reasons, len(self.model.columns))
        return [f"reason_{place + 1}" for place in range(n)]

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
            if name in (_SCORE, _P, _FLAG, *self.reason_names):
                raise TableError(
                    f"Column {name!r} cannot be kept: the scores have a column of that name. "
                    "Rename it."
                )
        known = [name for name in names if name not in self.keep or name in self.model.columns]
        self.model.encode(pa.table({name: pa.nulls(0) for name in known}), warn=warn)

    def score(self, table: pa.Table, warn: Callable[[TableWarning], None]) -> pa.Table:
        """Return the part that belongs to some rows."""
        used = table.select(list(self.model.columns))
        encoded = self.model.encode(used, warn=warn)
        scores = self.model.detector.anomaly_score(encoded) if len(encoded) else np.empty(0)
        columns: dict[str, Any] = {name: _writable(name, table[name]) for name in self.keep}
        columns[_SCORE] = scores
        words = np.full((len(scores), len(self.reason_names)), None, dtype=object)
        may_be = np.flatnonzero(scores > self.decision.least)  # whatever the other rows are
        if self.reason_names and len(may_be):
            found = self.model.explain_encoded(encoded[may_be], used.take(pa.array(may_be)))
            told = found.reasons(len(self.reason_names))
            for row, reasons in zip(may_be, told, strict=True):
                words[row, : len(reasons)] = reasons
        for name, column in zip(self.reason_names, words.T, strict=True):
            columns[name] = pa.array(column, pa.string())
        return pa.table(columns)

    def verdict(self, parts: Iterable[pa.Table]) -> Verdict:
        """Decide over all parts; reads them once, one at a time."""
        counts = self.decision.counts(())
        kept: list[pa.Schema] = []
        for part in parts:
            schema = part.select(self.keep).schema
            if schema not in kept:
                kept.append(schema)
            counts += self.decision.counts(_array(part[_SCORE]))
        return Verdict(self.schema(_common(kept)), self.decision.level(counts))

    def schema(self, kept: Iterable[pa.Field]) -> pa.Schema:
        """Return the columns of the result, given those that are kept."""
        p_value = [] if self.decision.calibration is None else [pa.field(_P, pa.float64())]
        return pa.schema(
            [
                *kept,
                pa.field(_SCORE, pa.float64()),
                *p_value,
                pa.field(_FLAG, pa.bool_()),
                *(pa.field(name, pa.string()) for name in self.reason_names),
            ]
        )

    def settle(self, part: pa.Table, verdict: Verdict) -> pa.Table:
        """Return the rows of a part as they are written."""
        scores = _array(part[_SCORE])
        columns: dict[str, Any] = {
            name: part[name].cast(verdict.schema.field(name).type) for name in self.keep
        }
        columns[_SCORE] = scores
        if (p := self.decision.p_values(scores)) is not None:
            columns[_P] = p
        columns[_FLAG] = flagged = scores > verdict.level
        mask, none = pa.array(flagged), pa.scalar(None, pa.string())
        for name in self.reason_names:
            columns[name] = pc.if_else(mask, part[name], none)
        return pa.table(columns, schema=verdict.schema)

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
        }


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
            f"Column {name!r} cannot be kept: it holds values of type {kind}."
        ) from error


def _common(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Return types that hold the columns of all parts: text where nothing else does."""
    try:
        return pa.unify_schemas(list(schemas), promote_options="permissive")
    except pa.ArrowException:
        return pa.schema([(name, pa.string()) for name in schemas[0].names])
