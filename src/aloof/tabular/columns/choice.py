"""Which kind of column a column is: decided on the training rows, and said in words."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.tabular.columns.base import Column, Kind
from aloof.tabular.columns.category import MOST_CATEGORIES, CategoryColumn, as_boolean
from aloof.tabular.columns.constant import ConstantColumn
from aloof.tabular.columns.number import NumberColumn
from aloof.tabular.columns.reading import (
    Reading,
    is_temporal,
    plain,
    read_numbers,
    read_seconds,
    read_text,
)
from aloof.tabular.columns.text import TextColumn
from aloof.tabular.columns.timestamp import TimestampColumn
from aloof.text import DEFAULT_EMBEDDER

__all__ = ["Choice", "choose_column", "listed"]

# Text is taken for numbers or times if this share of it can be read as such.
_MOSTLY = 0.9
# With fewer rows nothing can be said about ids and free text.
_ENOUGH_FOR_IDS, _ENOUGH_FOR_TEXT = 50, 20
_ID_NAME = re.compile(r"(^|[^a-z])(id|uuid|guid|key|idx|rowid|rownum)s?$|[a-z]I[dD]$|^id[^a-z]")
# Layouts of dates other than ISO 8601 that mean one day only. 01/02/2024 means two.
_LAYOUTS = tuple(
    date + clock for date in ("%d.%m.%Y", "%Y/%m/%d") for clock in ("", " %H:%M", " %H:%M:%S")
)


@dataclass(frozen=True)
class Choice:
    """What becomes of a column.

    Attributes
    ----------
    column
        How it is encoded; None if it is dropped.
    reason
        Why it is dropped.
    warnings
        What the user should know.
    """

    column: Column | None
    reason: str = ""
    warnings: tuple[str, ...] = ()


def choose_column(
    name: str, array: pa.Array, kind: Kind | None = None, *, embedder: str = DEFAULT_EMBEDDER
) -> Choice:
    """Decide what to make of a column from its training rows, of which there is one at least.

    Parameters
    ----------
    name
        Its name.
    array
        Its values.
    kind
        What it is, where the user knows better.
    embedder
        What makes vectors of text.
    """
    array = plain(name, array)
    if kind is None and _is_numeric(array.type):
        return _number(name, read_numbers(name, array), array)
    values_type = array.type.value_type if pt.is_dictionary(array.type) else array.type
    if kind is None and is_temporal(values_type) and array.null_count < len(array):
        return _timestamp(name, read_seconds(name, array, _zone(values_type)), values_type)
    text = read_text(name, array)
    distinct = pc.count_distinct(text).as_py()
    if distinct == 0:
        return _constant(name, None, 1.0)
    if kind == "text":
        return _text(name, text, embedder)
    if kind is not None:
        return _forced(name, array, text, kind)
    if distinct == 1:
        return _constant(name, text.drop_null()[0].as_py(), text.null_count / len(text))
    if pt.is_dictionary(array.type):
        return _category(name, text)
    if pt.is_boolean(array.type):
        return Choice(CategoryColumn.fit(name, text, boolean=True))
    return _from_text(name, text)


def listed(values: pa.Array, most: int = 3) -> str:
    """Return the first different values, quoted, in words."""
    distinct = pc.unique(values.slice(0, 10_000)).to_pylist()
    shown = ", ".join(repr(_short(value)) for value in distinct[:most])
    return shown + (", ..." if len(distinct) > most else "")


def _forced(name: str, array: pa.Array, text: pa.Array, kind: Kind) -> Choice:
    if kind == "category":
        return Choice(CategoryColumn.fit(name, text))
    if kind == "boolean":
        return Choice(CategoryColumn.fit(name, text, boolean=True))
    if kind == "number":
        return _number(name, read_numbers(name, array), array, ids=True)
    if kind == "timestamp":
        zone = _zone(array.type)
        return _timestamp(name, read_seconds(name, array, zone), array.type)
    raise TableError(
        f"The kind of column {name!r} must be 'number', 'category', 'boolean', 'timestamp' "
        f"or 'text'; got {kind!r}."
    )


def _constant(name: str, value: str | None, missing_share: float) -> Choice:
    number = None
    if value is not None:
        (parsed,) = read_numbers(name, pa.array([value])).values
        number = float(parsed) if np.isfinite(parsed) else None
    what = (
        "is missing in every training row; a value"
        if value is None
        else f"is {_short(value)!r} wherever it is there in the training rows; another value"
    )
    return Choice(
        ConstantColumn(name, value, number, missing_share),
        warnings=(
            f"Column {name!r} {what} will count as never seen. Drop the column if it should "
            "not matter.",
        ),
    )


def _from_text(name: str, text: pa.Array) -> Choice:
    spelled = pc.utf8_lower(pc.unique(as_boolean(text)).drop_null())
    words = {word for word in spelled.slice(0, 3).to_pylist() if word in ("true", "false")}
    reading = read_numbers(name, text)
    is_number = _is_mostly_read(reading, text)
    if len(spelled) == len(words) and not is_number:
        return Choice(CategoryColumn.fit(name, text, boolean=True))
    # 00123 is a code, not a number.
    codes = pc.any(pc.match_substring_regex(text, r"^\s*[+-]?0\d")).as_py()
    if is_number and not codes:
        return _number(name, reading, text)
    for layout in (None, *_LAYOUTS):
        times = read_seconds(name, text, None, layout)
        if _is_mostly_read(times, text):
            return _timestamp(name, times, text.type, layout)
    return _category(name, text)


def _is_mostly_read(reading: Reading, text: pa.Array) -> bool:
    read = int((~np.isnan(reading.values)).sum())
    unread = 0 if reading.unreadable is None else len(reading.unreadable)
    return read > 0 and read >= _MOSTLY * (read + unread)


def _number(name: str, reading: Reading, array: pa.Array, *, ids: bool = False) -> Choice:
    finite = reading.values[np.isfinite(reading.values)]
    if len(finite) == 0 or finite.min() == finite.max():
        text = read_text(name, array)
        distinct = pc.unique(text.drop_null())
        if len(distinct) > 1:  # a number and infinity, or words that mean missing
            return _category(name, text)
        value = distinct[0].as_py() if len(distinct) else None
        return _constant(name, value, text.null_count / len(text))
    if not ids and _is_id(name, finite):
        return Choice(
            None,
            "looks like an id",
            (
                f"Column {name!r} looks like an id (another whole number in every row) and is "
                f"left out. Keep it with kinds={{{name!r}: 'number'}} (--kind {name}=number).",
            ),
        )
    unit = "s" if pt.is_duration(array.type) else ""
    column = NumberColumn.fit(name, reading.values, unit=unit)  # type: ignore[arg-type]
    return Choice(column, warnings=_remarks(column, reading, "numbers"))


def _timestamp(
    name: str, reading: Reading, kind: pa.DataType, layout: str | None = None
) -> Choice:
    there = reading.values[np.isfinite(reading.values)]
    if len(there) == 0 or np.ptp(there) == 0:
        return Choice(
            None,
            "is always the same time",
            (
                f"Column {name!r} is one time in all training rows and is left out: any "
                "later row would stand out.",
            ),
        )
    column = TimestampColumn.fit(name, reading.values, kind=kind, layout=layout)
    return Choice(column, warnings=_remarks(column, reading, "times"))


def _category(name: str, text: pa.Array) -> Choice:
    column = CategoryColumn.fit(name, text)
    present = len(text) - text.null_count
    distinct = pc.count_distinct(text).as_py()
    unique = distinct == present and present >= _ENOUGH_FOR_TEXT
    many = distinct > MOST_CATEGORIES
    covered = sum(column.shares) * len(text) / present
    if unique or (many and (distinct > present / 2 or covered < 0.2)):
        hint = ""
        if pc.all(pc.match_substring_regex(text, r"^\s*[+-]?\d+,\d+\s*$")).as_py():
            hint = " It looks like numbers with a decimal comma: write them with a point."
        return Choice(
            None,
            "is free text",
            (
                f"Column {name!r} is free text ({distinct:,} different values in "
                f"{present:,}) and is left out. Read it with kinds={{{name!r}: 'text'}} "
                f"(--text {name}), or keep its frequent values with "
                f"kinds={{{name!r}: 'category'}} (--kind {name}=category).{hint}",
            ),
        )
    if column.rare_share > 0.3:
        remark = (
            f"Column {name!r} has {distinct:,} different values; the "
            f"{len(column.categories)} most frequent have a feature each, the others "
            f"({column.rare_share:.0%} of the rows) share one."
        )
        return Choice(column, warnings=(remark,))
    return Choice(column)


def _text(name: str, text: pa.Array, embedder: str) -> Choice:
    if not pc.any(pc.match_substring_regex(text, r"\S")).as_py():
        return _constant(name, None, 1.0)
    column = TextColumn.fit(name, text, embedder)
    if not column.varies:
        return _constant(name, text.drop_null()[0].as_py(), column.missing_share)
    return Choice(column)


def _remarks(
    column: NumberColumn | TimestampColumn, reading: Reading, what: str
) -> tuple[str, ...]:
    if reading.unreadable is None:
        return ()
    return (
        f"Column {column.name!r} holds {len(reading.unreadable):,} values that cannot be read "
        f"as {what} ({listed(reading.unreadable)}); they count as missing.",
    )


def _is_id(name: str, finite: NDArray[np.float64]) -> bool:
    n = len(finite)
    if n < _ENOUGH_FOR_IDS or (finite != np.floor(finite)).any():
        return False
    distinct = len(np.unique(finite))
    if _ID_NAME.search(name) or _ID_NAME.search(name.lower()):
        return distinct >= 0.95 * n
    ahead, behind = finite[1:], finite[:-1]
    counts_on = bool((ahead > behind).all() or (ahead < behind).all())
    return distinct == n and (counts_on or float(finite.max()) - float(finite.min()) < 2 * n)


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_decimal(kind)
        or pt.is_duration(kind)
    )


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pt.is_timestamp(kind) else None


def _short(value: str, most: int = 40) -> str:
    return value if len(value) <= most else value[: most - 3] + "..."
