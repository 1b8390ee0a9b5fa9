"""Dates and times in text as people write them.

A value is read by itself. Where day and month cannot be told apart, as in 03/04/2024, the
dialect says which comes first; a date that no calendar has, such as the 31st of February, is
told from text that is no date at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.io.sections import STRICT
from aloof.models.table.dialects.outlines import outlined
from aloof.written.times import NUMBERS, PIVOT, Epoch, Order, TimeLayout, offset_of, time_layout

__all__ = ["Moments", "TimeDialect", "Times", "read_moments"]


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
        self.layouts: list[TimeLayout | None] = [
            *map(time_layout, outlines.dictionary.to_pylist()),
            None,
        ]
        codes = pc.fill_null(outlines.indices.cast(pa.int64()), len(self.layouts) - 1)
        self.codes: NDArray[np.int64] = codes.to_numpy(zero_copy_only=False)
        self.parts = {name: np.full(len(text), -1, np.int64) for name in NUMBERS}
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
        self, layout: TimeLayout, outline: str, same: pa.Array, rows: NDArray[np.int64]
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
    return np.where(year >= PIVOT, 1900 + year, 2000 + year)


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
    return np.array([offset_of(value) for value in text.to_pylist()], np.float64)
