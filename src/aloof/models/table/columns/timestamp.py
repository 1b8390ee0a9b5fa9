"""Columns of dates, points in time and times of day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray
from pydantic import Field

from aloof.exceptions import TableError
from aloof.models.table.columns.base import (
    NEVER,
    RARE,
    Choice,
    Column,
    Note,
    Positive,
    Share,
    Values,
    flag_weight,
)
from aloof.models.table.columns.reading import Reading, is_temporal, read_seconds
from aloof.models.table.dialects import TimeDialect
from aloof.models.table.dialects.layouts import check_layout
from aloof.models.table.dialects.time_evidence import are_durations
from aloof.models.table.words import against, missing_words

__all__ = ["DAY", "FREE", "GROWING", "Cycle", "TimestampColumn"]

DAY = 86_400.0
# Time goes on: so much later or earlier than in training, or the length of the training
# period if it is longer, is no reason to stand out. Beyond, it becomes one little by little.
FREE, GROWING = 5 * 365.25 * DAY, 2 * 365.25 * DAY
# What a training period has to cover: all hours, all weekdays, and so many weeks that these
# are not tied to the position. Otherwise every later row would be a pair never seen.
_ALL_HOURS, _ALL_WEEKDAYS, _LONG = DAY, 6 * DAY, 8 * 7 * DAY
# Share of the training period at each of its ends in which all positions are the same. Later
# rows are there, too, and at the very end, where few rows are, more of them would stand out.
_END = 0.25
# Beyond, datetime64[s] has no calendar.
_FARTHEST = 2.0**56
# Where the user says that a column is times, or it looks like some, at least so many must be.
_FEWEST = 0.5
# Standard deviations in a period: more than there can be in any training data.
_LONGEST = 1e9
_OnCircle = Annotated[float, Field(ge=-1 - 1e-9, le=1 + 1e-9)]
_ISO = TimeDialect()
_COUNTED = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Cycle:
    """A point on a circle: mean of its sine and cosine in training, and their weight."""

    __pydantic_config__ = Column.__pydantic_config__

    sine: _OnCircle
    cosine: _OnCircle
    weight: Annotated[float, Field(gt=0, le=RARE)]

    @classmethod
    def fit(cls, phase: NDArray[np.float64], share: float) -> Cycle:
        """Learn from phases of 0 to 1; `share` is the variance the circle gets."""
        sine, cosine = np.sin(2 * np.pi * phase), np.cos(2 * np.pi * phase)
        spread = float(np.sqrt(sine.var() + cosine.var()))
        weight = min(1 / spread, RARE) if spread > 0 else RARE
        return cls(float(sine.mean()), float(cosine.mean()), weight * float(np.sqrt(share)))

    def encode(self, phase: NDArray[np.float64], out: NDArray[np.float32]) -> None:
        """Write weighted sine and cosine into two columns."""
        angle = 2 * np.pi * phase
        out[:, 0] = (np.sin(angle) - self.sine) * self.weight
        out[:, 1] = (np.cos(angle) - self.cosine) * self.weight

    def decode(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the phases that two columns stand for."""
        sine = features[:, 0] / self.weight + self.sine
        cosine = features[:, 1] / self.weight + self.cosine
        phase: NDArray[np.float64] = np.arctan2(sine, cosine) / (2 * np.pi) % 1
        return phase


@dataclass(frozen=True)
class TimestampColumn(Column):
    """Position in the training period, time of day and day of the week.

    Times are wall times: those with a time zone are taken to the zone of the training rows.
    In the first and in the last quarter of the training period the position stays the same,
    and so it does before and after it, for five years or as long as the period. Then it moves
    away, and after two more years stands out as never seen: a wrong century is an anomaly,
    next year is not. In a period of less than eight weeks there is one position only; time of
    day takes a whole day, and the day of the week a whole week.

    Attributes
    ----------
    name
        The name in the table.
    low, high
        Seconds of wall time since 1970 of the earliest and latest training row; since
        midnight for times of day.
    centre, scale
        Mean and standard deviation of the seconds, with those at the ends taken as one.
    day, week
        Where time of day and day of the week matter.
    position
        Whether there is a position: not for times of day.
    zone
        The time zone of the training rows, or None.
    layout
        How text is to be read, as in `time.strptime`; None: as the dialect says.
    missing_share
        Share of the training rows.
    dialect
        How times in text and numbers are written, besides ISO 8601.
    end
        Share of the period at each end in which the position stays the same; 0.5: everywhere.
    """

    kinds = ("timestamp",)

    name: str
    low: float
    high: float
    centre: float
    scale: Positive
    day: Cycle | None
    week: Cycle | None
    position: bool
    zone: str | None
    layout: str | None
    missing_share: Share
    dialect: TimeDialect = _ISO
    end: Annotated[float, Field(ge=0, le=0.5)] = 0.0

    @classmethod
    def claim(cls, values: Values) -> Choice | None:
        """Take times, and text or numbers that are mostly times."""
        name, found = values.name, _times(values)
        if found is None:
            return None
        times, dialect = found.reading, found.dialect
        there = times.values[np.isfinite(times.values)]
        if len(there) == 0 or np.ptp(there) == 0:
            words = (
                f"Column {name!r} holds the same time in all training rows, so it is left "
                "out: any later row would stand out."
            )
            return Choice(None, "is always the same time", (words,))
        column = cls.fit(
            name, times.values, kind=values.type, layout=found.layout, dialect=dialect
        )
        return Choice(column, warnings=times.remarks(name, "times"), said=found.said)

    @classmethod
    def fit(
        cls,
        name: str,
        seconds: NDArray[np.float64],
        *,
        kind: pa.DataType,
        layout: str | None = None,
        dialect: TimeDialect = _ISO,
    ) -> TimestampColumn:
        """Learn from seconds of which at least two differ; `kind` is the type they came in."""
        there = seconds[np.isfinite(seconds)]
        position = not (pt.is_time(kind) or dialect.clock)
        span = float(np.ptp(there))
        moves = position and span >= _LONG
        times = bool((there % DAY != 0).any()) and (not position or span >= _ALL_HOURS)
        days = position and span >= _ALL_WEEKDAYS and len(np.unique(_weekday(there))) > 1
        share = 1 / max(1, moves + times + days)
        low, high = float(there.min()), float(there.max())
        end = 0.0 if not position else _END if moves else 0.5
        inner = np.clip(there, low + end * span, high - end * span)
        spread = inner.std() if moves else there.std()
        return cls(
            name=name,
            low=low,
            high=high,
            centre=float(inner.mean()) if moves or not position else low + span / 2,
            scale=float(spread / np.sqrt(share)),
            day=Cycle.fit(there % DAY / DAY, share) if times or not position else None,
            week=Cycle.fit(_weekday(there) / 7, share) if days else None,
            position=position,
            zone=_zone(kind),
            layout=layout,
            missing_share=float(np.isnan(seconds).mean()),
            dialect=dialect,
            end=end,
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds between which the position moves, in seconds."""
        margin = self.end * (self.high - self.low)
        return self.low + margin, self.high - margin

    @property
    def features(self) -> tuple[str, ...]:
        """What each feature stands for."""
        names: list[str] = ["position"] if self.position else []
        names += ["time of day (sine)", "time of day (cosine)"] if self.day else []
        names += ["weekday (sine)", "weekday (cosine)"] if self.week else []
        return (*names, "missing") if self.missing_share else tuple(names)

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write position, circles and the flag into `out`."""
        reading = self._read(array)
        if reading.unreadable is not None:
            note(reading.unreadable, "times")
        if reading.impossible is not None:
            note(reading.impossible, "days of a calendar")
        seconds = reading.values
        missing = np.isnan(seconds)
        filled = np.where(missing, self.centre, seconds)
        at = 0
        if self.position:
            out[:, 0] = self._position(filled)
            at = 1
        if self.day:
            self.day.encode(filled % DAY / DAY, out[:, at : at + 2])
            at += 2
        if self.week:
            self.week.encode(_weekday(filled) / 7, out[:, at : at + 2])
            at += 2
        out[missing] = 0
        if self.missing_share:
            out[:, at] = missing * flag_weight(self.missing_share)
        else:
            out[missing, 0] = NEVER

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return datetime64[s], or timedelta64[s] for times of day."""
        return self._stamped(self._read(array).values)

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the times that features stand for, within the training period."""
        seconds = np.zeros(len(features))
        at = 0
        if self.position:
            at = 1
            seconds = np.clip(features[:, 0] * self.scale + self.centre, *self.bounds)
        if self.day:
            clock = np.floor(self.day.decode(features[:, at : at + 2]) * DAY)
            seconds = np.floor(seconds / DAY) * DAY + clock
        return self._stamped(np.where(self.expects_none(features), np.nan, seconds))

    def reasons(
        self,
        values: NDArray[Any],
        expected: NDArray[Any],
        contributions: NDArray[np.float64],
        features: NDArray[np.float64],
    ) -> list[str]:
        """Say which side of each time stands out most: the day, the hour or the weekday."""
        sides = self._sides(contributions)
        weekdays = self._expected_weekdays(features)
        rows = zip(values, expected, sides, weekdays, strict=True)
        return [f"`{self.name}` {self._reason(*row)}" for row in rows]

    def summary(self) -> str:
        """Say the first day and the last."""
        if not self.position:
            return "times of day"
        low, high = self._period()
        return f"{_day(low)} to {_day(high)}"

    def check(self) -> None:
        """Raise where there is no feature, or the period is none."""
        if not (self.position or self.day):
            raise ValueError("there must be a position or a day")
        span = self.high - self.low
        if not self.low - span <= self.centre <= self.high + span:  # the mean may be rounded
            raise ValueError("centre must be between low and high")
        if span > _LONGEST * self.scale:
            raise ValueError("scale is too small for the time from low to high")
        if self.layout is not None:
            check_layout(self.layout)
        self.dialect.check()

    def _reason(self, value: Any, expected: Any, side: str, weekday: str) -> str:
        if np.isnat(value):
            return missing_words(self.missing_share)
        if side == "time of day":
            there, wanted = (str(at.astype("datetime64[s]"))[11:16] for at in (value, expected))
            return against(f"at {there}", f"about {wanted}", same=there == wanted)
        if side == "weekday":
            there = _DAYS[int((value.astype("datetime64[D]").astype(np.int64) + 3) % 7)]
            return against(f"on a {there}", weekday, same=there == weekday)
        if side == "missing":
            return against(_stamp(value), None)
        low, high = self._period()
        if not low <= value <= high:
            return f"{_stamp(value)}, outside the training period ({_day(low)} to {_day(high)})"
        there, wanted = _day(value), _day(expected)
        first, last = self._stamped(np.array(self.bounds))
        same = wanted in (there, _day(min(max(value, first), last)))
        rest = " or later" if wanted == _day(last) else ""
        rest = " or earlier" if wanted == _day(first) else rest
        return against(there, f"about {wanted}{rest}", same=same)

    def _sides(self, contributions: NDArray[np.float64]) -> list[str]:
        """Return for each row which side of a time stands out most."""
        sides = [name.partition(" (")[0] for name in self.features]
        distinct = list(dict.fromkeys(sides))
        sums = np.stack(
            [contributions[:, [s == side for s in sides]].sum(axis=1) for side in distinct],
            axis=1,
        )
        return [distinct[i] for i in sums.argmax(axis=1)]

    def _expected_weekdays(self, features: NDArray[np.float64]) -> list[str]:
        if self.week is None:
            return [""] * len(features)
        at = self.features.index("weekday (sine)")
        phase = self.week.decode(features[:, at : at + 2])
        return [_DAYS[int(day)] for day in np.rint(7 * phase) % 7]

    def _period(self) -> NDArray[Any]:
        return self._stamped(np.array([self.low, self.high]))

    def _read(self, array: pa.Array) -> Reading:
        return read_seconds(self.name, array, self.zone, self.dialect, self.layout)

    def _position(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        free = max(self.high - self.low, FREE)
        position = (np.clip(seconds, *self.bounds) - self.centre) / self.scale
        off = np.maximum(self.low - seconds, seconds - self.high)
        farness = np.clip((off - free) / GROWING, 0, 1)
        farthest = np.where(seconds < self.low, -NEVER, NEVER)
        return np.asarray(position + farness * (farthest - position))

    def _stamped(self, seconds: NDArray[np.float64]) -> NDArray[Any]:
        unit = "datetime64[s]" if self.position else "timedelta64[s]"
        there = np.isfinite(seconds)
        whole = np.clip(np.where(there, seconds, 0.0), -_FARTHEST, _FARTHEST)
        stamps: NDArray[Any] = np.floor(whole).astype(np.int64).astype(unit)
        stamps[~there] = "NaT"
        return stamps


@dataclass(frozen=True)
class _Found:
    """Times that were read, by which rules, and what there is to say about these."""

    reading: Reading
    dialect: TimeDialect = _ISO
    layout: str | None = None
    said: str = ""


def _times(values: Values) -> _Found | None:
    """Return the times, if that is what the values are."""
    name, asked = values.name, values.kind is not None

    def read(dialect: TimeDialect = _ISO, layout: str | None = None) -> Reading:
        return read_seconds(name, values.array, _zone(values.type), dialect, layout)

    if is_temporal(values.type):
        return _Found(read()) if values.array.null_count < len(values.array) else None
    if (layout := values.hints.layout) is not None:
        if not values.is_text:
            raise TableError(
                f"Column {name!r} does not hold text, so a date format (--date-format) does "
                "not apply to it."
            )
        reading = read(layout=layout)
        if reading.share < _FEWEST:
            raise values.unread(f"times written as {layout!r}", reading)
        return _Found(reading, layout=layout)
    dialect = values.times_in_numbers
    if dialect is not None:
        said = f"times in {_COUNTED[dialect.epoch]} since 1970" if dialect.epoch else ""
        return _Found(read(dialect), dialect, said=said or "dates such as 20240131")
    seen = values.evidence.times
    likely = seen.is_times and values.n_distinct > 1 and not are_durations(name, seen)
    if values.is_text and (asked or likely):
        found = values.written_times
        reading = read(found.dialect)
        if reading.share >= _FEWEST:
            return _Found(reading, found.dialect, said=found.said)
        if asked:
            raise values.unread("times", reading)
    elif asked:
        raise TableError(
            f"Column {name!r} cannot be read as times: its values have the type {values.type} "
            "and do not count from 1970."
        )
    return None


def _zone(kind: pa.DataType) -> str | None:
    return kind.tz if pt.is_timestamp(kind) else None


def _day(time: Any) -> str:
    return str(time.astype("datetime64[D]"))


def _stamp(time: Any) -> str:
    return str(time.astype("datetime64[s]"))[:16].replace("T", " ")


def _weekday(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0 for Monday to 6; the first day of 1970 was a Thursday."""
    weekday: NDArray[np.float64] = (np.floor(seconds / DAY) + 3) % 7
    return weekday
