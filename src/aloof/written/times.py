"""Dates and times in text as people write them.

A value is read by itself. Where day and month cannot be told apart, as in 03/04/2024, the
dialect says which comes first; a date that no calendar has, such as the 31st of February, is
told from text that is no date at all.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from aloof.exceptions import TableError
from aloof.written.cells import clean_text, means_nothing
from aloof.written.months import is_weekday, month_of
from aloof.written.numbers import NumberRules, read_number

__all__ = [
    "CLOCK",
    "DATE",
    "NUMBERS",
    "PIVOT",
    "SECONDS",
    "ZONE",
    "Epoch",
    "Order",
    "TimeLayout",
    "TimeRules",
    "offset_of",
    "on_the_wall",
    "read_by_pattern",
    "read_time",
    "time_layout",
]

# Times as ISO 8601 has them.
DATE = r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
CLOCK = r"([ T]([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?)?"
ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)$"
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

Order = Literal["", "dmy", "mdy", "ymd"]
Epoch = Literal["", "s", "ms", "us", "ns"]

# Years of two digits from here on are of the last century.
PIVOT = 69

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
NUMBERS = ("y", "m", "d", "a", "b", "c", "h", "mi", "s", "f")
_IS_ISO = re.compile(DATE + CLOCK + f"(?:{ZONE[:-1]})?$", re.ASCII)
_ISO = re.compile(
    r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"
    r"(?:[ T](?P<h>\d\d)(?::(?P<mi>\d\d)(?::(?P<s>\d\d)(?:\.(?P<f>\d{1,6}))?)?)?)?"
    r"(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)
_DIGIT = re.compile("[0-9]")
_BEGINNING = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIXED = re.compile(r"[+-]\d{2}(:?\d{2})?")


class TimeRules(Protocol):
    """How times are written: what `TimeDialect` of `aloof.models.table` has."""

    @property
    def order(self) -> Order:
        """Of day, month and year in numbers; empty: nobody knows."""

    @property
    def epoch(self) -> Epoch:
        """The unit that numbers count in since 1970; empty: numbers are no times."""

    @property
    def compact(self) -> bool:
        """Whether 20240131 is a date."""

    @property
    def clock(self) -> bool:
        """Whether these are times of day."""


@dataclass(frozen=True)
class TimeLayout:
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
def time_layout(outline: str) -> TimeLayout | None:
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


def _checked(kind: str, found: re.Match[str], shift: int) -> TimeLayout | None:
    parts = found.groupdict()
    places = {
        name: (found.start(name) + shift, found.end(name) + shift)
        for name in NUMBERS
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
    return TimeLayout(kind, places, separator, month, half, offset, zone)


class _PlainNumbers(NamedTuple):
    decimal: Literal["."] = "."
    thousands: Literal[""] = ""
    unit: str = ""
    bare: bool = True


_PLAIN: NumberRules = _PlainNumbers()


def read_time(
    text: str, rules: TimeRules, zone: str | None, pattern: str | None = None
) -> float | None:
    """Return the seconds of wall time since 1970, or since midnight, that a cell stands for.

    Parameters
    ----------
    text
        The cell.
    rules
        How times are written.
    zone
        Where the wall is; None: nobody knows, and times with a zone are those of UTC.
    pattern
        How times are written, as in `time.strptime`, in place of the rules.

    Returns
    -------
    NaN: the cell holds none. None: it cannot be read, or there is no such day.
    """
    text = clean_text(text)
    if pattern is not None:
        seconds, aware = read_by_pattern(text, pattern)
        if math.isnan(seconds):
            return math.nan if means_nothing(text) else None
        return on_the_wall(seconds, zone) if aware else seconds
    if rules.epoch:
        number = read_number(text, _PLAIN)
        return None if number is None else number * SECONDS[rules.epoch]
    if not rules.clock and _IS_ISO.match(text):
        found = _ISO.fullmatch(text)
        assert found is not None
        parts = {name: int(found[name] or "0") for name in ("y", "m", "d", "h", "mi", "s")}
        parts["f"] = int((found["f"] or "0").ljust(9, "0"))
        offset = None
        if found["zone"] and not found["h"]:
            return None  # a day begins somewhere else in each zone
        if found["zone"]:
            offset = 0 if found["zone"] == "Z" else offset_of(found["zone"])
        return _seconds(parts, offset, zone, clock=False)
    if means_nothing(text):
        return math.nan
    layout = time_layout(_DIGIT.sub("9", text))
    if layout is None:
        return None
    is_right_kind = (layout.kind == "clock") == rules.clock
    if not is_right_kind or (layout.kind == "compact" and not rules.compact):
        return None
    parts = dict.fromkeys(NUMBERS, -1)
    for name, (begin, end) in layout.places.items():
        digits = text[begin:end]
        parts[name] = int(digits.ljust(9, "0") if name == "f" else digits)
    if layout.month:
        parts["m"] = layout.month
    if layout.half:
        hours = parts["h"]
        right = 1 <= hours <= 12
        parts["h"] = hours % 12 + (12 if layout.half == "p" else 0) if right else 99
    if layout.kind == "parts" and not _put_in_order(parts, layout, rules.order):
        return None
    if layout.has_short_year and parts["y"] >= 0:
        parts["y"] += 1900 if parts["y"] >= PIVOT else 2000
    offset = layout.offset
    if layout.zone is not None:
        offset = offset_of(text[slice(*layout.zone)])
    return _seconds(parts, offset, zone, clock=rules.clock)


def read_by_pattern(text: str, pattern: str) -> tuple[float, bool]:
    """Return the seconds that text means by a pattern, and whether they are those of UTC."""
    try:
        time = dt.datetime.strptime(text, pattern)
    except ValueError:
        return math.nan, False
    aware = time.tzinfo is not None
    if not aware:
        time = time.replace(tzinfo=dt.UTC)
    return (time - _BEGINNING).total_seconds(), aware


def offset_of(text: str) -> int:
    """Return minutes ahead of UTC of a zone such as +02:00, +0200 or -5."""
    digits = text[1:].replace(":", "")
    hours, rest = (digits, "0") if len(digits) < 3 else (digits[:-2], digits[-2:])
    total = int(hours) * 60 + int(rest)
    return -total if text[0] == "-" else total


def _put_in_order(parts: dict[str, int], layout: TimeLayout, order: Order) -> bool:
    """Find out year, month and day of a date in numbers; False: nobody can tell."""
    a, b, c = (parts[name] for name in "abc")
    by_points = layout.separator == "."
    if not order:
        if layout.has_short_year and not by_points:
            return False
        if (a > 12 and b <= 12) or by_points or a == b:
            order = "dmy"
        elif b > 12 and a <= 12:
            order = "mdy"
        else:
            return False
    if order == "ymd" and not layout.has_short_year:
        return False
    places = {"dmy": (c, b, a), "mdy": (c, a, b), "ymd": (a, b, c)}[order]
    parts["y"], parts["m"], parts["d"] = places
    return True


def _seconds(
    parts: dict[str, int], offset: int | None, zone: str | None, *, clock: bool
) -> float | None:
    """Return seconds; None: no calendar and no clock has this time."""
    hours, minutes, seconds, fraction = (max(parts[n], 0) for n in ("h", "mi", "s", "f"))
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    found = hours * 3600.0 + minutes * 60.0 + seconds + fraction * 1e-9
    if not clock:
        try:
            day = dt.date(parts["y"], parts["m"], parts["d"])
        except ValueError:
            return None
        found += (day.toordinal() - _BEGINNING.toordinal()) * 86_400.0
    if offset is None:
        return found
    found -= 60.0 * offset
    return found if clock else on_the_wall(found, zone)


def on_the_wall(seconds: float, zone: str | None) -> float:
    """Return seconds of wall time in a zone, from those of UTC."""
    if zone is None or zone == "UTC":
        return seconds
    if _FIXED.fullmatch(zone):
        return seconds + 60.0 * offset_of(zone)
    moment = _BEGINNING + dt.timedelta(seconds=math.floor(seconds))
    ahead = moment.astimezone(_zone(zone)).utcoffset()
    assert ahead is not None
    return seconds + ahead.total_seconds()


@lru_cache(maxsize=16)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise TableError(
            f"The time zone {name!r} is unknown on this machine. Install the package tzdata."
        ) from error
