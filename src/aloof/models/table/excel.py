"""Excel workbooks: cells of a sheet as columns, with the types they have there."""

from __future__ import annotations

import datetime as dt
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from aloof.exceptions import MissingExtraError, TableError, TableWarning
from aloof.io.remote import FilePath
from aloof.models.table.cells import SIGN_IN_NUMBER, cell_text
from aloof.models.table.formats import Format, Record
from aloof.models.table.words import short
from aloof.suggestion import closest
from aloof.written.finding import find_header, is_total

__all__ = ["Excel", "ExcelWriter"]

# Rows in which the header is looked for, and the most that a sheet can have.
_BEGINNING, _MOST_ROWS = 400, 1_048_576
_ERRORS = {
    "#N/A",
    "#NULL!",
    "#VALUE!",
    "#REF!",
    "#NAME?",
    "#DIV/0!",
    "#NUM!",
    "#CALC!",
    "#SPILL!",
}
# Cells, and the number of their row in the sheet.
_NumberedRow = tuple[int, list[Any]]
# So that the same rows are the same bytes.
_LONG_AGO = dt.datetime(2000, 1, 1)


@dataclass(frozen=True)
class Excel(Format):
    """A sheet of a workbook. Blank rows are left out, and errors in cells are missing.

    Attributes
    ----------
    sheet
        Its name, or its number from 1 on; None: the first.
    header
        Whether there is a row of column names; None: there must be.
    """

    sheet: str | None = None
    header: bool | None = None
    line: ClassVar[str] = "sheet row"

    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return what the header says; a column without a name is called by its place."""
        with self._rows(path) as (_, rows):
            return self._header(path, list(islice(rows, _BEGINNING))).names

    def n_rows(self, path: FilePath) -> int | None:
        """Return None: a workbook does not say it reliably."""
        return None

    def understood(self, path: FilePath | None) -> str:
        """Say which sheet is read, where there are more, and where its names are."""
        with self._rows(path) as (sheets, rows):
            title, others = sheets
            line = self._header(path, list(islice(rows, _BEGINNING))).line
        said = [f"sheet {title!r}, one of {others}"] if others > 1 else []
        if line > 1:
            said.append(f"column names in row {line} (everything above it is ignored)")
        return ", ".join(said)

    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows."""
        with self._table(path, columns) as (header, places, numbered):
            there = _without_total(path, (row for _, row in numbered), header)
            while some := list(islice(there, rows)):
                arrays = [_column([_at(row, place) for row in some]) for place in places]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def records(self, path: FilePath, columns: tuple[str, ...]) -> Iterator[Record]:
        """Yield the rows and their numbers in the sheet."""
        with self._table(path, columns) as (_, places, numbered):
            for number, row in numbered:
                if any(cell is not None for cell in row):
                    yield number, [cell_text(_at(row, place)) for place in places]

    @contextmanager
    def _table(
        self, path: FilePath | None, columns: tuple[str, ...]
    ) -> Iterator[tuple[_Header, list[int], Iterator[_NumberedRow]]]:
        """Give the header, where the columns are, and the rows below it."""
        with self._rows(path) as (_, rows):
            beginning = list(islice(rows, _BEGINNING))
            header = self._header(path, beginning)
            places = [header.places[header.names.index(column)] for column in columns]
            yield header, places, chain(beginning[header.begin :], rows)

    def _header(self, path: FilePath | None, rows: list[_NumberedRow]) -> _Header:
        width = max((len(row) for _, row in rows), default=0)
        written = [[cell_text(cell) or "" for cell in row] for _, row in rows]
        written = [[*row, *[""] * (width - len(row))] for row in written]
        if not any(map(any, written)):
            raise TableError(
                f"{path} has no cells in this sheet. Name another one: sheet='Data' (--sheet "
                "Data)."
            )
        place, _, is_data = find_header(written, self.header)
        if place is None:
            place = next(i for i, row in enumerate(written) if any(row))
        if is_data and self.header is None:
            shown = short(", ".join(filter(None, written[place])), 60)
            raise TableError(
                f"{path} has no row of column names: its first row is {shown!r}. Add one, or "
                "read the sheet without names by header=False (--no-header)."
            )
        without = self.header is False
        begin = place if without else place + 1
        filled = [any(row[at] for row in written[begin:]) for at in range(width)]
        names, places = [], []
        for at in range(width):
            name = "" if without else written[place][at].strip()
            if name or filled[at]:
                names.append(name or f"column_{at + 1}")
                places.append(at)
        return _Header(tuple(names), tuple(places), begin, 0 if without else rows[place][0])

    @contextmanager
    def _rows(
        self, path: FilePath | None
    ) -> Iterator[tuple[tuple[str, int], Iterator[_NumberedRow]]]:
        assert path is not None  # standard input is read as CSV
        openpyxl = _openpyxl("Reading")
        try:
            file = path if isinstance(path, Path) else path.open("rb")
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise TableError(f"{path} cannot be read as an Excel workbook: {error}.") from error
        try:
            sheet = self._sheet(path, book)
            sheet.reset_dimensions()
            cells = sheet.iter_rows(values_only=True)
            yield (sheet.title, len(book.worksheets)), enumerate(map(_clean, cells), start=1)
        finally:
            book.close()

    def _sheet(self, path: FilePath, book: Any) -> Any:
        sheets = book.worksheets
        if not sheets:
            raise TableError(f"{path} has no sheet with cells.")
        if self.sheet is None:
            return sheets[0]
        for sheet in sheets:
            if sheet.title == self.sheet:
                return sheet
        if self.sheet.isdecimal() and 1 <= int(self.sheet) <= len(sheets):
            return sheets[int(self.sheet) - 1]
        titles = [sheet.title for sheet in sheets]
        raise TableError(
            f"{path} has no sheet {self.sheet!r}{closest(self.sheet, titles)}. It has: "
            f"{', '.join(map(repr, titles))}."
        )


@dataclass(frozen=True)
class _Header:
    names: tuple[str, ...]
    places: tuple[int, ...]
    begin: int  # rows before the first one of the table
    line: int  # the row of the names, from 1 on; 0: there is none


class ExcelWriter:
    """Writes tables into one sheet, as openpyxl does, always the same bytes for the same rows.

    Parameters
    ----------
    path
        The file.
    schema
        Names and types of the columns.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        openpyxl = _openpyxl("Writing")
        self._path = path
        self._book = openpyxl.Workbook(write_only=True)
        self._book.properties.created = self._book.properties.modified = _LONG_AGO
        self._sheet = self._book.create_sheet("scores")
        self._cell = openpyxl.cell.WriteOnlyCell
        self._illegal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE
        self._n = 1
        self._sheet.append([self._written(name) for name in schema.names])

    def write_table(self, table: pa.Table) -> None:
        """Write rows below those that are there."""
        self._n += table.num_rows
        if self._n > _MOST_ROWS:
            raise TableError(
                f"An Excel sheet holds at most {_MOST_ROWS:,} rows. Write .csv or .parquet "
                "instead."
            )
        columns = [column.to_pylist() for column in table.columns]
        for row in zip(*columns, strict=True):
            self._sheet.append([self._written(value) for value in row])

    def close(self) -> None:
        """Write the file."""
        aside = self._path.with_name(f"{self._path.name}.unsorted")
        try:
            self._book.save(aside)
            with zipfile.ZipFile(aside) as made, zipfile.ZipFile(self._path, "w") as written:
                for info in made.infolist():
                    kept = zipfile.ZipInfo(info.filename)
                    kept.compress_type = zipfile.ZIP_DEFLATED
                    content = made.read(info)
                    if info.filename == "docProps/core.xml":
                        stamp = f"{_LONG_AGO.isoformat()}Z".encode()
                        content = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", stamp, content)
                    written.writestr(kept, content)
        finally:
            aside.unlink(missing_ok=True)

    def __enter__(self) -> ExcelWriter:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            self.close()

    def _written(self, value: Any) -> Any:
        if isinstance(value, float) and not abs(value) < float("inf"):
            return None if value != value else str(value)
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.isoformat()
        if not isinstance(value, str):
            return value
        text = self._illegal.sub("", value)
        if not text.startswith("="):
            return text
        cell = self._cell(self._sheet, value=text)
        cell.data_type = "s"  # text, not a formula
        return cell


def _openpyxl(doing: str) -> Any:
    try:
        import openpyxl
        import openpyxl.cell
    except ImportError:
        raise MissingExtraError("openpyxl", "excel", f"{doing} Excel files") from None
    return openpyxl


def _clean(row: Sequence[Any]) -> list[Any]:
    """Return cells; None for errors and for text of nothing but space."""
    return [
        None if isinstance(cell, str) and (cell in _ERRORS or not cell.strip()) else cell
        for cell in row
    ]


def _without_total(
    path: FilePath | None, rows: Iterator[list[Any]], found: _Header
) -> Iterator[list[Any]]:
    """Yield the rows that are not blank, but for a last one that is the sum of the others."""
    last: list[Any] | None = None
    for row in rows:
        if any(cell is not None for cell in row):
            if last is not None:
                yield last
            last = row
    if last is None:
        return
    written = [cell_text(_at(last, place)) or "" for place in found.places]
    if not is_total(written):
        yield last
        return
    shown = short(", ".join(filter(None, written)))
    words = f"{path}: the last row is a total and left out: {shown!r}."
    warnings.warn(TableWarning(words, f"total of {path}"), stacklevel=2)


def _at(row: list[Any], place: int) -> Any:
    return row[place] if place < len(row) else None


def _column(cells: list[Any]) -> pa.Array:
    """Return cells of one type as such, others as text."""
    there = [cell for cell in cells if cell is not None]
    types = {type(cell) for cell in there}
    if types <= {int, float} and all(abs(cell) < 2**63 for cell in there):
        return pa.array(cells, pa.float64() if float in types else pa.int64())
    if types <= {dt.datetime, dt.date}:
        return pa.array([_moment(cell) for cell in cells], pa.timestamp("us"))
    if len(types) == 1 and types & {bool, str, dt.time, dt.timedelta}:
        return pa.array(cells)
    beside = any(isinstance(cell, str) and SIGN_IN_NUMBER.search(cell) for cell in there)
    return pa.array([cell_text(cell, sure=beside) for cell in cells], pa.string())


def _moment(cell: Any) -> dt.datetime | None:
    if cell is None or isinstance(cell, dt.datetime):
        return cell
    return dt.datetime.combine(cell, dt.time())
