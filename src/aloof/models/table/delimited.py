"""CSV and TSV: text with one row in a line."""

from __future__ import annotations

import csv
import io
import re
import sys
import warnings
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from aloof.exceptions import TableError, TableWarning
from aloof.models.table.compression import open_bytes
from aloof.models.table.decoding import FALLBACK, Utf8, check_encoding
from aloof.models.table.finding import Place, find_table, is_rule
from aloof.models.table.formats import Format, first_line
from aloof.models.table.words import short
from aloof.phrases import count

__all__ = ["Delimited"]

# What is held in memory of a file. A row must fit into it.
_BLOCK = 4 * 2**20
# So many lines at the end may be something else than rows: totals, notes.
_MOST_FOOTERS = 20
_CALLED = {"\t": "tabs", " ": "spaces", ",": "commas", ";": "semicolons", "|": "bars"}


@dataclass(frozen=True)
class Delimited(Format):
    """Text with one row in a line. All columns are text, and empty text is missing.

    What separates the values, the encoding and the line of names are found in each file.

    Attributes
    ----------
    delimiter
        One character; None: found out.
    encoding
        As Python names it; None: found out.
    header
        Whether there is a line of column names; None: there must be.
    preferred
        What separates the values where more than one sign could.
    fallback
        The encoding of what is not UTF-8.
    """

    delimiter: str | None = None
    encoding: str | None = None
    header: bool | None = None
    preferred: str | None = None
    fallback: str = FALLBACK
    # Standard input can be read once: its beginning was, and the rows are still to come.
    _waiting: list[_Opened] = field(default_factory=list, repr=False, compare=False)
    _known: dict[Path | None, _Opened] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for sign in (self.delimiter, self.preferred):
            if sign is not None and len(sign) != 1:
                raise TableError(f"The delimiter must be one character; got {sign!r}.")
        for encoding in (self.encoding, self.fallback):
            if encoding is not None:
                check_encoding(encoding)

    def names(self, path: Path | None) -> tuple[str, ...]:
        """Return what the header says; a column without a name is called by its place."""
        opened = self._open(path)
        if path is None:
            self._waiting[:] = [opened]
        else:
            opened.stream.close()
        return opened.place.names

    def n_rows(self, path: Path) -> int | None:
        """Return None: lines would have to be counted."""
        return None

    def understood(self, path: Path | None) -> str:
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
        self, path: Path | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; a line with too few or too many values is an error.

        At the end of a file such lines are totals or notes, and left out with a warning.
        """
        waiting = path is None and self._waiting
        opened = self._waiting.pop() if waiting else self._open(path)
        names, places = opened.place.names, opened.place.places
        wanted = [str(places[names.index(column)]) for column in columns]
        done, odd, last = 0, _OddLines(), None
        with opened.stream as stream:
            if stream.is_whole and not stream.beginning[opened.place.begin :].strip():
                return
            stream.skip(opened.place.begin)
            try:
                with self._reader(opened, wanted, odd) as reader:
                    for batch in reader:
                        done += batch.num_rows
                        if odd.first <= done or odd.are_too_many:
                            raise self._odd_line(path, opened, odd)
                        last = batch.slice(batch.num_rows - 1)
                        yield batch.rename_columns(list(columns))
            except (pa.ArrowException, OSError, EOFError, UnicodeError) as error:
                raise self._failure(path, error, done) from error
            if stream.n_quotes % 2 and last is not None and _has_line_end(last):
                raise TableError(
                    f"{_named(path)}: a quotation mark is never closed; the last row, number "
                    f"{done:,}, runs over several lines."
                )
        if odd.are_too_many:
            raise self._odd_line(path, opened, odd)
        notes = [line for _, _, line in odd.lines if not is_rule(line)]
        if notes:
            shown = ", ".join(repr(short(line)) for line in notes[:2])
            warnings.warn(
                TableWarning(
                    f"{_named(path)}: ignored {count(len(notes), 'line')} at the end without "
                    f"{opened.place.width} values: {shown}.",
                    f"end of {_named(path)}",
                ),
                stacklevel=2,
            )

    def lines_of(
        self, path: Path | None, column: str, values: Collection[str]
    ) -> dict[str, int]:
        """Return in which lines values of a column stand first, as far as that can be told."""
        if path is None:
            return {}
        found: dict[str, int] = {}
        opened = self._open(path)
        at = opened.place.places[opened.place.names.index(column)]
        for row, line in self._records(opened):
            if len(row) > at and row[at] in values:
                found.setdefault(row[at], line)
                if len(found) == len(values):
                    break
        return found

    def _reader(self, opened: _Opened, wanted: list[str], odd: _OddLines) -> Any:
        # Columns go by their place, so that no name is in the way.
        places = [str(place) for place in range(opened.place.width)]
        return pa_csv.open_csv(
            pa.PythonFile(opened.stream, mode="r"),
            read_options=pa_csv.ReadOptions(
                block_size=_BLOCK,
                column_names=places,
                use_threads=False,  # only then odd lines know their number
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=opened.place.delimiter,
                newlines_in_values=True,
                invalid_row_handler=odd,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={place: pa.string() for place in places},
                include_columns=wanted,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    def _open(self, path: Path | None) -> _Opened:
        what = _named(path)
        try:
            raw = sys.stdin.buffer if path is None else open_bytes(path)
            stream = Utf8(raw, self.encoding, self.fallback)
        except (UnicodeError, pa.ArrowException, OSError, EOFError) as error:
            raise self._failure(path, error, 0) from error
        if stream.is_binary:
            raise TableError(f"{what} is not a text file, so it cannot be read as CSV.")
        known = self._known.get(path)
        if known is not None and known.beginning == hash(stream.beginning):
            opened = self._known[path] = replace(known, stream=stream)
            return opened
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

    def _records(self, opened: _Opened) -> Iterator[tuple[list[str], int]]:
        """Yield all rows and in which line each begins."""
        stream, place = opened.stream, opened.place
        with stream:
            stream.skip(place.begin)
            text = io.TextIOWrapper(io.BufferedReader(stream), "utf8", newline="")
            reader = csv.reader(text, delimiter=place.delimiter)
            begin = 0
            for row in reader:
                if row:
                    yield row, place.first + begin
                begin = reader.line_num

    def _odd_line(self, path: Path | None, opened: _Opened, odd: _OddLines) -> TableError:
        number, n, text = next(
            (line for line in odd.lines if line[1] > opened.place.width), odd.lines[0]
        )
        line = number + opened.place.first - 1
        if path is not None:
            for place, (_, here) in enumerate(self._records(self._open(path)), start=1):
                if place == number:
                    line = here
                    break
        return TableError(
            f"{_named(path)}: line {line:,} has {count(n, 'value')}, but the header has "
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

    def _failure(self, path: Path | None, error: Exception, done: int) -> TableError:
        what, said = _named(path), first_line(error)
        if "UTF8" in said or isinstance(error, UnicodeError):
            if self.encoding is not None:
                return self._not_encoded(what)
            return TableError(
                f"{what} mixes UTF-8 with another encoding, somewhere after row {done:,}: its "
                "parts seem to come from different programs. Name the encoding, such as "
                "encoding='latin-1' (--encoding latin-1), or save the file as UTF-8."
            )
        if "straddling" in said:
            return TableError(
                f"{what} has a row of more than {_BLOCK // 2**20} MiB after row {done:,}. "
                "Look for a quotation mark that is never closed."
            )
        return TableError(f"{what} cannot be read beyond row {done:,}: {said}.")


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


def _named(path: Path | None) -> str:
    return "Standard input" if path is None else str(path)
