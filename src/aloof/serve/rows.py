"""The rows of a request for scores of a table: read from JSON, Arrow, CSV, text or tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from aloof.models.table import TableModel
from aloof.models.table.files import in_memory
from aloof.models.table.harmless import Rules, values_of
from aloof.models.table.lines import TEXT
from aloof.models.table.objects import flattened
from aloof.serve.arrow import ARROW_FILE, ARROW_STREAM, check_values, read_arrow
from aloof.serve.limits import Limits, Refused
from aloof.serve.served import Asked, Content, Rows, Tensor, parsed
from aloof.serve.warned import gathering

__all__ = ["SCALARS", "TAKEN", "TableReader", "TableRows"]

_JSON, _CSV, _TEXT = "application/json", "text/csv", "text/plain"
TAKEN = (_JSON, _CSV, ARROW_STREAM, ARROW_FILE, _TEXT)
SCALARS = (str, int, float, bool, type(None))
# From so many rows on, a request is read by itself: the table model refuses a column of which
# nothing can be read, and whether it does must not depend on other requests.
_BY_ITSELF = 20


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
    given
        All columns that the request has.
    suppressed_by
        The rules by which rows are known to be harmless; None: there are none.
    ids
        What the rows are called; None: by nothing.
    warnings
        What was said when they were read.
    """

    names: tuple[str, ...] = ()
    records: Sequence[Mapping[str, Any]] = ()
    columns: Mapping[str, list[Any]] | None = None
    table: pa.Table | None = None
    given: tuple[str, ...] = ()
    suppressed_by: Sequence[str | None] | None = None
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


class TableReader:
    """Reads the rows of requests.

    Parameters
    ----------
    model, filling
        What they are for, and the same where it fills columns that are missing.
    limits
        How much they may be.
    rules
        Returns what is known to be harmless, at this moment.
    """

    def __init__(
        self,
        model: TableModel,
        filling: TableModel,
        limits: Limits,
        rules: Callable[[], Rules],
    ) -> None:
        self.model, self.limits = model, limits
        self._filling, self._rules = filling, rules
        self._by_name = {column.name for column in model.encoder.columns}
        self._has_inner = any("." in name for name in self._by_name)
        self._checked = lru_cache(64)(self._check)

    def read(self, content: Content, asked: Asked) -> TableRows | None:
        """Return the rows of a body; None: of what it is, it cannot be read."""
        if content.kind == _JSON or content.kind.endswith("+json"):
            return self.from_json(parsed(content.data), asked)
        if content.kind in (ARROW_STREAM, ARROW_FILE):
            return self._from_table(read_arrow(content.data, self.limits), asked)
        if content.kind == _CSV:
            return self._from_csv(content, asked)
        if content.kind == _TEXT:
            return self._from_lines(content, asked)
        return None

    def from_json(self, value: Any, asked: Asked) -> TableRows:
        """Return the rows of what JSON says."""
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
        if self._has_inner:
            try:
                records = [flattened(record) for record in records]
            except (ValueError, RecursionError) as error:
                raise Refused(422, f"A row cannot be read: {error}.") from error
        names, first = tuple(records[0]), records[0].keys()
        if any(record.keys() != first for record in records):
            names = tuple(dict.fromkeys(name for record in records for name in record))
            known = self._by_name
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
            len(records),
            asked,
            names=used,
            records=records,
            given=names,
            suppressed_by=self._suppressed(records, asked),
            ids=ids,
            warnings=warnings,
        )

    def _suppressed(
        self, records: Sequence[Mapping[str, Any]], asked: Asked
    ) -> list[str | None] | None:
        """Return which rule holds for each row; a row without a column has no value there."""
        rules = self._rules()
        if not rules or asked.ignores_rules:
            return None
        columns = rules.columns
        found: list[str | None] = []
        for record in records:
            own = {name: (record[name],) for name in columns if name in record}
            found += rules.covering(own, 1)
        return found

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
        rules = Rules() if asked.ignores_rules else self._rules()
        return TableRows(
            n,
            asked,
            names=used,
            columns=columns,
            given=tuple(columns),
            suppressed_by=rules.covering(columns, n) if rules else None,
            ids=ids,
            warnings=warnings,
        )

    def _ids(self, values: list[Any]) -> list[Any]:
        if not all(isinstance(value, SCALARS) for value in values):
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
        rules = Rules() if asked.ignores_rules else self._rules()
        values = {name: values_of(table[name]) for name in rules.columns if name in names}
        return TableRows(
            table.num_rows,
            asked,
            table=table.select(used).replace_schema_metadata(None),
            given=names,
            suppressed_by=rules.covering(values, table.num_rows) if rules else None,
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

    def from_tensors(self, tensors: Sequence[Tensor], asked: Asked) -> TableRows:
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


_SHAPES = (
    'Send {"rows": [{"column": value, ...}, ...]} or {"columns": {"column": [value, ...], '
    "...}}, where values are text, numbers, true, false or null."
)


def _decoded(value: Any) -> str | None:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeError as error:
            raise Refused(422, "BYTES must be text in UTF-8.") from error
    return value if value is None else str(value)
