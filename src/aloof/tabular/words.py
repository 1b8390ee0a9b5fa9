"""Reasons in words: what is there, and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, isfinite, log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.tabular.columns import (
    CategoryColumn,
    Column,
    ConstantColumn,
    NumberColumn,
    TextColumn,
    TimestampColumn,
)

__all__ = ["duration_words", "number_words", "reasons_of_column"]

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# A value is said to be missing rarely up to this share of the training rows.
_RARELY = 0.05
_TOGETHER = " is unusual together with the rest of the row"


def reasons_of_column(
    column: Column,
    values: NDArray[Any],
    expected: NDArray[Any],
    contributions: NDArray[np.float64],
    features: NDArray[np.float64],
) -> list[str]:
    """Say for some rows why a column stands out.

    Parameters
    ----------
    column
        What was learned about it.
    values, expected
        What is there and what was expected, ``(n,)``, as `TableEncoder.read` gives it.
    contributions, features
        Of each feature of the column, and what was expected of it, ``(n, len(parts))``.
    """
    name = f"`{column.name}`"
    if isinstance(column, TimestampColumn):
        aspects = _aspects(column, contributions)
        weekdays = _expected_weekdays(column, features)
        rows = zip(values, expected, aspects, weekdays, strict=True)
        return [f"{name} {_time(column, *row)}" for row in rows]
    say: Callable[[Any, Any, Any], str] = _SAY[type(column)]
    return [f"{name} {say(column, *row)}" for row in zip(values, expected, strict=True)]


def number_words(value: float, digits: int = 6) -> str:
    """Return a number with so many significant digits, as people write it.

    Examples
    --------
    >>> number_words(9120.0), number_words(0.12345678, 2), number_words(1.5e20)
    ('9,120', '0.12', '1.5e+20')
    """
    if not isfinite(value):
        return "infinity" if value > 0 else "minus infinity"
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if not -5 < size < 15:
        return f"{value:.{min(digits, 3)}g}"
    places = digits - 1 - size
    rounded = round(value, places)
    text = f"{rounded:,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_words(seconds: float, digits: int = 3) -> str:
    """Return a duration as people write it.

    Examples
    --------
    >>> duration_words(45.0), duration_words(5400.0), duration_words(200_000.0)
    ('45 s', '90 min', '55.6 h')
    """
    for size, unit in ((259_200.0, "days"), (7_200.0, "h"), (120.0, "min")):
        if isfinite(seconds) and abs(seconds) >= size:
            length = {"days": 86_400.0, "h": 3_600.0, "min": 60.0}[unit]
            return f"{number_words(seconds / length, digits)} {unit}"
    return f"{number_words(seconds, digits)} s"


def _number(column: NumberColumn, value: float, expected: float) -> str:
    write = duration_words if column.unit == "s" else number_words
    if np.isnan(value):
        return _missing(column, "" if np.isnan(expected) else f"about {write(expected, 2)}")
    exact = column.whole and not column.unit and abs(value) < 1e15
    there = f"{value:,.0f}" if exact and value == floor(value) else write(value)
    if np.isnan(expected):
        return f"{there} where none was expected"
    for digits in (2, 3):
        if write(value, digits) != write(expected, digits):
            return f"{there} where about {write(expected, digits)} was expected"
    return f"{there}{_TOGETHER}"


def _category(column: CategoryColumn, value: str | None, expected: str | None) -> str:
    if value is None:
        return _missing(column, _quoted(column, expected))
    there = _quoted(column, value)
    if not column.is_known(value):
        return f"{there}, never seen in training"
    if value not in column.categories:
        return f"{there}, rare in training"
    if value == expected:
        return f"{there}{_TOGETHER}"
    if expected is None:
        return f"{there} where none was expected"
    return f"{there} where {_quoted(column, expected)} was expected"


def _constant(column: ConstantColumn, value: str | None, expected: str | None) -> str:
    if value is None:
        return _missing(column, "")
    if column.value is None:
        return f"'{_short(value)}', never there in training"
    return f"'{_short(value)}' where it always was '{_short(column.value)}' in training"


def _text(column: TextColumn, value: str | None, expected: None) -> str:
    if value is None:
        return _missing(column, "")
    return f"'{_short(value)}' reads unlike what is usual"


def _time(column: TimestampColumn, value: Any, expected: Any, aspect: str, weekday: str) -> str:
    if np.isnat(value):
        return _missing(column, "")
    clock = str(value.astype("datetime64[s]"))[11:16]
    if aspect == "time of day":
        usual = str(expected.astype("datetime64[s]"))[11:16]
        return _apart(f"at {clock}", f"about {usual}", clock == usual)
    if aspect == "weekday":
        there = _DAYS[int((value.astype("datetime64[D]").astype(np.int64) + 3) % 7)]
        return _apart(f"on a {there}", weekday, there == weekday)
    if aspect == "missing":
        return f"{_stamp(value)} where none was expected"
    low, high = (np.datetime64(int(at), "s") for at in (column.low, column.high))
    if not low <= value <= high:
        return f"{_stamp(value)}, outside of training ({_day(low)} to {_day(high)})"
    there, usual = _day(value), _day(expected)
    return _apart(there, f"about {usual}", there == usual)


def _aspects(column: TimestampColumn, contributions: NDArray[np.float64]) -> list[str]:
    """Return for each row which side of a time stands out most."""
    sides = [part.partition(" (")[0] for part in column.parts]
    distinct = list(dict.fromkeys(sides))
    sums = np.stack(
        [contributions[:, [s == side for s in sides]].sum(axis=1) for side in distinct], axis=1
    )
    return [distinct[i] for i in sums.argmax(axis=1)]


def _expected_weekdays(column: TimestampColumn, features: NDArray[np.float64]) -> list[str]:
    if column.week is None:
        return [""] * len(features)
    at = column.parts.index("weekday (sine)")
    phase = column.week.decode(features[:, at : at + 2])
    return [_DAYS[int(day)] for day in np.rint(7 * phase) % 7]


_SAY: dict[type, Callable[..., str]] = {
    NumberColumn: _number,
    CategoryColumn: _category,
    ConstantColumn: _constant,
    TextColumn: _text,
}


def _missing(column: Column, expected: str) -> str:
    share = column.missing_share
    if share == 0:
        return "is missing, which it never was in training"
    if share <= _RARELY:
        return f"is missing, as in only {100 * share:.2g} % of the training rows"
    return f"is missing where {expected or 'a value'} was expected"


def _apart(there: str, usual: str, same: bool) -> str:
    return f"{there}{_TOGETHER}" if same else f"{there} where {usual} was expected"


def _quoted(column: CategoryColumn, value: str | None) -> str:
    if value is None:
        return ""
    return value if column.boolean or value == "rare values" else f"'{_short(value)}'"


def _short(value: str, most: int = 40) -> str:
    return value if len(value) <= most else value[: most - 3] + "..."


def _day(time: Any) -> str:
    return str(time.astype("datetime64[D]"))


def _stamp(time: Any) -> str:
    return str(time.astype("datetime64[s]"))[:16].replace("T", " ")
