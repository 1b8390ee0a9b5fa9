"""Rows of tables, and documents: JSON, Arrow, CSV and lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.exceptions import AloofError, AloofWarning
from aloof.models.table import TableModel, to_table
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.columns.timestamp import TimestampColumn
from aloof.models.table.drift import RowSample
from aloof.models.table.files import in_memory
from aloof.models.table.lines import TEXT
from aloof.serve.arrow import ARROW_FILE, ARROW_STREAM, check_values, read_arrow
from aloof.serve.limits import Limits, Refused
from aloof.serve.recent import Recent
from aloof.serve.served import Asked, Content, Rows, Scored, Served, Tensor, parsed
from aloof.serve.warned import gathering

__all__ = ["ServedTable", "TableRows"]

_JSON, _CSV, _TEXT = "application/json", "text/csv", "text/plain"
_EXACT = 2**53  # integers up to here are floats as well
_SCALARS = (str, int, float, bool, type(None))
# From so many rows on, a request is read by itself: the table model refuses a column of which
# nothing can be read, and whether it does must not depend on other requests.
_BY_ITSELF = 20
_MOST_LOOKED_AT = 3  # columns with unreadable values that are named to a client
_REHEARSED = 8
_ARROW = {"number": pa.float64(), "text": pa.string(), "boolean": pa.bool_()}
_ARROW |= {"whole": pa.int64(), "decimal": pa.float64()}


@dataclass(frozen=True)
class TableRows(Rows):
    """Rows of a table: as JSON has them, or as Arrow.

    Attributes
    ----------
    names
        The columns that are used, of rows that are not a table.
    records
        Such rows: mappings from names to values.
    columns
        The same by column; None: there are records, or a table.
    table
        The rows, where they came as a table.
    ids
        What the rows are called; None: by nothing.
    warnings
        What was said when they were read.
    """

    names: tuple[str, ...] = ()
    records: Sequence[Mapping[str, Any]] = ()
    columns: Mapping[str, list[Any]] | None = None
    table: pa.Table | None = None
    ids: Any = None
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> Any:
        """What requests that are encoded together have in common; None: no others."""
        if self.n >= _BY_ITSELF:
            return None
        if self.table is None:
            return self.names, self.asked.fills
        if any(map(pa.types.is_dictionary, self.table.schema.types)):
            return None
        return self.table.schema, self.asked.fills

    def values(self, name: str) -> list[Any]:
        """Return the values of a column."""
        if self.columns is not None:
            return self.columns[name]
        return [record.get(name) for record in self.records]


@dataclass(frozen=True)
class _Group:
    """Requests that were encoded as one table."""

    places: list[int]
    table: pa.Table
    encoded: NDArray[np.float32]


class ServedTable(Served[TableRows]):
    """A model of a table in use; see `Served`."""

    takes = (_JSON, _CSV, ARROW_STREAM, ARROW_FILE, _TEXT)
    model: TableModel

    def __init__(self, model: TableModel, limits: Limits) -> None:
        super().__init__(model, limits)
        self._filling = model._accepting("fill")
        self._by_name = {column.name: column for column in model.encoder.columns}
        self._numbers = {
            name for name, one in self._by_name.items() if isinstance(one, NumberColumn)
        }
        self._checked = lru_cache(64)(self._check)
        self._recent: Recent[pa.Table] = Recent()

    # Reading

    def read(self, content: Content, asked: Asked) -> TableRows:
        """Return the rows of a body."""
        if content.kind == _JSON or content.kind.endswith("+json"):
            return self._from_json(parsed(content.data), asked)
        if content.kind in (ARROW_STREAM, ARROW_FILE):
            return self._from_table(read_arrow(content.data, self.limits), asked)
        if content.kind == _CSV:
            return self._from_csv(content, asked)
        if content.kind == _TEXT:
            return self._from_lines(content, asked)
        raise self._not_taken(content)

    def _from_json(self, value: Any, asked: Asked) -> TableRows:
        records, columns = value, None
        if isinstance(value, dict):
            records, columns = value.get("rows"), value.get("columns")
            if len(value) != 1 or (records is None) == (columns is None):
                raise Refused(422, _SHAPES)
        if columns is not None:
            return self._from_columns(columns, asked)
        if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
            raise Refused(422, _SHAPES)
        self.limits.check_rows(len(records))
        names, first = tuple(records[0]), records[0].keys()
        if any(record.keys() != first for record in records):
            names = tuple(dict.fromkeys(name for record in records for name in record))
            known = self._by_name.keys()
            # What is said of a row must not depend on what others of the request have.
            if any(record.keys() & known != first & known for record in records):
                raise Refused(
                    422,
                    "All rows must have the same columns. Write null for a missing value.",
                )
        self.limits.check_columns(len(names))
        used, warnings = self._checked(names, asked.fills)
        ids = None
        if self.model.id is not None and self.model.id in names:
            ids = self._ids([record.get(self.model.id) for record in records])
        return TableRows(
            len(records), asked, names=used, records=records, ids=ids, warnings=warnings
        )

    def _from_columns(self, columns: Any, asked: Asked) -> TableRows:
        if not isinstance(columns, dict) or not all(
            isinstance(values, list) for values in columns.values()
        ):
            raise Refused(422, _SHAPES)
        self.limits.check_columns(len(columns))
        lengths = {len(values) for values in columns.values()}
        if len(lengths) != 1:
            raise Refused(422, "All columns must have the same number of values.")
        (n,) = lengths
        self.limits.check_rows(n)
        used, warnings = self._checked(tuple(columns), asked.fills)
        ids = None if self.model.id not in columns else self._ids(columns[self.model.id])
        return TableRows(n, asked, names=used, columns=columns, ids=ids, warnings=warnings)

    def _ids(self, values: list[Any]) -> list[Any]:
        if not all(isinstance(value, _SCALARS) for value in values):
            raise Refused(422, f"Column {self.model.id!r} must hold text or numbers.")
        return values

    def _from_csv(self, content: Content, asked: Asked) -> TableRows:
        head = content.data[: 2**20].split(b"\n", 100)
        widest = max(max(line.count(sign) for sign in b"\t;|,") for line in head)
        self.limits.check_columns(widest + 1)
        with gathering() as said:
            source = in_memory(
                content.data,
                delimiter=asked.delimiter,
                encoding=asked.encoding or content.parameters.get("charset"),
                header=asked.header,
                before=self.model.reading,
            )
            table = check_values(source.read(), self.limits)
        return self._from_table(table, asked, said)

    def _from_lines(self, content: Content, asked: Asked) -> TableRows:
        """Return lines of text, each of which is a document."""
        name = TEXT if TEXT in self._by_name else ", ".join(self.model.texts)
        if name not in self.model.texts:
            raise Refused(
                415, "The model does not read a single column of text. Send JSON, CSV or Arrow."
            )
        try:
            lines = content.data.decode(content.parameters.get("charset", "utf-8")).splitlines()
        except (UnicodeError, LookupError) as error:
            raise Refused(400, "The body is not text in the encoding that it names.") from error
        self.limits.check_rows(len(lines))
        return self._from_columns({name: [line or None for line in lines]}, asked)

    def _from_table(self, table: pa.Table, asked: Asked, said: Sequence[str] = ()) -> TableRows:
        names = tuple(table.column_names)
        used, warnings = self._checked(names, asked.fills)
        return TableRows(
            table.num_rows,
            asked,
            table=table.select(used).replace_schema_metadata(None),
            ids=table[self.model.id] if self.model.id in names else None,
            warnings=(*said, *warnings),
        )

    def _check(
        self, names: tuple[str, ...], fills: bool
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Raise where a table with these columns cannot be scored.

        Returns
        -------
        The columns that are used, and what to warn of.
        """
        said: list[str] = []
        model = self._filling if fills else self.model
        empty = pa.table({name: pa.nulls(0) for name in names})
        model.encode(empty, warn=lambda warning: said.append(str(warning)))
        return tuple(name for name in names if name in self._by_name), tuple(said)

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
                table = group.table
                self._recent.add(table, table.num_rows, table.nbytes)
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
        for name in first.names:
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
            self.limits.check_text(max(len(v) for v in values if v is not None))
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
        begin = 0
        for place in group.places:
            request, own = requests[place], scores[begin : begin + requests[place].n]
            names = None if request.ids is None else (str(self.model.id), request.ids)
            warnings = (*request.warnings, *said.get(place, ()))
            reasons: list[list[str]] | None = None
            if request.asked.reasons:
                reasons = [[] for _ in range(request.n)]
            found = answers[place] = self._scored(own, names, reasons, warnings)
            if reasons is not None:
                wanted.append(begin + np.flatnonzero(found.flagged))
            begin += request.n
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
        first = tensors[0]
        if len(tensors) == 1 and len(first.shape) == 2 and first.datatype != "BYTES":
            names = self.model.columns
            if first.shape[1] != len(names):
                raise Refused(
                    422, f"The model has {len(names)} columns; the tensor has {first.shape[1]}."
                )
            return self._from_columns(
                {name: first.data[:, i].tolist() for i, name in enumerate(names)}, asked
            )
        columns: dict[str, list[Any]] = {}
        for tensor in tensors:
            flat = len(tensor.shape) == 1 or (len(tensor.shape) == 2 and tensor.shape[1] == 1)
            if not flat or tensor.name in columns:
                raise Refused(422, "Send one tensor of shape [n] for each column.")
            values = tensor.data.reshape(-1).tolist()
            if tensor.datatype == "BYTES":
                values = [_decoded(value) for value in values]
            columns[tensor.name] = values
        return self._from_columns(columns, asked)

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
            self._from_json({"rows": [{n: values[i] for n, values in columns.items()}]}, asked)
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

    def forget(self) -> None:
        """Forget the latest rows."""
        self._recent.clear()

    def drift(self) -> list[str]:
        """Return kinds of differences between the latest rows and those of the training."""
        tables = self._recent.all()
        if not tables:
            return []
        sample = RowSample(self.model.encoder)
        for table in tables:
            sample.add(table)
        names = {name for table in tables for name in table.column_names}
        return [each.what for each in self.model.drift_in(sample, sorted(names))]


_SHAPES = (
    'Send {"rows": [{"column": value, ...}, ...]} or {"columns": {"column": [value, ...], '
    "...}}, where values are text, numbers, true, false or null."
)


def _nothing(warning: AloofWarning) -> None:
    pass


def _decoded(value: Any) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeError as error:
            raise Refused(422, "BYTES must be text in UTF-8.") from error
    return value if value is None else str(value)


def _in_json(value: Any) -> Any:
    """Return a value of a column as JSON has it."""
    if isinstance(value, float):
        return None if value != value else round(value, 6)
    return value if isinstance(value, _SCALARS) else str(value)
