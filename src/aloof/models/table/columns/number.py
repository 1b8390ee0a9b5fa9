"""Columns of numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import floor
from shlex import quote
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.table.columns.base import (
    LIMIT,
    NEVER,
    Choice,
    Column,
    Note,
    Positive,
    Share,
    Values,
    flag_weight,
)
from aloof.models.table.columns.category import CategoryColumn
from aloof.models.table.columns.codes import code_of
from aloof.models.table.columns.constant import ConstantColumn
from aloof.models.table.columns.reading import read_numbers
from aloof.models.table.dialects.numbers import PLAIN, NumberDialect
from aloof.models.table.words import against, duration_words, number_words

__all__ = ["LARGEST", "NumberColumn"]

# The share of the values at either end that has no say in the scale.
_TAIL = 0.005
# Tails this much heavier than those of an exponential distribution call for a logarithm.
_HEAVY_KURTOSIS = 6.0
# Numbers beyond it are cut off, so that no difference overflows.
LARGEST = 1e300
# Where the user says that a column is numbers, at least so many must be.
_FEWEST = 0.5
# Units that stand close to the number.
_CLOSE = ("%", "‰", "°")
# With fewer rows nothing can be said about ids.
_ENOUGH_FOR_IDS = 50
_ID_NAME = re.compile(r"(^|[^a-z])(id|uuid|guid|key|idx|rowid|rownum)s?$|[a-z]I[dD]$|^id[^a-z]")


@dataclass(frozen=True)
class NumberColumn(Column):
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
    dialect
        How numbers in text are written.
    """

    kinds = ("number",)

    name: str
    centre: float
    scale: Positive
    bend: Positive | None
    low: float
    middle: float
    high: float
    missing_share: Share
    infinite_share: Share
    whole: bool
    unit: Literal["", "s"] = ""
    dialect: NumberDialect = PLAIN

    @classmethod
    def claim(cls, values: Values) -> Choice | None:
        """Take numbers, and text that is mostly numbers; ids only if the user says so."""
        name, asked = values.name, values.kind is not None
        if not (asked or _is_numeric(values.array.type) or _holds_numbers(values)):
            return None
        said, dialect = "", PLAIN
        if values.is_text:
            found = values.written_numbers
            if found.dialect is None:
                if asked:
                    raise TableError(
                        f"Column {name!r} {found.refusal}. Write them all in one, or leave "
                        f"the column out: drop=[{name!r}] (--drop {quote(name)})."
                    )
                return None
            said, dialect = found.said, found.dialect
            if asked and values.numbers.share < _FEWEST:
                raise values.unread("numbers", values.numbers)
            if not asked and not values.numbers.is_most:
                return None
        if not asked and values.times_in_numbers is not None:
            return None
        finite = values.numbers.values[np.isfinite(values.numbers.values)]
        if len(finite) == 0 or finite.min() == finite.max():
            # One number, and perhaps infinity or words that mean missing.
            return ConstantColumn.claim(values) or CategoryColumn.claim(values)
        if not asked and _is_id(name, finite):
            return Choice(
                None,
                "looks like an id",
                (
                    f"Column {name!r} looks like an id (a different whole number in every "
                    f"row), so it is left out. To keep it: kinds={{{name!r}: 'number'}} "
                    f"(--kind {quote(f'{name}=number')}).",
                ),
            )
        unit: Literal["", "s"] = "s" if pt.is_duration(values.array.type) else ""
        column = cls.fit(name, values.numbers.values, unit=unit, dialect=dialect)
        return Choice(column, warnings=values.numbers.remarks(name, "numbers"), said=said)

    @classmethod
    def fit(
        cls,
        name: str,
        values: NDArray[np.float64],
        *,
        unit: Literal["", "s"] = "",
        dialect: NumberDialect = PLAIN,
    ) -> NumberColumn:
        """Learn from numbers of which at least two are finite and differ."""
        finite = values[np.isfinite(values)]
        whole = bool((finite == np.floor(finite)).all())
        finite = np.clip(finite, -LARGEST, LARGEST)
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
            dialect=dialect,
        )

    @property
    def features(self) -> tuple[str, ...]:
        """What each feature stands for."""
        missing = ("missing",) if self.missing_share else ()
        infinite = ("infinite",) if self.infinite_share else ()
        return ("value", *missing, *infinite)

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the scaled numbers and the flags into `out`."""
        reading = read_numbers(self.name, array, self.dialect)
        if reading.unreadable is not None:
            note(reading.unreadable, "numbers")
        values = reading.values
        scaled = self.scaled(values)
        missing = np.isnan(values)
        if missing.any():
            at = self.scaled(np.array([self.middle]))[0] if self.missing_share else NEVER
            scaled[missing] = at
        infinite = np.isinf(values)
        if infinite.any():
            low, high = -LIMIT, LIMIT
            if self.infinite_share:
                low, high = self.scaled(np.array([self.low, self.high]))
            scaled[infinite] = np.where(values[infinite] > 0, high, low)
        out[:, 0] = scaled
        if self.missing_share:
            out[:, 1] = missing * flag_weight(self.missing_share)
        if self.infinite_share:
            out[:, -1] = infinite * flag_weight(self.infinite_share)

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the numbers, NaN where there is none."""
        return read_numbers(self.name, array, self.dialect).values

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the numbers that features stand for, NaN where missing is expected."""
        values = features[:, 0] * self.scale + self.centre
        if self.bend is not None:
            values = np.sinh(np.clip(values, -300, 300)) * self.bend
        return np.where(self.expects_none(features), np.nan, values)

    def reason(self, value: Any, expected: Any) -> str:
        """Say the number, and about which one was expected."""
        write = self._write
        exact = self.whole and not self.unit and abs(value) < 1e15
        there = write(value)
        if exact and value == floor(value):
            there = self._with_unit(f"{value:,.0f}")
        if np.isnan(expected):
            return against(there, None)
        for digits in (2, 3):
            if write(value, digits) != write(expected, digits):
                return against(there, f"about {write(expected, digits)}")
        return against(there, None, same=True)

    def expected_words(self, expected: Any) -> str:
        """Say about which number was expected."""
        return "" if np.isnan(expected) else f"about {self._write(expected, 2)}"

    def summary(self) -> str:
        """Say the range and the median."""
        low, middle, high = map(number_words, (self.low, self.middle, self.high))
        return f"{low} to {high}, median {middle}" + (" s" if self.unit else self._behind)

    def check(self) -> None:
        """Raise where the numbers are not in order."""
        if not self.low <= self.middle <= self.high:
            raise ValueError("low, middle and high must be in this order")
        self.dialect.check()

    def _write(self, value: float, digits: int = 6) -> str:
        """Return a number in words, with its unit."""
        if self.unit == "s":
            return duration_words(value, min(digits, 3))
        return self._with_unit(number_words(value, digits))

    @property
    def _behind(self) -> str:
        unit = self.dialect.unit
        return unit if unit in _CLOSE else f" {unit}".rstrip()

    def _with_unit(self, number: str) -> str:
        return number + self._behind

    def scaled(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers in standard deviations from the mean, as far as they go."""
        scaled = np.clip(values, -LARGEST, LARGEST)
        with np.errstate(over="ignore"):  # a large number over a small one, clipped at last
            if self.bend is not None:
                scaled /= self.bend
                np.arcsinh(scaled, out=scaled)
            scaled -= self.centre
            scaled /= self.scale
        clipped: NDArray[np.float64] = np.clip(scaled, -LIMIT, LIMIT, out=scaled)
        return clipped


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_decimal(kind)
        or pt.is_duration(kind)
    )


def _holds_numbers(values: Values) -> bool:
    """Say whether text is numbers: 00123 is a code, not a number."""
    return values.is_text and values.evidence.numbers.is_numbers and not code_of(values)


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
