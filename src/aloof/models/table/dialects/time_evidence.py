"""What the values of a column say about how its times are written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from shlex import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.table.dialects.cells import MOSTLY, clean, is_missing, some_of
from aloof.models.table.dialects.hints import Hints, Locale, Question
from aloof.models.table.dialects.times import Moments, TimeDialect
from aloof.phrases import count
from aloof.written.times import Epoch, Order

__all__ = [
    "TimeEvidence",
    "TimeFinding",
    "are_durations",
    "epoch_of",
    "find_times",
    "is_compact",
    "locale_of_times",
]

_FIRST = {"dmy": "day", "mdy": "month", "ymd": "year"}
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
# Numbers since 1970 are times only if the column says so and all are of these years.
_EARLIEST, _LATEST = 946_684_800, 4_102_444_800  # 2000 to 2100
_EPOCHS: dict[Epoch, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_DURATION_NAME = re.compile("dura|dauer|elapsed|length|runtime|uptime|laufzeit|took|spent")
_TIME_NAME = re.compile(
    r"time|date|stamp|epoch|created|updated|modified|datum|zeit|fecha|hora|heure|(^|[^a-z])"
    r"(ts|at|when|dt|on|unix)$|^(ts|dt|unix)"
)


@dataclass
class TimeEvidence:
    """Counts of values by what they say.

    Attributes
    ----------
    n_values
        How many there are, without missing ones.
    n_times, n_clocks
        How many are written as dates, with or without times, and as times of day.
    n_parts
        How many dates are of numbers only, with the year behind or of two digits.
    n_day_first, n_month_first, n_year_first
        How many of these can only be read in this order.
    n_dots
        How many of them have points between the numbers, as where days come first.
    n_short
        How many have a year of two digits that may come first as well: with dashes, or where
        the last number varies more than the first.
    n_same
        How many mean the same whether the day or the month comes first.
    examples
        The first value of each sort.
    """

    n_values: int = 0
    n_times: int = 0
    n_clocks: int = 0
    n_parts: int = 0
    n_day_first: int = 0
    n_month_first: int = 0
    n_year_first: int = 0
    n_dots: int = 0
    n_short: int = 0
    n_same: int = 0
    examples: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: pa.Array) -> TimeEvidence:
        """Look at all values of a column of text; a part is enough where no order matters."""
        if (part := some_of(text)) is not None:
            some = cls._counted(clean(part))
            if some.share < MOSTLY / 2 or not some.n_parts:
                return some
        return cls._counted(clean(text))

    @classmethod
    def _counted(cls, text: pa.Array) -> TimeEvidence:
        there = text.filter(pc.invert(is_missing(text)))
        moments = Moments(there)
        a, b, c = (moments.parts[name] for name in ("a", "b", "c"))
        parts, short = moments.of_kind("parts"), moments.has_short_year
        dots = moments.separated_by(".")
        day = parts & (a > 12) & (a <= 31) & (b <= 12)
        month = parts & (b > 12) & (b <= 31) & (a <= 12)
        year = parts & short & (a > 31) & (b <= 12) & (c <= 31)
        doubtful = parts & short & ~year
        if (parts & short & (c > 31)).any():
            doubtful[:] = False  # the year is behind
        elif doubtful.any() and len(np.unique(c[doubtful])) <= len(np.unique(a[doubtful])):
            doubtful &= moments.separated_by("-")  # 24/01/15 where days vary more than years
        same = parts & (a == b) & ~doubtful
        found = cls(
            n_values=len(there),
            n_times=int((moments.is_time & ~moments.of_kind("clock", "compact")).sum()),
            n_clocks=int(moments.of_kind("clock").sum()),
            n_parts=int(parts.sum()),
            n_day_first=int(day.sum()),
            n_month_first=int(month.sum()),
            n_year_first=int(year.sum()),
            n_dots=int((parts & dots).sum()),
            n_short=int(doubtful.sum()),
            n_same=int(same.sum()),
        )
        sorts = {"day": day, "month": month, "year": year, "same": same, "parts": parts}
        sorts |= {"open": parts & ~day & ~month & ~year & ~same}
        for sort, which in sorts.items():
            if which.any():
                found.examples[sort] = there[int(which.argmax())].as_py()
        return found

    @property
    def share(self) -> float:
        """The share of the values that are written as times."""
        n = max(self.n_times, self.n_clocks)
        return n / self.n_values if self.n_values else 0.0

    @property
    def is_times(self) -> bool:
        """Whether nearly all values are written as dates or times."""
        return self.n_values > 0 and self.share >= MOSTLY

    @property
    def order(self) -> Order:
        """The order that the values leave no doubt about, or nothing."""
        counts: dict[Order, int] = {
            "dmy": self.n_day_first,
            "mdy": self.n_month_first,
            "ymd": self.n_year_first,
        }
        if self.n_short and not self.n_year_first:
            return ""  # 24-01-15 may begin with a year
        (most, n), *others = sorted(counts.items(), key=lambda pair: -pair[1])
        rest = sum(count for _, count in others)
        return most if n and rest <= (1 - MOSTLY) * n else ""


@dataclass(frozen=True)
class TimeFinding:
    """How the times of a column are read.

    Attributes
    ----------
    dialect
        The rules.
    said
        What was understood and why, in words; nothing where it goes without saying.
    """

    dialect: TimeDialect
    said: str = ""


def locale_of_times(columns: dict[str, TimeEvidence], numbers: Locale) -> Locale:
    """Return what columns that leave no doubt say about the order in all columns.

    Parameters
    ----------
    columns
        What their values say.
    numbers
        What is known of numbers. Where decimals stand behind a comma, no month comes first.
    """
    orders = {
        name: found.order
        for name, found in columns.items()
        if found.is_times and found.order in ("dmy", "mdy")
    }
    if len({*orders.values()}) == 1:
        name, order = next(iter(orders.items()))
        example = columns[name].examples[_FIRST[order]]
        return replace(numbers, order=order, order_from=f"column {name!r} has {example!r}")
    if not orders and numbers.decimal == ",":
        where = f"{numbers.decimal_from}, a decimal comma"
        return replace(numbers, order="dmy", order_from=where)
    return numbers


def find_times(name: str, found: TimeEvidence, hints: Hints) -> TimeFinding:
    """Decide how the times of a column are read; `Question` where nobody can tell."""
    if found.n_clocks > found.n_times:
        return TimeFinding(TimeDialect(clock=True), "times of day")
    if not found.n_parts:
        return TimeFinding(TimeDialect())
    order, why = _order(name, found, hints)
    return TimeFinding(TimeDialect(order=order), _words(found, order, why))


def _order(name: str, found: TimeEvidence, hints: Hints) -> tuple[Order, str]:
    n = count(found.n_values, "value")
    if hints.day_first is not None:
        order: Order = "dmy" if hints.day_first else "mdy"
        against = found.n_month_first if hints.day_first else found.n_day_first
        if against > (1 - MOSTLY) * found.n_values:
            other = "month" if hints.day_first else "day"
            layout = "%m/%d/%Y" if hints.day_first else "%d/%m/%Y"
            raise TableError(
                f"Column {name!r} cannot have the {_FIRST[order]} first: {against:,} of {n} "
                f"have the {other} first, such as {found.examples[other]!r}. Leave out "
                f"--{_FIRST[order]}-first, or say how this column is written: "
                f"date_formats={{{name!r}: {layout!r}}} (--date-format "
                f"{quote(f'{name}={layout}')})."
            )
        return order, "as you said"
    if own := found.order:
        sure = {
            "dmy": f"{found.n_day_first:,} of {n} have a day above 12",
            "mdy": f"{found.n_month_first:,} of {n} have a day above 12",
            "ymd": f"{found.n_year_first:,} of {n} begin with a number above 31",
        }
        return own, sure[own]
    if found.n_day_first and found.n_month_first:
        raise Question(
            f"Column {name!r} mixes dates with the day first, such as "
            f"{found.examples['day']!r} ({found.n_day_first:,}), and dates with the month "
            f"first, such as {found.examples['month']!r} ({found.n_month_first:,}). Correct "
            f"one kind, or leave the column out: drop=[{name!r}] (--drop {quote(name)})."
        )
    if found.n_dots == found.n_parts:
        return "dmy", "dates with points have the day first"
    if hints.locale.order and not found.n_short:
        known: Order = "dmy" if hints.locale.order == "dmy" else "mdy"
        return known, f"because {hints.locale.order_from}"
    if found.n_same == found.n_parts:
        return "", ""
    raise _question(name, found)


def _question(name: str, found: TimeEvidence) -> Question:
    example = found.examples.get("open") or found.examples["parts"]
    moments = Moments(clean(pa.array([example])))
    a, b, c = (int(moments.parts[part][0]) for part in ("a", "b", "c"))
    if found.n_short:
        sign = next(sign for sign in "-/." if sign in example)
        return Question(
            f"Column {name!r}: it is impossible to tell day, month and year in {example!r} "
            f"and the other {count(found.n_parts - 1, 'date')}. Say how they are written, "
            f"such as date_formats={{{name!r}: '%d{sign}%m{sign}%y'}} (--date-format "
            f"{quote(f'{name}=%d{sign}%m{sign}%y')}) or date_formats={{{name!r}: "
            f"'%y{sign}%m{sign}%d'}} (--date-format {quote(f'{name}=%y{sign}%m{sign}%d')})."
        )
    year = c if c > 99 else (1900 if c >= 69 else 2000) + c
    day, month = (f"{x} {_MONTHS[y - 1]} {year}" for x, y in ((a, b), (b, a)))
    return Question(
        f"Column {name!r}: {example!r} could be {day} or {month}. None of its "
        f"{count(found.n_parts, 'date')} has a day above 12, and no other column settles it. "
        "Set day_first=True (--day-first) or day_first=False (--month-first)."
    )


def _words(found: TimeEvidence, order: Order, why: str) -> str:
    if not order:
        return ""
    sorts = ("open", "day" if order == "dmy" else "month", "year", "same", "parts")
    example = next(found.examples[sort] for sort in sorts if sort in found.examples)
    (seconds,) = Moments(clean(pa.array([example]))).times(TimeDialect(order=order)).seconds
    if seconds != seconds:
        return f"dates, {_FIRST[order]} first ({why})"
    day = np.datetime64(int(seconds // 86_400), "D").item()
    meant = f"{day.day} {_MONTHS[day.month - 1]} {day.year}"
    return f"dates, {_FIRST[order]} first: {example!r} is {meant} ({why})"


def are_durations(name: str, found: TimeEvidence) -> bool:
    """Say whether what looks like times of day is rather how long something took."""
    return found.n_clocks > found.n_times and bool(_DURATION_NAME.search(name.lower()))


def epoch_of(name: str, values: NDArray[np.float64], *, asked: bool = False) -> Epoch:
    """Return the unit of numbers that count from 1970 on, or nothing.

    Parameters
    ----------
    name
        Of the column: where the user says nothing, it must be that of a time.
    values
        The numbers.
    asked
        Whether the user says that they are times.
    """
    there = values[np.isfinite(values)]
    if len(there) == 0 or not (asked or _TIME_NAME.search(name.lower())):
        return ""
    low, high = float(there.min()), float(there.max())
    for unit, size in _EPOCHS.items():
        if _EARLIEST * size <= low and high < _LATEST * size:
            return unit
    return ""


def is_compact(values: NDArray[np.float64]) -> bool:
    """Say whether numbers are dates such as 20240131, or 20240131235959, and not all one."""
    there = values[np.isfinite(values)]
    if len(there) < 2 or (there != np.floor(there)).any():
        return False
    low, high = float(there.min()), float(there.max())
    ranges = ((19_000_101, 21_001_231), (19_000_101_000_000, 21_001_231_235_959))
    if low == high or not any(first <= low and high <= last for first, last in ranges):
        return False
    text = pa.array([f"{value:.0f}" for value in np.unique(there).tolist()])
    found = Moments(text).times(TimeDialect(compact=True))
    return bool((~np.isnan(found.seconds)).all())
