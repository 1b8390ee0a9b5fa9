"""Columns of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.tabular.columns.base import LIMIT, NEVER, Kind, Note, column_state, flag_weight
from aloof.tabular.columns.reading import read_numbers

__all__ = ["NumberColumn"]

# The share of the values at either end that has no say in the scale.
_TAIL = 0.005
# Tails this much heavier than those of an exponential distribution call for a logarithm.
_HEAVY_KURTOSIS = 6.0
# Numbers beyond it are cut off, so that no difference overflows.
_LARGEST = 1e300


@dataclass(frozen=True)
class NumberColumn:
    """Numbers to mean 0 and variance 1, heavy tails first through a logarithm.

    A missing value stands at the median, with a feature of its own as a flag if values were
    missing in training; if none were, it stands out as far as anything never seen. Infinite
    values likewise: a flag if there were some in training, the farthest value if not.

    Attributes
    ----------
    name
        The name in the table.
    centre, scale
        Mean and standard deviation, without the tails, of what is scaled: the numbers, or
        their logarithms.
    bend
        None, or the size from which on numbers are scaled as logarithms, ``asinh(x / bend)``.
    low, middle, high
        Smallest number, median and largest of the training rows, of the finite ones.
    missing_share, infinite_share
        Shares of the training rows.
    whole
        Whether all are integers.
    unit
        "s" for a duration in seconds.
    """

    kind: ClassVar[Kind] = "number"

    name: str
    centre: float
    scale: float
    bend: float | None
    low: float
    middle: float
    high: float
    missing_share: float
    infinite_share: float
    whole: bool
    unit: Literal["", "s"] = ""

    @classmethod
    def fit(
        cls, name: str, values: NDArray[np.float64], *, unit: Literal["", "s"] = ""
    ) -> NumberColumn:
        """Learn from numbers of which at least two are finite and differ."""
        finite = values[np.isfinite(values)]
        whole = bool((finite == np.floor(finite)).all())
        finite = np.clip(finite, -_LARGEST, _LARGEST)
        bend = _bend(finite)
        centre, scale = _location(finite if bend is None else np.arcsinh(finite / bend))
        return cls(
            name=name,
            centre=centre,
            scale=scale,
            bend=bend,
            low=float(finite.min()),
            middle=float(np.median(finite)),
            high=float(finite.max()),
            missing_share=float(np.isnan(values).mean()),
            infinite_share=float(np.isinf(values).mean()),
            whole=whole,
            unit=unit,
        )

    @property
    def parts(self) -> tuple[str, ...]:
        """What each feature stands for."""
        missing = ("missing",) if self.missing_share else ()
        infinite = ("infinite",) if self.infinite_share else ()
        return ("value", *missing, *infinite)

    @property
    def varies(self) -> bool:
        """True: a column that does not is a `ConstantColumn`."""
        return True

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the scaled numbers and the flags into `out`."""
        reading = read_numbers(self.name, array)
        if reading.unreadable is not None:
            note(reading.unreadable, "numbers")
        values = reading.values
        scaled = self._scaled(values)
        missing = np.isnan(values)
        if missing.any():
            at = self._scaled(np.array([self.middle]))[0] if self.missing_share else NEVER
            scaled[missing] = at
        infinite = np.isinf(values)
        if infinite.any():
            low, high = -LIMIT, LIMIT
            if self.infinite_share:
                low, high = self._scaled(np.array([self.low, self.high]))
            scaled[infinite] = np.where(values[infinite] > 0, high, low)
        out[:, 0] = scaled
        if self.missing_share:
            out[:, 1] = missing * flag_weight(self.missing_share)
        if self.infinite_share:
            out[:, -1] = infinite * flag_weight(self.infinite_share)

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the numbers, NaN where there is none."""
        return read_numbers(self.name, array).values

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the numbers that features stand for."""
        values = features[:, 0] * self.scale + self.centre
        if self.bend is not None:
            values = np.sinh(np.clip(values, -300, 300)) * self.bend
        return np.asarray(values)

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return column_state(self)

    def _scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = np.clip(values, -_LARGEST, _LARGEST)
        with np.errstate(over="ignore"):  # a large number over a small one, clipped at last
            if self.bend is not None:
                scaled /= self.bend
                np.arcsinh(scaled, out=scaled)
            scaled -= self.centre
            scaled /= self.scale
        clipped: NDArray[np.float64] = np.clip(scaled, -LIMIT, LIMIT, out=scaled)
        return clipped


def _bend(values: NDArray[np.float64]) -> float | None:
    """Return where to bend the scale, or None: where tails are heavy and bending cures it."""
    size = np.abs(values[values != 0])
    if len(size) < 20:
        return None
    bend = float(np.quantile(size, 0.25))
    heavy = _kurtosis(values)
    with np.errstate(over="ignore"):
        bent = np.arcsinh(values / bend)
    return bend if heavy > _HEAVY_KURTOSIS and _kurtosis(bent) < heavy / 2 else None


def _location(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard deviation without the tails; the latter is never 0."""
    low, span = float(values.min()), float(np.ptp(values)) or 1.0
    unit = (values - low) / span  # so that the smallest and largest numbers can be squared
    cut = _cut(unit)
    spread = float(cut.std()) or float(unit.std())
    return low + span * float(cut.mean()), max(span * spread, float(np.nextafter(0, 1)))


def _kurtosis(values: NDArray[np.float64]) -> float:
    cut = _cut((values - values.min()) / np.ptp(values)) if np.ptp(values) else values
    centred = cut - cut.mean()
    variance = float((centred**2).mean())
    return float((centred**4).mean()) / variance**2 if variance**2 > 0 else 0.0


def _cut(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = np.quantile(values, [_TAIL, 1 - _TAIL])
    return np.clip(values, low, high)
