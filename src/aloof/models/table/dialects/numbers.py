"""Numbers in text as people write them: signs, separators, currencies and units.

A value is read by itself, by the rules of a dialect, or it cannot be read. What a dialect
leaves open is read where the value has one meaning only: 12,50 and 1.234.567 have, 1.234 has
not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.io.sections import STRICT
from aloof.models.table.dialects.cells import is_missing
from aloof.models.table.dialects.outlines import outlined
from aloof.written.numbers import (
    ARABIC,
    OTHER_SIGN,
    SIMPLE,
    SPECIAL,
    DecimalSign,
    Outline,
    ThousandsSign,
)

__all__ = [
    "PLAIN",
    "NumberDialect",
    "Numerals",
    "cast_numbers",
    "is_special",
    "read_numerals",
]


@dataclass(frozen=True)
class NumberDialect:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal
        The sign before decimals. Empty: nobody knows, and 1.234 and 1,234 cannot be read.
    thousands
        The sign between groups of three digits. Spaces and apostrophes are read anyway, and a
        point or comma where it can be nothing else, as in 1,234.56.
    unit
        The currency or unit, which is no part of the number; "%" for percent: 12 % is 12.
    bare
        Whether a number without the unit is one in the same unit.
    """

    __pydantic_config__ = STRICT

    decimal: DecimalSign = "."
    thousands: ThousandsSign = ""
    unit: str = ""
    bare: bool = True

    def check(self) -> None:
        """Raise a ValueError where the signs contradict each other."""
        if self.decimal and self.decimal == self.thousands:
            raise ValueError("decimal and thousands must differ")

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in programs."""
        return self.decimal == "." and not self.thousands and not self.unit


PLAIN = NumberDialect()


class Numerals:
    """Clean text taken to pieces: numbers by their outlines.

    Parameters
    ----------
    text
        See `clean`.
    """

    def __init__(self, text: pa.Array) -> None:
        self.text = text
        outlines = outlined(text).dictionary_encode()
        found = [Outline.of(word) for word in outlines.dictionary.to_pylist()]
        self.outlines: list[Outline | None] = [*found, None]
        codes = pc.fill_null(outlines.indices.cast(pa.int64()), len(found))
        self.codes: NDArray[np.int64] = codes.to_numpy(zero_copy_only=False)

    def fits(self, decimal: str, thousands: str) -> NDArray[np.bool_]:
        """Return where the digits are a number by these signs."""
        plain = [o is not None and o.fits(decimal, thousands) for o in self.outlines]
        groups = [o is not None and o.has_groups(decimal) for o in self.outlines]
        fits = np.array(plain)[self.codes]
        return fits & ~(np.array(groups)[self.codes] & self.begins_with_zero)

    @cached_property
    def begins_with_zero(self) -> NDArray[np.bool_]:
        """Where the first digit is a zero: no group of thousands begins with one."""
        return _flags(pc.match_substring_regex(self.text, "^[^0-9]*0"))

    def values(self, decimal: str, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the numbers by a decimal sign, where they fit; NaN elsewhere."""
        values = np.full(len(self.text), np.nan)
        rows = np.flatnonzero(where)
        rows = rows[np.argsort(self.codes[rows], kind="stable")]
        codes = self.codes[rows]
        ends = np.flatnonzero(np.diff(codes, append=-1)) + 1
        parts, begin = [], 0
        for end in ends.tolist():
            outline = self.outlines[codes[begin]]
            assert outline is not None
            same = self.text.take(pa.array(rows[begin:end]))
            parts.append(pc.utf8_slice_codeunits(same, outline.begin, outline.end))
            begin = end
        if not parts:
            return values
        digits = pa.concat_arrays(parts)
        used = {sign for o in self.outlines if o is not None for sign in o.digits}
        for sign in used & {" ", "'", OTHER_SIGN[decimal]}:
            digits = pc.replace_substring(digits, sign, "")
        for sign in used & {decimal, ARABIC} - {"."}:
            digits = pc.replace_substring(digits, sign, ".")
        signs = np.array([-1.0 if o is not None and o.negative else 1.0 for o in self.outlines])
        values[rows] = _floats(digits) * signs[codes]
        return values


def cast_numbers(text: pa.Array, dialect: NumberDialect) -> NDArray[np.float64] | None:
    """Return numbers that are all written as in programs, the fast way; None: some are not.

    Text need not be clean.
    """
    if dialect.unit or dialect.decimal == ",":
        return None
    try:
        values = _floats(text)
    except pa.ArrowInvalid:
        return None
    if not dialect.decimal and pc.any(pc.match_substring(text, ".")).as_py():
        return None  # 1.234 may be a thousand
    return values


def read_numerals(text: pa.Array, dialect: NumberDialect) -> NDArray[np.float64]:
    """Return the numbers that clean text holds by a dialect, NaN where it holds none."""
    values, left = _simple(text, dialect)
    rest = text.filter(pa.array(left))
    if len(rest) == 0:
        return values
    numerals = Numerals(rest)
    if dialect.decimal:
        fits = numerals.fits(dialect.decimal, dialect.thousands)
        found = numerals.values(dialect.decimal, fits)
    else:
        by_point, by_comma = numerals.fits(".", ","), numerals.fits(",", ".")
        found = numerals.values(".", by_point)
        comma = numerals.values(",", by_comma)
        one = np.where(by_point, found, comma)
        found = np.where(by_point & by_comma & (found != comma), np.nan, one)
    values[left] = found * _factors(numerals, dialect)
    return values


def is_special(text: pa.Array) -> NDArray[np.bool_]:
    """Return where there is a word for infinity, or for what is no number."""
    return _flags(pc.match_substring_regex(text, SPECIAL, ignore_case=True))


def _simple(
    text: pa.Array, dialect: NumberDialect
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read what has nothing but digits, a sign and the decimal sign; return what is left."""
    simple = is_special(text)
    if not dialect.unit:
        pattern = SIMPLE[dialect.decimal]
        simple |= _flags(pc.match_substring_regex(text, pattern, ignore_case=True))
    known = pc.if_else(pa.array(simple), text, pa.scalar(None, pa.string()))
    if dialect.decimal == ",":
        known = pc.replace_substring(known, ",", ".")
    return _floats(known), ~simple & ~_flags(is_missing(text))


def _factors(numerals: Numerals, dialect: NumberDialect) -> NDArray[np.float64]:
    """Return what to multiply each number by; NaN where it has another unit."""
    factors = [np.nan if o is None else o.factor(dialect) for o in numerals.outlines]
    return np.array(factors)[numerals.codes]


def _flags(mask: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return flags


def _floats(text: pa.Array) -> NDArray[np.float64]:
    values: NDArray[np.float64] = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values
