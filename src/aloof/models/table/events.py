"""Rows that come line by line: CSV with its header, or one JSON object in a line.

Every line that is not blank becomes an `Event`, also one that cannot be read: it then says why.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.io.growing import Line, Position
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.encoder import TableEncoder
from aloof.models.table.frames import to_table
from aloof.models.table.names import check_names
from aloof.models.table.objects import flattened
from aloof.models.table.words import short
from aloof.phrases import count
from aloof.written.decoding import FALLBACK, check_encoding
from aloof.written.finding import find_table

__all__ = ["Event", "EventFormat", "EventReader", "event_tables"]

EventFormat = Literal["csv", "tsv", "jsonl"]

# A row may go on over so many lines, between quotation marks.
_MOST_LINES = 100
# So many lines are looked at to find the header.
_LOOKED_AT = 200
_WIDE = ("utf16", "utf32")


@dataclass(frozen=True)
class Event:
    """A row.

    Attributes
    ----------
    line
        In which line it began, of all that were read.
    values
        By column; None: the line cannot be read.
    error
        Why it cannot be.
    after
        Where the next one begins.
    n_lines
        How many lines were read by then.
    """

    line: int
    values: Mapping[str, Any] | None
    error: str
    after: Position | None
    n_lines: int


class EventReader:
    """Turns lines into rows.

    Parameters
    ----------
    columns
        Which the model uses: a line that names them all is a header.
    format
        "csv", "tsv" or "jsonl"; None: found out from the first line.
    delimiter, header
        Of CSV; None: found out, and a header must be there.
    encoding
        None: UTF-8, and lines that are not in it are cp1252.
    preferred
        What separates values where more than one sign could.
    state
        What `state` returned, to go on.
    """

    def __init__(
        self,
        columns: Sequence[str],
        *,
        format: EventFormat | None = None,
        delimiter: str | None = None,
        encoding: str | None = None,
        header: bool | None = None,
        preferred: str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if format is not None and format not in get_args(EventFormat):
            known = ", ".join(get_args(EventFormat))
            raise TableError(f"Lines are followed as one of {known}; got {format!r}.")
        if delimiter is not None and len(delimiter) != 1:
            raise TableError(f"The delimiter must be one character; got {delimiter!r}.")
        if encoding is not None:
            check_encoding(encoding)
            if encoding.lower().replace("-", "").replace("_", "").startswith(_WIDE):
                raise TableError(
                    f"Lines in {encoding} cannot be followed. Have them written in UTF-8."
                )
        if format == "jsonl" and (delimiter is not None or header is not None):
            raise TableError("JSON lines have no delimiter and no header; leave them out.")
        self._columns, self._encoding, self._header = columns, encoding, header
        self._format, self._delimiter = format, "\t" if format == "tsv" else delimiter
        self._preferred = preferred
        self.n_lines = 0
        self.names: tuple[str, ...] | None = None
        self._places: tuple[int, ...] = ()
        self._width = 0
        self._waiting: list[Line] = []
        if state is not None:
            self.n_lines = int(state["lines"])
            self._format = state["format"]
            if state["names"] is not None:
                self.names, self._width = tuple(state["names"]), int(state["width"])
                self._places, self._delimiter = tuple(state["places"]), state["delimiter"]

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold: how lines are read, and how many were."""
        return {
            "lines": self.n_lines,
            "format": self._format,
            "names": self.names,
            "places": self._places,
            "width": self._width,
            "delimiter": self._delimiter,
        }

    def events(self, lines: Iterable[Line], *, is_end: bool = False) -> list[Event]:
        """Return the rows that are whole.

        Parameters
        ----------
        lines
            That came since the last time.
        is_end
            Whether none will come any more.
        """
        self._waiting += lines
        if self._format is None:
            self._find_format()
        if self._format in ("csv", "tsv") and self.names is None:
            self._find_header()
        if self._format is None or (self._format != "jsonl" and self.names is None):
            return []
        read = self._json if self._format == "jsonl" else self._csv
        return list(read(is_end))

    def _find_format(self) -> None:
        for line in self._waiting:
            if text := self._text(line).strip():
                self._format = "jsonl" if text.startswith("{") else "csv"
                break
        if self._format == "jsonl" and (self._delimiter or self._header is not None):
            self._format = "csv"

    def _find_header(self) -> None:
        """Find the names, once there is a row below them."""
        texts = [self._text(line) for line in self._waiting[:_LOOKED_AT]]
        if sum(bool(text.strip()) for text in texts) < (1 if self._header is False else 2):
            return
        place = find_table(
            "".join(f"{text}\n" for text in texts),
            is_whole=True,
            delimiter=self._delimiter,
            preferred=self._preferred,
            header=self._header,
        )
        if place is None:
            return
        if place.no_names or (place.no_header and self._header is None):
            shown = next((text for text in texts if text.strip()), "")
            raise TableError(
                f"There is no line of column names; the first line is {short(shown, 60)!r}. "
                "Write one first, or read the lines without names by header=False "
                "(--no-header)."
            )
        check_names(place.names)
        self.names, self._places = place.names, place.places
        self._width, self._delimiter = place.width, place.delimiter
        above = place.first - 1
        self.n_lines += above
        del self._waiting[:above]

    def _json(self, is_end: bool) -> Iterator[Event]:
        lines, self._waiting = self._waiting, []
        for line in lines:
            self.n_lines += 1
            text = self._text(line).strip()
            if not text:
                continue
            try:
                values = json.loads(text, parse_constant=_no_number)
            except (ValueError, RecursionError) as error:
                yield self._failed(f"not JSON: {error}", line)
                continue
            if isinstance(values, dict):
                try:
                    flat = flattened(values) | self._objects(values)
                except (ValueError, RecursionError) as error:
                    yield self._failed(str(error), line)
                    continue
                yield Event(self.n_lines, flat, "", line.after, self.n_lines)
            else:
                yield self._failed("not a JSON object", line)

    def _objects(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return objects where the model has a column: they are no values of it."""
        there = {name: values.get(name) for name in self._columns}
        return {name: value for name, value in there.items() if isinstance(value, dict)}

    def _csv(self, is_end: bool) -> Iterator[Event]:
        lines, self._waiting = self._waiting, []
        place = 0
        while place < len(lines):
            n, text = self._whole(lines[place : place + _MOST_LINES])
            if not n:
                if len(lines) - place < _MOST_LINES and not is_end:
                    self._waiting = lines[place:]
                    return
                n, text = 1, self._text(lines[place])  # the mark is never closed
            first, last = lines[place], lines[place + n - 1]
            self.n_lines, place = self.n_lines + n, place + n
            if text.strip():
                yield from self._row(text, self.n_lines - n + 1, first, last.after)

    def _whole(self, lines: Sequence[Line]) -> tuple[int, str]:
        """Return how many lines the first row has, and its text; 0: its end is not there."""
        text = self._text(lines[0])
        for n, line in enumerate(lines, start=1):
            text = text if n == 1 else f"{text}\n{self._text(line)}"
            if '"' not in text or not _is_open(text, self._delimiter or ","):
                return n, text
        return 0, ""

    def _row(
        self, text: str, number: int, first: Line, after: Position | None
    ) -> Iterator[Event]:
        assert self.names is not None
        try:
            lines = text.splitlines(keepends=True)
            rows = list(csv.reader(lines, delimiter=self._delimiter or ","))
        except csv.Error as error:
            yield Event(number, None, f"not CSV: {error}", after, self.n_lines)
            return
        cells = rows[0] if len(rows) == 1 else []
        if self._is_header([*map(str.strip, cells)], first):
            return
        if len(cells) != self._width:
            n = count(len(cells), "value")
            words = f"{n}, but the header has {self._width}: {short(text, 60)!r}"
            yield Event(number, None, words, after, self.n_lines)
            return
        values = {
            name: cells[place] or None
            for name, place in zip(self.names, self._places, strict=True)
        }
        yield Event(number, values, "", after, self.n_lines)

    def _is_header(self, cells: list[str], line: Line) -> bool:
        """Say whether a line names the columns again, as a new file does; take its order."""
        assert self.names is not None
        if self._header is False or not {*cells}.intersection(self.names):
            return False
        if [cells[place] for place in self._places if place < len(cells)] == [*self.names]:
            return True
        named = set(cells)
        if line.is_first and named >= {*self._columns} and len(named) == len(cells):
            self.names, self._places = tuple(cells), tuple(range(len(cells)))
            self._width = len(cells)
            return True
        return False

    def _failed(self, error: str, line: Line) -> Event:
        return Event(self.n_lines, None, error, line.after, self.n_lines)

    def _text(self, line: Line) -> str:
        raw = line.content
        if line.is_first:
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if self._encoding is not None:
            return raw.decode(self._encoding, "replace")
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw.decode(FALLBACK, "replace")


def event_tables(
    events: Sequence[Event], encoder: TableEncoder, *, fills: bool, also: Sequence[str] = ()
) -> list[tuple[list[int], pa.Table]]:
    """Return rows as tables of one type a column, each with the places of its rows.

    What a row holds must not depend on those beside it: a number among texts is not a text. So
    rows with values of other types are a table of their own.

    Parameters
    ----------
    events
        With values.
    encoder
        Of the model: its columns are taken.
    fills
        Whether columns that no row has may be left out of a table.
    also
        Other columns to take.
    """
    names = tuple(dict.fromkeys([*encoder.names, *also]))
    if fills:
        there = {name for event in events for name in event.values or ()}
        names = tuple(name for name in names if name in there)
    numbers = {c.name for c in encoder.columns if isinstance(c, NumberColumn)}
    rows = [event.values or {} for event in events]
    columns = {name: [values.get(name) for values in rows] for name in names}
    mixed = [
        name
        for name, column in columns.items()
        if len({_sort(name, kind, numbers) for kind in {*map(type, column)}} - {None}) > 1
    ]
    groups: dict[tuple[str | None, ...], list[int]] = {}
    for place in range(len(rows)):
        key = tuple(_sort(name, type(columns[name][place]), numbers) for name in mixed)
        groups.setdefault(key, []).append(place)
    found = []
    for places in groups.values():
        chosen = {
            name: _column([column[place] for place in places], name in numbers)
            for name, column in columns.items()
        }
        found.append((places, to_table(chosen)))
    return found


def _is_open(text: str, delimiter: str) -> bool:
    """Say whether a row goes on in the next line, because a value in quotes does."""
    reader = csv.reader([*text.splitlines(keepends=True), "\n"], delimiter=delimiter)
    try:
        next(reader, None)
    except csv.Error:
        return False
    return reader.line_num > text.count("\n") + 1


def _column(values: list[Any], is_number: bool) -> pa.Array | list[Any]:
    kinds = {*map(type, values)}
    if kinds == {type(None)}:
        return pa.nulls(len(values), pa.string())
    if kinds <= {str, type(None)}:
        return pa.array(values, pa.string())
    if is_number and float in kinds:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return values


def _sort(name: str, kind: type, numbers: Collection[str]) -> str | None:
    """Return what values of a column and a type are, where types matter; None: nothing."""
    if kind is type(None):
        return None
    if kind in (int, float):
        return "number" if name in numbers else kind.__name__
    if kind in (bool, str):
        return kind.__name__
    what = "a list" if kind is list else "an object"
    raise TableError(
        f"{name!r} holds {what}; a column holds text, numbers, true, false or null"
    )


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number in JSON")
