"""Dates and times in text as people write them.

A value is read by itself. Where day and month cannot be told apart, as in 03/04/2024, the
dialect says which comes first; a date that no calendar has, such as the 31st of February, is
told from text that is no date at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.io.sections import STRICT
from aloof.models.table.dialects.months import is_weekday, month_of
from aloof.models.table.dialects.outlines import outlined

__all__ = ["Epoch", "Moments", "Order", "TimeDialect", "Times", "read_moments"]

Order = Literal["", "dmy", "mdy", "ymd"]
Epoch = Literal["", "s", "ms", "us", "ns"]

# Years of two digits from here on are of the last century.
_PIVOT = 69

_WORD = r"[^\W\d_]+"
_CLOCK = (
    r"(?P<h>99?)(?:[:.h](?P<mi>99)(?:[:.](?P<s>99)(?:[.,](?P<f>9{1,9}))?)?)?"
    r"\s*(?P<half>[ap]\.?\s?m\.?)?(?:\s*(?:uhr|h))?"
)
_ZONE = rf"\s*(?P<zone>{_WORD}(?:[+-]99?(?::?99)?)?|[+-]99(?::?99)?)"
_JOIN = r"(?:t|_|:|\s*-\s+|,?\s+(?:at\s|um\s|à\s|kl\.?\s|o\s)?\s*)"
_THEN = rf"(?:{_JOIN}{_CLOCK}(?:{_ZONE})?)?"
_OF = r"(?:de\s+|of\s+|del\s+)?"
_DATES = {
    "ymd": r"(?P<y>9999)(?P<sep>[-/.])(?P<m>99?)(?P=sep)(?P<d>99?)\.?" + _THEN,
    "parts": r"(?P<a>99?)(?P<sep>[-/.])\s?(?P<b>99?)(?P=sep)\s?(?P<c>9999|99)\.?" + _THEN,
    "day name": rf"(?P<d>99?)(?:st|nd|rd|th|er|º|\.)?[\s./-]*{_OF}(?P<month>{_WORD})\.?"
    rf"[\s.,/-]*{_OF}'?(?P<y>9999|99)" + _THEN,
    "name day": rf"(?P<month>{_WORD})\.?[\s-]*(?P<d>99?)(?:st|nd|rd|th)?,?[\s-]+(?P<y>9999)"
    + _THEN,
    "year name": rf"(?P<y>9999)[\s./-]*(?P<month>{_WORD})\.?[\s./-]*(?P<d>99?)" + _THEN,
    "unix": rf"(?P<month>{_WORD})\s+(?P<d>99?)\s+{_CLOCK}(?:{_ZONE})?\s+(?P<y>9999)",
    "compact": rf"(?P<y>9999)(?P<m>99)(?P<d>99)(?:[t\s]?(?P<h>99)(?P<mi>99)(?P<s>99)?"
    rf"(?:[.,](?P<f>9{{1,9}}))?(?:{_ZONE})?)?",
    "clock": r"(?P<h>99?)(?::(?P<mi>99)(?::(?P<s>99)(?:[.,](?P<f>9{1,9}))?)?)?"
    r"\s*(?P<half>[ap]\.?\s?m\.?)?(?:\s*(?:uhr|h))?",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _DATES.items()}
_WEEKDAY = re.compile(rf"(?P<day>{_WORD})\.?,?\s+")
# Minutes ahead of UTC, for names that mean one zone only.
_ZONES = {
    "z": 0,
    "utc": 0,
    "gmt": 0,
    "wet": 0,
    "west": 60,
    "cet": 60,
    "cest": 120,
    "mez": 60,
    "mesz": 120,
    "eet": 120,
    "eest": 180,
    "msk": 180,
    "jst": 540,
    "est": -300,
    "edt": -240,
    "mst": -420,
    "mdt": -360,
    "pst": -480,
    "pdt": -420,
}
_NUMBERS = ("y", "m", "d", "a", "b", "c", "h", "mi", "s", "f")


@dataclass(frozen=True)
class TimeDialect:
    """How the times of a column are written.

    Attributes
    ----------
    order
        Of day, month and year where all are numbers and the year has two digits or comes
        last. Empty: nobody knows, and 03/04/2024 cannot be read.
    epoch
        The unit that numbers count in since 1970; empty: numbers are no times.
    compact
        Whether 20240131 is a date.
    clock
        Whether these are times of day.
    """

    __pydantic_config__ = STRICT

    order: Order = ""
    epoch: Epoch = ""
    compact: bool = False
    clock: bool = False

    def check(self) -> None:
        """Raise a ValueError where fields contradict each other."""
        if bool(self.epoch) + self.compact + self.clock > 1:
            raise ValueError("only one of epoch, compact and clock can be")


@dataclass(frozen=True)
class _Layout:
    """Where the parts of a time are in text of one outline, see `outlined`.

    Attributes
    ----------
    kind
        Which of the patterns it follows.
    places
        Begin and end of each number.
    separator
        Between the numbers of a date.
    month
        What the name of the month means; 0: it is a number.
    half
        "a" or "p" for hours of half a day.
    offset
        Minutes ahead of UTC; None: there is no zone, or it is in numbers.
    zone
        Begin and end of a zone in numbers.
    """

    kind: str
    places: dict[str, tuple[int, int]]
    separator: str = ""
    month: int = 0
    half: str = ""
    offset: int | None = None
    zone: tuple[int, int] | None = None

    @property
    def has_short_year(self) -> bool:
        """Whether the year has two digits."""
        begin, end = self.places.get("c") or self.places.get("y") or (0, 4)
        return end - begin == 2


@lru_cache(maxsize=4096)
def _layout(outline: str) -> _Layout | None:
    """Take an outline to pieces; None: it is no time."""
    text = outline.lower()
    if len(text) != len(outline):
        return None  # letters that grow when they are made small
    begin = 1 if text.startswith("[") and text.endswith("]") else 0
    text = text[begin : len(text) - begin]
    weekday = _WEEKDAY.match(text)
    starts = [0]
    if weekday is not None and is_weekday(weekday["day"]):
        starts.append(weekday.end())
    for start in starts:
        for kind, pattern in _PATTERNS.items():
            found = pattern.fullmatch(text, start)
            if found is not None and (layout := _checked(kind, found, begin)) is not None:
                return layout
    return None


def _checked(kind: str, found: re.Match[str], shift: int) -> _Layout | None:
    parts = found.groupdict()
    places = {
        name: (found.start(name) + shift, found.end(name) + shift)
        for name in _NUMBERS
        if parts.get(name)
    }
    month = 0
    if parts.get("month"):
        known = month_of(parts["month"])
        if known is None:
            return None
        month = known
    half = (parts.get("half") or "")[:1]
    if "h" in places and "mi" not in places and not half and kind != "compact":
        return None  # an hour needs minutes, or am or pm
    offset, zone = None, None
    if written := parts.get("zone"):
        word = written.rstrip("+-:9")
        if word and word not in _ZONES:
            return None
        offset = _ZONES[word] if word else 0
        if word != written:
            if offset:
                return None
            offset, zone = None, (found.start("zone") + shift, found.end("zone") + shift)
            zone = (zone[0] + len(word), zone[1])
    separator = parts.get("sep") or ""
    if kind == "parts" and separator == "." and len(parts["c"]) == 2:
        if len(parts["a"]) < 2 or len(parts["b"]) < 2:
            return None  # 1.10.24 is rather a version
    return _Layout(kind, places, separator, month, half, offset, zone)


@dataclass(frozen=True)
class Times:
    """Times that were read.

    Attributes
    ----------
    seconds
        Since 1970, or since midnight; NaN where there is none.
    is_instant
        Where seconds are of UTC, not of a wall clock.
    impossible
        Where there is a date that no calendar has, or a time that no clock has.
    """

    seconds: NDArray[np.float64]
    is_instant: NDArray[np.bool_]
    impossible: NDArray[np.bool_]


class Moments:
    """Clean text taken to pieces: the numbers in dates and times.

    Parameters
    ----------
    text
        See `clean`.
    """

    def __init__(self, text: pa.Array) -> None:
        outlines = outlined(text).dictionary_encode()
        self.layouts: list[_Layout | None] = [
            *map(_layout, outlines.dictionary.to_pylist()),
            None,
        ]
        codes = pc.fill_null(outlines.indices.cast(pa.int64()), len(self.layouts) - 1)
        self.codes: NDArray[np.int64] = codes.to_numpy(zero_copy_only=False)
        self.parts = {name: np.full(len(text), -1, np.int64) for name in _NUMBERS}
        self.offset = np.full(len(text), np.nan)
        order = np.argsort(self.codes, kind="stable")
        ends = np.flatnonzero(np.diff(self.codes[order], append=-1)) + 1
        begin = 0
        for end in ends.tolist():
            rows, begin = order[begin:end], end
            layout = self.layouts[self.codes[rows[0]]]
            if layout is not None:
                outline = outlines.dictionary[int(self.codes[rows[0]])].as_py()
                self._fill(layout, outline, text.take(pa.array(rows)), rows)

    def _fill(
        self, layout: _Layout, outline: str, same: pa.Array, rows: NDArray[np.int64]
    ) -> None:
        # Text of one outline has digits in the same places.
        bytes_of = np.frombuffer(same.buffers()[2], np.uint8, len(outline.encode()) * len(same))
        written = bytes_of.reshape(len(same), -1)
        for name, (first, last) in layout.places.items():
            place, number = len(outline[:first].encode()), np.zeros(len(same), np.int64)
            for digit in range(place, place + last - first):
                number = 10 * number + (written[:, digit] - 48)
            fraction = 10 ** (9 - (last - first)) if name == "f" else 1
            self.parts[name][rows] = number * fraction
        if layout.month:
            self.parts["m"][rows] = layout.month
        if layout.half:
            hours = self.parts["h"][rows]
            right = (hours >= 1) & (hours <= 12)
            hours = hours % 12 + (12 if layout.half == "p" else 0)
            self.parts["h"][rows] = np.where(right, hours, 99)
        if layout.offset is not None:
            self.offset[rows] = layout.offset
        elif layout.zone is not None:
            self.offset[rows] = _offsets(pc.utf8_slice_codeunits(same, *layout.zone))

    def of_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Return which values follow one of these patterns."""
        flags = [layout is not None and layout.kind in kinds for layout in self.layouts]
        return np.array(flags)[self.codes]

    @property
    def is_time(self) -> NDArray[np.bool_]:
        """Which values are written as some time, possible or not."""
        return np.array([layout is not None for layout in self.layouts])[self.codes]

    def separated_by(self, sign: str) -> NDArray[np.bool_]:
        """Return which dates have this sign between their numbers."""
        flags = [layout is not None and layout.separator == sign for layout in self.layouts]
        return np.array(flags)[self.codes]

    @property
    def has_short_year(self) -> NDArray[np.bool_]:
        """Which dates have a year of two digits."""
        flags = [layout is not None and layout.has_short_year for layout in self.layouts]
        return np.array(flags)[self.codes]

    def times(self, dialect: TimeDialect) -> Times:
        """Read what the dialect allows."""
        clock, compact = self.of_kind("clock"), self.of_kind("compact")
        known = self.is_time & (clock == dialect.clock) & (~compact | dialect.compact)
        year, month, day, open_order = self._dates(dialect.order)
        known &= ~open_order
        year = np.where(self.has_short_year & (year >= 0), _century(year), year)
        seconds, right = _of_day(self.parts)
        if not dialect.clock:
            days, exists = _days(year, month, day)
            seconds, right = days * 86_400.0 + seconds, right & exists
        instants = ~np.isnan(self.offset)
        seconds = np.where(instants, seconds - 60 * np.nan_to_num(self.offset), seconds)
        return Times(np.where(known & right, seconds, np.nan), instants & known, known & ~right)

    def _dates(self, order: Order) -> tuple[Any, Any, Any, NDArray[np.bool_]]:
        """Return year, month and day, and where nobody can tell which is which."""
        year, month, day = (self.parts[name].copy() for name in ("y", "m", "d"))
        parts = self.of_kind("parts")
        a, b, c = (self.parts[name] for name in ("a", "b", "c"))
        day_first = parts & (order == "dmy")
        month_first = parts & (order == "mdy")
        year_first = parts & (order == "ymd") & self.has_short_year
        if not order:
            is_open = self.has_short_year & ~self.separated_by(".")
            day_first = parts & ~is_open & (((a > 12) & (b <= 12)) | self.separated_by("."))
            day_first |= parts & ~is_open & (a == b)
            month_first = parts & ~is_open & ~day_first & (b > 12) & (a <= 12)
        for which, places in (
            (day_first, (c, b, a)),
            (month_first, (c, a, b)),
            (year_first, (a, b, c)),
        ):
            for target, source in zip((year, month, day), places, strict=True):
                target[which] = source[which]
        return year, month, day, parts & ~day_first & ~month_first & ~year_first


def read_moments(text: pa.Array, dialect: TimeDialect) -> Times:
    """Return the times that clean text holds by a dialect."""
    return Moments(text).times(dialect)


def _century(year: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(year >= _PIVOT, 1900 + year, 2000 + year)


def _of_day(parts: dict[str, NDArray[np.int64]]) -> tuple[NDArray[np.float64], Any]:
    """Return seconds since midnight, and where such a time exists."""
    hours, minutes, seconds, fraction = (np.maximum(parts[n], 0) for n in ("h", "mi", "s", "f"))
    right = (hours < 24) & (minutes < 60) & (seconds < 60)
    return hours * 3600.0 + minutes * 60.0 + seconds + fraction * 1e-9, right


def _days(
    year: NDArray[np.int64], month: NDArray[np.int64], day: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return days since 1970, and where there is such a day."""
    exists = (year >= 1) & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(exists, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    exists &= day <= length
    return (first + day - 1).astype(np.float64), exists


def _offsets(text: pa.Array) -> NDArray[np.float64]:
    """Return minutes ahead of UTC of zones such as +02:00, +0200 and -5."""
    minutes = []
    for value in text.to_pylist():
        digits = value[1:].replace(":", "")
        hours, rest = (digits, "0") if len(digits) < 3 else (digits[:-2], digits[-2:])
        total = int(hours) * 60 + int(rest)
        minutes.append(-total if value[0] == "-" else total)
    return np.array(minutes, np.float64)
