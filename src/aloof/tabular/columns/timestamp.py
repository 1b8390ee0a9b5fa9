"""Columns of dates, points in time and times of day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from aloof.tabular.columns.base import NEVER, RARE, Kind, Note, column_state, flag_weight
from aloof.tabular.columns.reading import Reading, read_seconds

__all__ = ["Cycle", "TimestampColumn"]

_DAY = 86_400.0
# Time goes on: so much later or earlier than in training, or the length of the training
# period if it is longer, is no reason to stand out.
_FREE = 366 * _DAY
# Beyond, datetime64[s] has no calendar.
_FARTHEST = 2.0**56


@dataclass(frozen=True)
class Cycle:
    """A place on a circle: mean of its sine and cosine in training, and their weight."""

    sine: float
    cosine: float
    weight: float

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
class TimestampColumn:
    """Position in the training period, time of day and day of the week.

    Times are wall times: those with a time zone are taken to the zone of the training rows.
    Before and after the training period the position stays where the period ends, for a
    year or as long as the period; what is farther off stands out as never seen.

    Attributes
    ----------
    name
        The name in the table.
    low, high
        Seconds of wall time since 1970 of the earliest and latest training row; since
        midnight for times of day.
    centre, scale
        Mean and standard deviation of the seconds.
    day, week
        Where time of day and day of the week matter.
    position
        Whether there is a position: not for times of day.
    zone
        The time zone of the training rows, or None.
    layout
        How text is to be read, as in `time.strptime`; None: ISO 8601.
    missing_share
        Share of the training rows.
    """

    kind: ClassVar[Kind] = "timestamp"

    name: str
    low: float
    high: float
    centre: float
    scale: float
    day: Cycle | None
    week: Cycle | None
    position: bool
    zone: str | None
    layout: str | None
    missing_share: float

    @classmethod
    def fit(
        cls,
        name: str,
        seconds: NDArray[np.float64],
        *,
        kind: pa.DataType,
        layout: str | None = None,
    ) -> TimestampColumn:
        """Learn from seconds of which at least two differ; `kind` is the type they came in."""
        there = seconds[np.isfinite(seconds)]
        position = not pt.is_time(kind)
        times = bool((there % _DAY != 0).any())
        days = position and len(np.unique(_weekday(there))) > 1
        share = 1 / (position + times + days)
        zone = kind.tz if pt.is_timestamp(kind) else None
        return cls(
            name=name,
            low=float(there.min()),
            high=float(there.max()),
            centre=float(there.mean()),
            scale=float(there.std() / np.sqrt(share)),
            day=Cycle.fit(there % _DAY / _DAY, share) if times or not position else None,
            week=Cycle.fit(_weekday(there) / 7, share) if days else None,
            position=position,
            zone=zone,
            layout=layout,
            missing_share=float(np.isnan(seconds).mean()),
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """What each feature stands for."""
        parts: list[str] = ["position"] if self.position else []
        parts += ["time of day (sine)", "time of day (cosine)"] if self.day else []
        parts += ["weekday (sine)", "weekday (cosine)"] if self.week else []
        return (*parts, "missing") if self.missing_share else tuple(parts)

    @property
    def varies(self) -> bool:
        """True: a column that does not is dropped."""
        return True

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write position, circles and the flag into `out`."""
        reading = self._read(array)
        if reading.unreadable is not None:
            note(reading.unreadable, "times")
        seconds = reading.values
        missing = np.isnan(seconds)
        filled = np.where(missing, self.centre, seconds)
        at = 0
        if self.position:
            out[:, 0] = self._position(filled)
            at = 1
        if self.day:
            self.day.encode(filled % _DAY / _DAY, out[:, at : at + 2])
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
            seconds = np.clip(features[:, 0] * self.scale + self.centre, self.low, self.high)
        if self.day:
            clock = np.floor(self.day.decode(features[:, at : at + 2]) * _DAY)
            seconds = np.floor(seconds / _DAY) * _DAY + clock
        return self._stamped(seconds)

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return column_state(self)

    def _read(self, array: pa.Array) -> Reading:
        return read_seconds(self.name, array, self.zone, self.layout)

    def _position(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        free = max(self.high - self.low, _FREE)
        position = (np.clip(seconds, self.low, self.high) - self.centre) / self.scale
        position[seconds < self.low - free] = -NEVER
        position[seconds > self.high + free] = NEVER
        return np.asarray(position)

    def _stamped(self, seconds: NDArray[np.float64]) -> NDArray[Any]:
        unit = "datetime64[s]" if self.position else "timedelta64[s]"
        there = np.isfinite(seconds)
        whole = np.clip(np.where(there, seconds, 0.0), -_FARTHEST, _FARTHEST)
        stamps: NDArray[Any] = np.floor(whole).astype(np.int64).astype(unit)
        stamps[~there] = "NaT"
        return stamps


def _weekday(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 0 for Monday to 6; the first day of 1970 was a Thursday."""
    weekday: NDArray[np.float64] = (np.floor(seconds / _DAY) + 3) % 7
    return weekday
