"""Where a table is in the beginning of a text file: what separates values, and its header."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["Place", "find_header", "find_table", "is_json", "is_rule", "is_total"]

# What separates values, unless the user says it. Commas come last: numbers have them as well.
_DELIMITERS = ("\t", ";", "|", ",")
_MOST_ROWS = 400
# So far down a header is looked for.
_DEEPEST = 60
_NUMBER = re.compile(
    r"[(+-]?\s*\W?\s*-?\d[\d.,'\s]*(e[+-]?\d+)?\s*(\W|[a-z]{1,3})?\s*[-)]?", re.I
)
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}\b.*|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})\b.*|\d{1,2}:\d{2}.*"
)
_RULE = re.compile(r"[-=+_|\s]*")
_TOTAL = re.compile(
    r"((grand|overall|sub) ?)?totals?|sum|(gesamt)?summe|gesamt|insgesamt|total(e|es|en|t)?"
    r"|total g[eé]n[eé]ral|somme|suma|soma|somma|razem|celkem|summa|i alt|totaal|итого|всего"
)
_LIST_OF_OBJECTS = re.compile(r'\[\s*\{\s*"[^"\n]*"\s*:')
_HINT = re.compile(r"sep=(.)\s*", re.IGNORECASE)
# Of the rows below a header: so many must be of the same width, so many values of one sort.
_FEWEST, _TYPED, _REGULAR = 0.5, 0.8, 0.8


@dataclass(frozen=True)
class Place:
    """Where a table is.

    Attributes
    ----------
    delimiter
        What separates values.
    names, places
        Of the columns, and where they are in a row. A column without name and values is left
        out.
    width
        How many values a row has.
    line
        Where the names are, from 1 on; 0: nowhere.
    begin
        How many characters stand before the first row.
    first
        In which line the first row is.
    no_header
        The first row, if it looks like one and not like names.
    no_names
        Whether there is no line with as many names as rows have values.
    """

    delimiter: str
    names: tuple[str, ...]
    places: tuple[int, ...]
    width: int
    line: int
    begin: int
    first: int
    no_header: str = ""
    no_names: bool = False


@dataclass(frozen=True)
class _Row:
    values: list[str]
    line: int  # where it begins, from 0 on
    end: int  # the line behind it

    @property
    def is_blank(self) -> bool:
        return not any(value.strip() for value in self.values)

    @property
    def is_rule(self) -> bool:
        return all(map(is_rule, self.values))

    @property
    def filled(self) -> int:
        return sum(bool(value.strip()) for value in self.values)


@dataclass(frozen=True)
class _Found:
    delimiter: str
    rows: list[_Row]
    width: int
    header: int | None
    share: float
    no_header: bool

    @property
    def has_names(self) -> bool:
        """Whether there is a line of names."""
        return self.header is not None and not self.no_header

    @property
    def is_one_column(self) -> bool:
        """Whether this is one column of names and values without any delimiter in the name."""
        if self.width > 1 or not self.has_names or self.share < 1:
            return False
        assert self.header is not None
        return not {*_DELIMITERS} & {*"".join(self.rows[self.header].values)}


def find_table(
    text: str,
    *,
    is_whole: bool,
    delimiter: str | None = None,
    preferred: str | None = None,
    header: bool | None = None,
) -> Place | None:
    """Find a table in the beginning of a text; None: there is nothing.

    Parameters
    ----------
    text
        The beginning.
    is_whole
        Whether it is all there is.
    delimiter
        What separates values; None: found out.
    preferred
        What separates them if more than one sign could.
    header
        Whether there is a line of names; None: there should be.
    """
    lines = list(io.StringIO(text, newline=""))
    if not is_whole and len(lines) > 1:
        lines.pop()  # it may go on
    if not any(line.strip(' \t\r\n"') for line in lines):
        return None
    hint = _HINT.fullmatch(lines[0])
    skip = 1 if hint else 0
    if hint and delimiter is None:
        delimiter = hint[1]
    likely = (preferred, *_DELIMITERS) if preferred else _DELIMITERS
    signs = [delimiter] if delimiter else list(dict.fromkeys(likely))
    found = [_located(sign, _rows(lines, sign, skip), header) for sign in signs]
    best = max(found, key=lambda f: (*_quality(f), -signs.index(f.delimiter)))
    if delimiter is None and not best.has_names:
        best = next((f for f in found if f.is_one_column), best)
    return _place(best, lines, header)


def is_rule(text: str) -> bool:
    """Say whether text is a line of dashes or the like, or nothing."""
    return not text[:1].isalnum() and _RULE.fullmatch(text) is not None


def is_total(values: Sequence[str]) -> bool:
    """Say whether a row is a sum of those above it: it says so first, and has gaps."""
    there = [value.strip() for value in values if value.strip()]
    has_gaps = 1 < len(there) < len(values)
    return has_gaps and _TOTAL.fullmatch(there[0].rstrip(":").lower()) is not None


def find_header(
    rows: Sequence[Sequence[str]], header: bool | None
) -> tuple[int | None, int, bool]:
    """Find the names in rows that are cells already.

    Returns
    -------
    The place of the header, None if there is none; how many values a row has; and whether the
    first row looks like one and not like names.
    """
    located = _located("", [_Row(list(row), i, i + 1) for i, row in enumerate(rows)], header)
    return located.header, located.width, located.no_header


def _quality(found: _Found) -> tuple[Any, ...]:
    is_regular = found.share >= _REGULAR
    return (found.width > 1, is_regular, found.has_names, round(found.share * 20))


def _rows(lines: list[str], delimiter: str, skip: int) -> list[_Row]:
    reader = csv.reader(iter(lines[skip:]), delimiter=delimiter)
    rows: list[_Row] = []
    before = 0
    try:
        for values in reader:
            rows.append(_Row(values, before + skip, reader.line_num + skip))
            before = reader.line_num
            if len(rows) == _MOST_ROWS:
                break
    except csv.Error:  # whoever reads the rows says what is wrong
        pass
    return rows


def _located(delimiter: str, rows: list[_Row], header: bool | None) -> _Found:
    """Find width and header of a table whose values are separated so."""
    there = [i for i, row in enumerate(rows) if not row.is_rule]
    widths = Counter(len(rows[i].values) for i in there)
    wide = [(n, width) for width, n in widths.items() if width > 1]
    width = max(wide)[1] if wide else 1
    is_alone = widths[width] == 1 < len(there)  # one line, such as the header
    if width > 1 and (widths[width] < _FEWEST * len(there) / 2 or is_alone):
        width = 1
    place = _header(rows, there, width)
    if place is not None and any(rows[i].filled > width for i in there if i < place):
        place = None  # names that no row has values for
    below = [rows[i] for i in there if place is None or i > place]
    fitting = sum(len(row.values) == width for row in below)
    share = fitting / len(below) if below else float(place is not None)
    no_header = place is None or _is_data(rows[place], below, width, is_first=place == there[0])
    if place is not None and header is not True and (no_header or header is False):
        first = next((i for i in there if len(rows[i].values) == width), None)
        return _Found(delimiter, rows, width, first, share, True)
    return _Found(delimiter, rows, width, place, share, False)


def _header(rows: list[_Row], there: list[int], width: int) -> int | None:
    """Return which row has the names: the first that is full, or one after a blank line."""
    candidates = [i for i in there[:_DEEPEST] if _may_be_header(rows, i, width)]
    if not candidates:
        return None
    first = candidates[0]
    for place in candidates:
        if place == 0 or not rows[place - 1].is_blank:
            continue
        below = [rows[i] for i in there if i > place]
        if below and not _is_data(rows[place], below, width):
            names, typed = rows[place].values, _typed(below, width)
            if typed and not any(_sort(names[j]) for j in range(min(width, len(names)))):
                return place
    return first


def _may_be_header(rows: list[_Row], place: int, width: int) -> bool:
    row = rows[place]
    if len(row.values) == width:
        return row.filled * 2 >= width
    # A row may end with a delimiter, and the header not; or the other way round.
    if len(row.values) == width - 1 and width > 2 and row.filled == width - 1:
        below = [other for other in rows[place + 1 :] if len(other.values) == width]
        return bool(below) and all(not other.values[-1].strip() for other in below)
    return len(row.values) == width + 1 and width > 1 and not row.values[-1].strip()


def _is_data(row: _Row, below: list[_Row], width: int, *, is_first: bool = False) -> bool:
    """Say whether a row looks like those below it, and not like names."""
    values = [value.strip() for value in row.values[:width]]
    sorts = [_sort(value) for value in values]
    named = [value for value, sort in zip(values, sorts, strict=True) if value and not sort]
    if not named:
        return not (is_first and _counts(values))
    typed = _typed(below, width)
    for place, sort in enumerate(sorts):
        is_exact = sort == "date" or not values[place].isdecimal() or not is_first
        if sort and is_exact and typed.get(place) == sort:
            return True
    if not any(sorts):
        return False
    again = [other.values for other in below if len(other.values) == len(row.values)]
    recurs = [
        sum(other[place].strip() == value for other in again)
        for place, value in enumerate(values)
        if value and not sorts[place]
    ]
    same = sum([v.strip() for v in other[:width]] == values for other in again)
    return any(n > same for n in recurs)


def _counts(values: list[str]) -> bool:
    """Say whether numbers are names: 0, 1, 2 and so on, or years."""
    there = [value for value in values if value]
    if not there or not all(value.isdecimal() for value in there):
        return False
    numbers = [int(value) for value in there]
    rising = all(b - a == 1 for a, b in pairwise(numbers))
    return rising and (numbers[0] in (0, 1) or 1900 <= numbers[0] <= 2100) and len(numbers) > 1


def _typed(below: list[_Row], width: int) -> dict[int, str]:
    """Return which columns hold numbers, or dates."""
    found = {}
    for place in range(width):
        values = [row.values[place] for row in below[:_DEEPEST] if len(row.values) > place]
        there = [value for value in values if value.strip()]
        sorts = Counter(filter(None, map(_sort, there)))
        if sorts and sorts.most_common(1)[0][1] >= _TYPED * len(there):
            found[place] = sorts.most_common(1)[0][0]
    return found


def _sort(value: str) -> str:
    text = value.strip()
    if _DATE.fullmatch(text):
        return "date"
    return "number" if _NUMBER.fullmatch(text) else ""


def _place(found: _Found, lines: list[str], header: bool | None) -> Place:
    rows, place = found.rows, found.header
    no_names = place is None
    if place is None:
        place = next((i for i, row in enumerate(rows) if not row.is_blank), 0)
    row = rows[place]
    without = header is False
    written = [] if without else row.values
    begin = row.line if without else row.end
    behind = [r for r in rows[place + (0 if without else 1) :] if not r.is_blank]
    if not without:
        begin += _rules(lines[begin:])
    empty = _empty(behind, found.width)
    names, places = [], []
    for at in range(found.width):
        name = written[at].strip() if at < len(written) else ""
        if name or at not in empty or without or found.width == 1:
            names.append(name or f"column_{at + 1}")
            places.append(at)
    shown = found.delimiter.join(row.values) if found.no_header and not without else ""
    return Place(
        found.delimiter,
        tuple(names),
        tuple(places),
        found.width,
        0 if without else row.line + 1,
        sum(len(line) for line in lines[:begin]),
        begin + 1,
        shown,
        no_names and not without,
    )


def _rules(lines: list[str]) -> int:
    """Return how many lines of dashes stand below the names."""
    for place, line in enumerate(lines):
        if not (line.strip() and is_rule(line)):
            return place
    return 0


def _empty(rows: Iterable[_Row], width: int) -> set[int]:
    """Return the places where no row has a value."""
    empty = set(range(width))
    for row in rows:
        if row.is_rule or len(row.values) != width:
            continue
        empty -= {at for at, value in enumerate(row.values) if value.strip()}
    return empty


def is_json(text: str) -> bool:
    """Say whether a text begins with an object of JSON, alone in a line or in a list."""
    text = text.lstrip()
    if not text.startswith("{"):
        return _LIST_OF_OBJECTS.match(text) is not None
    try:
        return isinstance(json.loads(text.partition("\n")[0]), dict)
    except (ValueError, RecursionError):
        return False
