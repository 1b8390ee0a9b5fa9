"""A model of a table or of documents that answers requests, many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import AloofError, AloofWarning
from aloof.models.table import TableModel, to_table
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.columns.timestamp import TimestampColumn
from aloof.models.table.watching import DriftWatch
from aloof.serve.arrow import check_values
from aloof.serve.limits import Limits, Refused
from aloof.serve.rows import SCALARS, TAKEN, TableReader, TableRows
from aloof.serve.served import Asked, Content, Scored, Served, Tensor

__all__ = ["ServedTable", "TableRows"]

_EXACT = 2**53  # integers up to here are floats as well
_MOST_LOOKED_AT = 3  # columns with unreadable values that are named to a client
_REHEARSED = 8
_ARROW = {"number": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
_ARROW |= {"whole": pa.int64(), "decimal": pa.float64()}


@dataclass(frozen=True)
class _Group:
    """Requests that were encoded as one table."""

    places: list[int]
    table: pa.Table
    encoded: NDArray[np.float32]


class ServedTable(Served[TableRows]):
    """A model of a table in use; see `Served`."""

    takes = TAKEN
    has_rules = True
    model: TableModel

    def __init__(self, model: TableModel, limits: Limits) -> None:
        super().__init__(model, limits)
        self._filling = model._accepting("fill")
        self._by_name = {column.name: column for column in model.encoder.columns}
        self._numbers = {
            name for name, one in self._by_name.items() if isinstance(one, NumberColumn)
        }
        self._reader = TableReader(model, self._filling, limits, lambda: self.rules())
        self._watch = DriftWatch(self._filling)

    def read(self, content: Content, asked: Asked) -> TableRows:
        """Return the rows of a body."""
        found = self._reader.read(content, asked)
        if found is None:
            raise self._not_taken(content)
        return found

    # Scoring

    def score(self, requests: Sequence[TableRows]) -> list[Scored | Exception]:
        """Return what there is to say about each request."""
        together: dict[Any, list[int]] = {}
        for place, request in enumerate(requests):
            key = request.key
            together.setdefault((place,) if key is None else key, []).append(place)
        answers: list[Scored | Exception | None] = [None] * len(requests)
        groups: list[_Group] = []
        said: dict[int, list[str]] = {}
        for places in together.values():
            groups += self._encoded(requests, places, answers, said)
        if groups:
            encoded = groups[0].encoded
            if len(groups) > 1:
                encoded = np.concatenate([group.encoded for group in groups])
            scores, end = self.model.detector.anomaly_score(encoded), 0
            for group in groups:
                begin, end = end, end + len(group.encoded)
                self._settle(requests, group, scores[begin:end], answers, said)
                self._watched(requests, group, answers)
        assert all(answer is not None for answer in answers)
        return answers  # type: ignore[return-value]

    def _encoded(
        self,
        requests: Sequence[TableRows],
        places: list[int],
        answers: list[Scored | Exception | None],
        said: dict[int, list[str]],
    ) -> list[_Group]:
        """Encode requests as one table; where that fails, each by itself."""
        unread: list[str] = []
        try:
            table = self._joined([requests[place] for place in places])
            model = self._filling if requests[places[0]].asked.fills else self.model
            encoded = model.encode(
                table, warn=_nothing, unreadable=lambda found: unread.append(found.column)
            )
        except (AloofError, Refused) as error:
            if len(places) > 1:
                return [
                    group
                    for place in places
                    for group in self._encoded(requests, [place], answers, said)
                ]
            answers[places[0]] = error
            return []
        if unread:
            begin = 0
            for place in places:
                own = table.slice(begin, requests[place].n)
                said[place] = self._unreadable(own, dict.fromkeys(unread))
                begin += requests[place].n
        return [_Group(places, table, encoded)]

    def _joined(self, requests: Sequence[TableRows]) -> pa.Table:
        """Return the rows of requests with the same key as one table.

        Where a value has a type in the company of others that it has not among its own, there
        is no such table.
        """
        first = requests[0]
        if first.table is not None:
            tables = [request.table for request in requests]
            return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()
        odd = None
        columns = {}
        records: list[Mapping[str, Any]] | None = None
        if all(request.columns is None for request in requests):
            records = [record for request in requests for record in request.records]
        for name in first.names:
            if records is not None:
                values = [record.get(name) for record in records]
            else:
                values = [value for request in requests for value in request.values(name)]
            kind = self._type(name, values)
            if kind is None:
                odd = name
                break
            try:
                columns[name] = pa.array(values, _ARROW[kind], from_pandas=True)
            except UnicodeError as error:
                raise Refused(422, "A text has characters that are none.") from error
        if odd is None:
            return pa.table(columns)
        if len(requests) > 1:
            raise Refused(422, f"Column {odd!r} has values of several types.")
        return self._odd(first)

    def _odd(self, request: TableRows) -> pa.Table:
        """Return rows with values of mixed types, read as those of a frame are."""
        lists = {name: request.values(name) for name in request.names}
        try:
            return check_values(to_table(lists), self.limits)
        except UnicodeError as error:
            raise Refused(422, "A text has characters that are none.") from error

    def _type(self, name: str, values: list[Any]) -> str | None:
        """Return what values are; None: they are mixed, or nobody can tell."""
        types = {*map(type, values)}
        types.discard(type(None))
        if types == {str}:
            self.limits.check_text(max(map(len, filter(None, values)), default=0))
            return "text"
        if types == {bool}:
            return "boolean"
        if not types <= {int, float}:
            if not types <= {int, float, str, bool}:
                raise Refused(422, f"Column {name!r} must hold text, numbers or booleans.")
            return None
        if int in types:
            whole = [value for value in values if type(value) is int]
            if max(whole) > _EXACT or min(whole) < -_EXACT:
                return None
        if name in self._numbers:
            return "number"
        if not types:
            return "text"
        return None if len(types) > 1 else "whole" if int in types else "decimal"

    def _unreadable(self, table: pa.Table, names: Mapping[str, Any]) -> list[str]:
        """Say which values of a request cannot be read; others' are none of its business."""
        said: list[str] = []
        for name in list(names)[:_MOST_LOOKED_AT]:
            model = replace(
                self.model.encoder, columns=(self._by_name[name],), fills=True, dropped={}
            )
            model.transform(table.select([name]), warn=lambda w: said.append(str(w)))
        return said

    def _settle(
        self,
        requests: Sequence[TableRows],
        group: _Group,
        scores: NDArray[np.float64],
        answers: list[Scored | Exception | None],
        said: dict[int, list[str]],
    ) -> None:
        """Make answers of scores; reasons are found for all requests of the group at once."""
        wanted: list[NDArray[np.intp]] = []
        rule = self._decision
        p = rule.p_values(scores)
        # A false discovery rate decides over the rows of a request, and no others.
        all_decided = rule.flag(scores) if rule.threshold.fdr is None else None
        begin = 0
        for place in group.places:
            request = requests[place]
            end = begin + request.n
            own = scores[begin:end]
            decided = rule.flag(own) if all_decided is None else all_decided[begin:end]
            flagged = decided
            if request.suppressed_by is not None:
                flagged = decided & np.array([by is None for by in request.suppressed_by])
            answers[place] = Scored(
                own,
                None if p is None else p[begin:end],
                flagged,
                decided,
                request.suppressed_by,
                None if request.ids is None else (str(self.model.id), request.ids),
                [[] for _ in range(request.n)] if request.asked.reasons else None,
                (*request.warnings, *said[place]) if place in said else request.warnings,
            )
            if request.asked.reasons:
                wanted.append(begin + np.flatnonzero(flagged))
            begin = end
        rows = np.concatenate(wanted) if wanted else np.empty(0, np.intp)
        if not len(rows):
            return
        explained = self.model.explain_encoded(
            group.encoded[rows], group.table.take(pa.array(rows))
        )
        most = max(requests[place].asked.reasons for place in group.places)
        told = dict(zip(rows.tolist(), explained.reasons(most), strict=True))
        begin = 0
        for place in group.places:
            answer, request = answers[place], requests[place]
            assert isinstance(answer, Scored)
            for row, own_reasons in enumerate(answer.reasons or ()):
                own_reasons += told.get(begin + row, [])[: request.asked.reasons]
            begin += request.n

    # The Open Inference Protocol

    def inputs(self) -> list[dict[str, Any]]:
        """Return one input for each column."""
        return [
            {
                "name": name,
                "datatype": "FP64" if name in self._numbers else "BYTES",
                "shape": [-1],
            }
            for name in self.model.columns
        ]

    def read_tensors(self, tensors: Sequence[Tensor], asked: Asked) -> TableRows:
        """Return columns, one for each tensor; or the columns of one tensor of numbers."""
        return self._reader.from_tensors(tensors, asked)

    def example(self) -> Any:
        """Return one row."""
        typical = self._typical(np.zeros((1, self.model.encoder.n_features)))
        return {"rows": [{name: values[0] for name, values in typical.items()}]}

    def row_schema(self) -> dict[str, Any]:
        """Return the schema of a record."""
        anything = {"type": ["string", "number", "boolean", "null"]}
        written = {"type": ["string", "null"]}
        columns = self.model.encoder.columns
        return {
            "type": "object",
            "properties": {
                column.name: written if isinstance(column, TimestampColumn) else anything
                for column in columns
            },
            "required": [column.name for column in columns],
        }

    def rehearsal(self) -> list[TableRows]:
        """Return rows that the encoder makes of random features."""
        rng = np.random.default_rng(0)
        features = rng.standard_normal((_REHEARSED, self.model.encoder.n_features))
        columns = self._typical(features)
        if self.model.id is not None:
            columns[self.model.id] = list(range(_REHEARSED))
        asked = Asked(reasons=3)
        return [
            self._reader.from_json(
                {"rows": [{n: values[i] for n, values in columns.items()}]}, asked
            )
            for i in range(_REHEARSED)
        ]

    def _typical(self, features: NDArray[np.float64]) -> dict[str, list[Any]]:
        """Return the values that features stand for, as JSON has them; of text, some."""
        texts = [
            column for column in self.model.encoder.columns if column.name in self.model.texts
        ]
        found: dict[str, list[Any]] = {}
        for column, own in zip(
            self.model.encoder.columns,
            self.model.encoder._by_column(features / self.model.encoder.gain),
            strict=True,
        ):
            if column in texts:
                found[column.name] = ["Some text."] * len(features)
            else:
                found[column.name] = [_in_json(v) for v in column.decode(own).tolist()]
        return found

    # Drift

    def _watched(
        self,
        requests: Sequence[TableRows],
        group: _Group,
        answers: Sequence[Scored | Exception | None],
    ) -> None:
        """Remember rows, to compare them with those of the training."""
        found = [answers[place] for place in group.places]
        decided = np.concatenate([each.decided for each in found if isinstance(each, Scored)])
        own = [requests[place] for place in group.places]
        self._watch.add(group.table, [(each.n, each.given) for each in own], decided)

    def forget(self) -> None:
        """Forget the latest rows."""
        self._watch = DriftWatch(self._filling)

    def drift(self) -> list[str]:
        """Return kinds of differences between the latest rows and those of the training."""
        self._watch.look()
        return [each.what for each in self._watch.drift]


def _nothing(warning: AloofWarning) -> None:
    pass


def _in_json(value: Any) -> Any:
    """Return a value of a column as JSON has it."""
    if isinstance(value, float):
        return None if value != value else round(value, 6)
    return value if isinstance(value, SCALARS) else str(value)
