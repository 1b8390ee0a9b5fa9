"""Values of a table's columns as the inputs of an exported model."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.phrases import count
from aloof.written.numbers import DecimalSign, ThousandsSign, read_number
from aloof.written.times import SECONDS, Epoch, Order, on_the_wall, read_time

__all__ = ["InputColumn", "Numbers", "Times", "Unread", "column_of"]

_MOST_SHOWN = 3
_BEGINNING = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Numbers:
    """How numbers in text are written; see `aloof.written.numbers`."""

    decimal: DecimalSign = "."
    thousands: ThousandsSign = ""
    unit: str = ""
    bare: bool = True


@dataclass(frozen=True)
class Times:
    """How times in text are written; see `aloof.written.times`."""

    order: Order = ""
    epoch: Epoch = ""
    compact: bool = False
    clock: bool = False


@dataclass
class Unread:
    """Values that could not be read, and count as missing.

    Attributes
    ----------
    column, what
        Its name, and what they should be.
    n
        How many.
    examples
        The first different ones.
    """

    column: str
    what: str
    n: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Count one."""
        self.n += 1
        if len(self.examples) < _MOST_SHOWN and text not in self.examples:
            self.examples.append(text)

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.examples))
        return (
            f"Column {self.column!r}: {count(self.n, 'value')} cannot be read as {self.what} "
            f"({shown}), treated as missing."
        )


@dataclass(frozen=True)
class InputColumn:
    """One input of a model of a table, as the notes of the file describe it.

    Attributes
    ----------
    name
        Of the column, and of the input.
    kind
        What it holds.
    numbers, times
        How these are written in text.
    zone
        Of wall times, or None.
    pattern
        Of times in text, in place of `times`.
    value, number
        Of a constant: the one text that it always is, and the number that this is.
    """

    name: str
    kind: Literal["number", "timestamp", "category", "boolean", "constant"]
    numbers: Numbers = Numbers()
    times: Times = Times()
    zone: str | None = None
    pattern: str | None = None
    value: str | None = None
    number: float | None = None

    @property
    def is_text(self) -> bool:
        """Whether the model takes text, and not numbers."""
        return self.kind not in ("number", "timestamp")

    def read(self, values: Sequence[Any] | NDArray[Any], note: Unread) -> NDArray[Any]:
        """Return values as the model takes them: float64, or text that is never None.

        Parameters
        ----------
        values
            Text as in a CSV file, where nothing is empty or None; or numbers, booleans, dates
            and times.
        note
            Takes what cannot be read.
        """
        if isinstance(values, np.ndarray):
            if self.kind == "number" and values.dtype.kind in "fiu":
                return values.astype(np.float64)
            cells: Sequence[Any] = values.tolist()
        else:
            cells = values
        if self.is_text:
            words = np.empty(len(cells), object)
            words[:] = [self._text_of(value) for value in cells]
            return words
        if self.kind == "number" and (quick := _quick(cells, self.numbers)) is not None:
            return quick
        known: dict[Any, float | None] = {}
        found = np.empty(len(cells))
        for place, value in enumerate(cells):
            if value not in known:
                known[value] = self._number_of(value)
            number = known[value]
            if number is None:
                note.add(str(value))
                number = math.nan
            found[place] = number
        return found

    def _number_of(self, value: Any) -> float | None:
        """Return a value as a number; NaN: it is missing, None: it cannot be read."""
        if value is None:
            return math.nan
        if isinstance(value, str):
            if self.kind == "number":
                return read_number(value, self.numbers)
            return read_time(value, self.times, self.zone, self.pattern)
        if isinstance(value, bool) and self.kind == "timestamp":
            return None
        if isinstance(value, int | float):
            if self.kind == "timestamp" and not math.isnan(value):
                if self.times.compact:
                    return read_time(str(int(value)), self.times, self.zone, self.pattern)
                return value * SECONDS[self.times.epoch] if self.times.epoch else None
            return float(value)
        if isinstance(value, dt.timedelta) and self.kind == "number":
            return value.total_seconds()
        return self._seconds_of(value) if self.kind == "timestamp" else None

    def _seconds_of(self, value: Any) -> float | None:
        if isinstance(value, dt.datetime):
            if value.tzinfo is None:
                return (value - _BEGINNING).total_seconds()
            utc = (value.astimezone(dt.UTC).replace(tzinfo=None) - _BEGINNING).total_seconds()
            return on_the_wall(utc, self.zone)
        if isinstance(value, dt.date):
            return (value.toordinal() - _BEGINNING.toordinal()) * 86_400.0
        if isinstance(value, dt.time):
            whole = value.hour * 3600.0 + value.minute * 60.0 + value.second
            return whole + value.microsecond * 1e-6
        return None

    def _text_of(self, value: Any) -> str:
        if value is None or value != value:
            return ""
        text = value if isinstance(value, str) else _written(value)
        if not text or text.isspace():
            return ""
        if self.kind == "boolean":
            return text.strip() if text.strip().lower() in _TRUTHS else text
        if self.number is not None and text != self.value:
            assert self.value is not None
            return self.value if read_number(text, Numbers()) == self.number else text
        return text


# What a boolean is written as, around which space does not count.
_TRUTHS = frozenset("true t yes y 1 false f no n 0".split())


def column_of(notes: Mapping[str, Any]) -> InputColumn:
    """Return the column that notes describe."""
    parts: dict[str, Callable[..., Any]] = {"numbers": Numbers, "times": Times}
    try:
        return InputColumn(
            **{
                name: parts[name](**value) if name in parts else value
                for name, value in notes.items()
            }
        )
    except TypeError as error:
        raise TableError(f"The model's notes about a column are of no use: {error}.") from error


def _quick(values: Sequence[Any], rules: Numbers) -> NDArray[np.float64] | None:
    """Read numbers that are all written as in programs; None: some are not."""
    if rules.unit or rules.decimal != ".":
        return None
    try:
        joined = "".join(filter(None, values))
        if "_" in joined or not joined.isascii():
            return None  # Python reads more than tables mean
        return np.array([float(value) if value else math.nan for value in values])
    except (TypeError, ValueError):
        return None


def _written(value: Any) -> str:
    """Return a value as text: 12.0 is 12, and truth is small."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
