"""CSV and TSV: text with one row in a line."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from aloof.exceptions import TableError, TableWarning
from aloof.io.remote import FilePath
from aloof.models.table.compression import open_bytes
from aloof.models.table.formats import Record, TextFormat, first_line
from aloof.models.table.lending import Lent
from aloof.models.table.words import short
from aloof.phrases import count
from aloof.written.decoding import Utf8
from aloof.written.finding import Place, find_table, is_json, is_rule, is_total

__all__ = ["Delimited"]

# What is held in memory of a file. A row must fit into it.
_BLOCK = 4 * 2**20
# So many lines at the end may be something else than rows: totals, notes.
_MOST_FOOTERS = 20
_CALLED = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons", "|": "bars"}


@dataclass(frozen=True)
class Delimited(TextFormat):
    """Text with one row in a line. All columns are text, and empty text is missing.

    What separates the values, the encoding and the line of names are found in each file.

    Attributes
    ----------
    delimiter
        One character; None: found out.
    header
        Whether there is a line of column names; None: there must be.
    preferred
        What separates the values where more than one sign could.
    content
        What to read where no file is named, in place of standard input.
    """

    delimiter: str | None = None
    header: bool | None = None
    preferred: str | None = None
    content: bytes | None = field(default=None, repr=False, compare=False)
    # Standard input can be read once: its beginning was, and the rows are still to come.
    _waiting: list[_Opened] = field(default_factory=list, repr=False, compare=False)
    _known: dict[FilePath | None, _Opened] = field(
        default_factory=dict, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        for sign in (self.delimiter, self.preferred):
            if sign is not None and len(sign) != 1:
                raise TableError(f"The delimiter must be one character; got {sign!r}.")
        super().__post_init__()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is open: it stays in its process."""
        return {**self.__dict__, "_waiting": [], "_known": {}}

    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return what the header says; a column without a name is called by its place."""
        opened = self._open(path)
        if path is None:
            self._waiting[:] = [opened]
        else:
            opened.stream.close()
        return opened.place.names

    def n_rows(self, path: FilePath) -> int | None:
        """Return None: lines would have to be counted."""
        return None

    def understood(self, path: FilePath | None) -> str:
        """Say how the file is read, where it is not the usual way."""
        opened = self._known.get(path)
        if opened is None:
            return ""
        place, said = opened.place, []
        if place.delimiter != "," and place.width > 1:
            said.append(f"separated by {_CALLED.get(place.delimiter, repr(place.delimiter))}")
        if opened.stream.encoding != "utf8":
            said.append(f"written in {opened.stream.encoding}")
        if place.line == 0:
            said.append("without column names")
        elif place.line > 1:
            above = "everything above it is ignored"
            said.append(f"column names in line {place.line} ({above})")
        return ", ".join(said)

    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; a line with too few or too many values is an error.

        At the end of a file such lines are totals or notes, and left out with a warning.
        """
        waiting = path is None and self._waiting
        opened = self._waiting.pop() if waiting else self._open(path)
        names, places = opened.place.names, opened.place.places
        wanted = [str(places[names.index(column)]) for column in columns]
        done, odd, last, repeated = 0, _OddLines(), None, 0
        with opened.stream as stream:
            if stream.is_whole and not stream.beginning[opened.place.begin :].strip():
                return
            stream.skip(opened.place.begin)
            try:
                with closing(self._read(opened, wanted, odd)) as blocks:
                    for batch in blocks:
                        done += batch.num_rows
                        if odd.first <= done or odd.are_too_many:
                            raise self._odd_line(path, opened, odd)
                        if last is not None:
                            yield last
                        last = _without_names(batch.rename_columns(list(columns)), opened)
                        repeated += batch.num_rows - last.num_rows
            except (pa.ArrowException, OSError, EOFError, UnicodeError) as error:
                raise self._failure(path, error, done) from error
            if stream.n_quotes % 2 and last is not None and _has_line_end(last[-1:]):
                raise TableError(
                    f"{self._named(path)}: a quotation mark is never closed; the last row, "
                    f"{self._where(path, done)}, runs over several lines."
                )
        if odd.are_too_many:
            raise self._odd_line(path, opened, odd)
        if last is not None:
            end = stream.last_line
            if not odd.lines and is_total(_cells(end, opened.place)):
                last = last[:-1]
                _warn(
                    self._named(path),
                    f"the last line is a total and left out: {short(end)!r}",
                    "total",
                )
            yield last
        if repeated:
            words = f"{count(repeated, 'line')} with the column names again"
            _warn(self._named(path), f"{words}, left out", "names")
        notes = [line for _, _, line in odd.lines if not is_rule(line)]
        if notes:
            shown = ", ".join(repr(short(line)) for line in notes[:2])
            words = (
                f"ignored {count(len(notes), 'line')} at the end without "
                f"{opened.place.width} values: {shown}"
            )
            _warn(self._named(path), words, "end")

    def records(self, path: FilePath, columns: tuple[str, ...]) -> Iterator[Record]:
        """Yield the rows and in which line each begins, as far as they can be read."""
        place = self._open(path).place
        at = [place.places[place.names.index(column)] for column in columns]
        again = [*place.names]
        for row, line in self._records(path):
            if len(again) < 2 or not place.line or [*map(str.strip, row)] != again:
                yield line, [row[i] if i < len(row) else None for i in at]

    def _read(
        self, opened: _Opened, wanted: list[str], odd: _OddLines
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield blocks of rows; when this is over, Arrow's threads are done with the file."""
        lent = Lent()
        reader = self._reader(lent.file(opened.stream), opened.place, wanted, odd)
        try:
            for batch in reader:  # noqa: UP028, it would close it
                yield batch
        finally:
            opened.stream.stop()
            with suppress(pa.ArrowException, OSError, UnicodeError):
                for _ in reader:
                    pass
            del reader
            lent.wait()

    def _reader(
        self, file: io.RawIOBase, place: Place, wanted: list[str], odd: _OddLines
    ) -> Any:
        # Columns go by their place, so that no name is in the way.
        places = [str(number) for number in range(place.width)]
        return pa_csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=pa_csv.ReadOptions(
                block_size=_BLOCK,
                column_names=places,
                use_threads=False,  # only then odd lines know their number
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=place.delimiter,
                newlines_in_values=True,
                invalid_row_handler=odd,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={number: pa.string() for number in places},
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    def _open(self, path: FilePath | None) -> _Opened:
        what = self._named(path)
        try:
            raw = self._bytes() if path is None else open_bytes(path)
            stream = Utf8(raw, self.encoding, self.fallback)
        except (UnicodeError, pa.ArrowException, OSError, EOFError) as error:
            raise self._failure(path, error, 0) from error
        if stream.is_binary:
            raise TableError(f"{what} is not a text file, so it cannot be read as CSV.")
        known = self._known.get(path)
        if known is not None and known.beginning == hash(stream.beginning):
            opened = self._known[path] = replace(known, stream=stream)
            return opened
        if is_json(stream.beginning):
            raise TableError(
                f"{what} holds JSON, not CSV. Read a file of it with format='jsonl' (--format "
                "jsonl), and lines of standard input with --follow."
            )
        place = find_table(
            stream.beginning,
            is_whole=stream.is_whole,
            delimiter=self.delimiter,
            preferred=self.preferred,
            header=self.header,
        )
        if place is None:
            raise TableError(f"{what} is empty. It needs a line of column names, and rows.")
        if place.no_names:
            raise TableError(
                f"{what}: its rows have {count(place.width, 'value')}, separated by "
                f"{_CALLED.get(place.delimiter, repr(place.delimiter))}, but no line above "
                "them has as many column names."
            )
        if place.no_header and self.header is None:
            raise TableError(
                f"{what} has no line of column names: its first row is "
                f"{short(place.no_header, 60)!r}. Add one, or read the file without names by "
                "header=False (--no-header); the columns are then column_1, column_2 and so "
                "on. If that row does hold the names: header=True (--header)."
            )
        if place.width == 1 and self.delimiter is None:
            _check_name(what, place)
            _check_spaces(what, stream.beginning, place)
        opened = self._known[path] = _Opened(stream, place, hash(stream.beginning))
        return opened

    def _bytes(self) -> Any:
        return sys.stdin.buffer if self.content is None else io.BytesIO(self.content)

    def _named(self, path: FilePath | None) -> str:
        if path is not None:
            return str(path)
        return "Standard input" if self.content is None else "The text"

    def _records(self, path: FilePath) -> Iterator[tuple[list[str], int]]:
        """Yield all rows and in which line each begins, up to one that cannot be read."""
        opened = self._open(path)
        stream, place = opened.stream, opened.place
        with stream, suppress(csv.Error, UnicodeError, OSError, EOFError):
            stream.skip(place.begin)
            text = io.TextIOWrapper(io.BufferedReader(stream), "utf8", newline="")
            reader = csv.reader(text, delimiter=place.delimiter)
            begin = 0
            for row in reader:
                if row:
                    yield row, place.first + begin
                begin = reader.line_num

    def _where(self, path: FilePath | None, row: int) -> str:
        """Say where a row is: in which line, or where that cannot be told, its number."""
        if path is not None and row:
            found = next(islice(self._records(path), row - 1, None), None)
            if found is not None:
                return f"line {found[1]:,}"
        return f"row {row:,}"

    def _odd_line(self, path: FilePath | None, opened: _Opened, odd: _OddLines) -> TableError:
        number, n, text = next(
            (line for line in odd.lines if line[1] > opened.place.width), odd.lines[0]
        )
        where = self._where(path, number)
        return TableError(
            f"{self._named(path)}: {where} has {count(n, 'value')}, but the header has "
            f"{opened.place.width:,}: {short(text, 60)!r}. Look for a missing or extra "
            "delimiter, or a quotation mark that is never closed."
        )

    def _not_encoded(self, what: str) -> TableError:
        encoding = self.encoding or "utf8"
        return TableError(
            f"{what} is not written in {encoding}. Older files are often 'latin-1' or "
            "'cp1252': try encoding='latin-1' (--encoding latin-1), or save the file as "
            "UTF-8."
        )

    def _failure(self, path: FilePath | None, error: Exception, done: int) -> TableError:
        what, said = self._named(path), first_line(error)
        if "UTF8" in said or isinstance(error, UnicodeError):
            if self.encoding is not None:
                return self._not_encoded(what)
            return TableError(
                f"{what} mixes UTF-8 with another encoding, somewhere after "
                f"{self._where(path, done)}: its parts seem to come from different programs. "
                "Name the encoding, such as encoding='latin-1' (--encoding latin-1), or save "
                "the file as UTF-8."
            )
        if "straddling" in said:
            return TableError(
                f"{what} has a row of more than {_BLOCK // 2**20} MiB after "
                f"{self._where(path, done)}. Look for a quotation mark that is never closed."
            )
        where = f" beyond {self._where(path, done)}" if done else ""
        return TableError(f"{what} cannot be read{where}: {said}.")


@dataclass(frozen=True)
class _Opened:
    """A file whose beginning was looked at."""

    stream: Utf8
    place: Place
    beginning: int  # a hash of it


class _OddLines:
    """Lines with too few or too many values, as Arrow meets them."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, int, str]] = []  # number of the row, values, text
        self.are_too_many = False

    def __call__(self, row: Any) -> str:
        self.lines.append((row.number, row.actual_columns, row.text))
        is_long = row.actual_columns > row.expected_columns
        self.are_too_many |= is_long or len(self.lines) > _MOST_FOOTERS
        return "skip"

    @property
    def first(self) -> float:
        """The number of the first such line."""
        return self.lines[0][0] if self.lines else float("inf")


def _without_names(batch: pa.RecordBatch, opened: _Opened) -> pa.RecordBatch:
    """Return rows without those that are the names again, where files were put together."""
    if opened.place.width < 2 or not opened.place.line or not batch.num_columns:
        return batch
    same = None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        equal = pc.equal(column, name)
        same = equal if same is None else pc.and_(same, equal)
        if not pc.any(same).as_py():
            return batch
    return batch.filter(pc.invert(pc.fill_null(same, False)))


def _cells(line: str, place: Place) -> list[str]:
    """Return the values of a line that is a row; nothing where it is none."""
    try:
        values = next(csv.reader([line], delimiter=place.delimiter), [])
    except csv.Error:
        return []
    return values if len(values) == place.width else []


def _warn(named: str, words: str, about: str) -> None:
    warnings.warn(TableWarning(f"{named}: {words}.", f"{about} of {named}"), stacklevel=3)


def _has_line_end(row: pa.RecordBatch) -> bool:
    return any("\n" in (value.as_py() or "") for column in row.columns for value in column)


def _check_name(what: str, place: Place) -> None:
    """Raise where a name looks like several, and rows have one value."""
    for sign in ";\t|,":
        other = "|" if sign == "," else ","
        if place.line and sign in place.names[0]:
            raise TableError(
                f"{what}: its first line, {short(place.names[0], 60)!r}, looks like names "
                f"separated by {sign!r}, but the rows have one value. If it is a single name, "
                f"set the delimiter: delimiter={other!r} (--delimiter {other!r})."
            )


def _check_spaces(what: str, beginning: str, place: Place) -> None:
    """Raise where values are separated by spaces."""
    lines = [line for line in beginning.splitlines()[place.line - 1 :][:50] if line.strip()]
    widths = {len(line.split()) for line in lines}
    if len(lines) < 3 or len(widths) != 1 or widths <= {1}:
        return
    numbers = [re.fullmatch(r"[-+\d.,:/]+", word) for word in " ".join(lines[1:]).split()]
    if sum(map(bool, numbers)) > len(numbers) / 2:
        raise TableError(
            f"{what} has only one column, named {short(lines[0].strip(), 60)!r}: its values "
            "seem to be separated by spaces. Save the file with commas between them."
        )
