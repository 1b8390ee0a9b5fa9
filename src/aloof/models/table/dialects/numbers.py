"""Numbers in text as people write them: signs, separators, currencies and units.

A value is read by itself, by the rules of a dialect, or it cannot be read. What a dialect
leaves open is read where the value has one meaning only: 12,50 and 1.234.567 have, 1.234 has
not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.io.sections import STRICT
from aloof.models.table.dialects.cells import is_missing
from aloof.models.table.dialects.outlines import outlined
from aloof.models.table.dialects.units import BARE, Unit, find_unit, name_unit

__all__ = [
    "PLAIN",
    "DecimalSign",
    "NumberDialect",
    "Numerals",
    "Outline",
    "ThousandsSign",
    "cast_numbers",
    "is_special",
    "read_numerals",
]

DecimalSign = Literal["", ".", ","]
ThousandsSign = Literal["", ".", ",", " ", "'"]

_OTHER_SIGN = {".": ",", ",": "."}
# The Arabic decimal sign, which means nothing else.
_ARABIC = "\u066b"
# What Arrow's cast to float64 takes, so that both paths agree.
_PLAIN_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan(\([a-z0-9_]*\))?)$"
_SIMPLE = {
    ".": _PLAIN_NUMBER,
    ",": r"^[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?$",
    "": r"^[+-]?\d+$",
}
_SPECIAL = r"^[+-]?(inf(inity)?|nan(\([a-z0-9_]*\))?)$"
_LETTER = r"[^\W\d_]"
_SIGN_OF_MONEY = (
    "[$¢£¤¥\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0\ufdfc\uff04\uffe1\uffe5]"
)
_MONEY = rf"{_LETTER}{{1,4}}\.?{_SIGN_OF_MONEY}?|{_SIGN_OF_MONEY}{_LETTER}{{0,2}}"
_WORD = rf"(?:{_LETTER}|{_SIGN_OF_MONEY}|[%‰°Ω/²³.]){{1,12}}"
_PARTS = re.compile(
    rf"(?P<ahead>{_MONEY})?\s*(?P<open>\()?\s*(?P<first>[+-])?\s*(?P<before>{_MONEY})?"
    r"\s*(?P<second>[+-])?\s*"
    rf"(?P<core>(?P<digits>[.,{_ARABIC}]?9(?:[9.,{_ARABIC}' ]*9)?)(?P<exponent>[eE][+-]?9+)?)"
    r"(?P<tail>[.,]-{1,2}|[.,])?(?P<late>[eE][+-]?9+)?"
    rf"\s*(?P<after>{_WORD}(?: {_WORD})?)?\s*(?P<last>-)?\s*(?P<close>\))?"
)


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


@dataclass(frozen=True)
class Outline:
    """What a number looks like but for its digits, which are all 9: ``-9.999,99 EUR``.

    Attributes
    ----------
    begin, end
        Where digits and the signs between them are.
    digits
        These, with a 0 where 12,- and 12. have nothing, and an e where there is an exponent.
    negative
        Whether there is a minus before or behind, or brackets around.
    before, after
        What stands around.
    """

    begin: int
    end: int
    digits: str
    negative: bool
    before: str
    after: str

    @classmethod
    def of(cls, text: str) -> Outline | None:
        """Take an outline to pieces; None: there is no number in it."""
        parts = _PARTS.fullmatch(text)
        if parts is None or bool(parts["open"]) != bool(parts["close"]):
            return None
        signs = [parts[name] for name in ("open", "first", "second", "last") if parts[name]]
        if len(signs) > 1 or (parts["ahead"] and parts["before"]) or parts["late"]:
            return None
        tail = "" if parts["tail"] is None else f"{parts['tail'][0]}9"
        exponent = "e" if parts["exponent"] else ""
        if tail and exponent:
            return None
        return cls(
            parts.start("core"),
            parts.end("core"),
            parts["digits"] + tail + exponent,
            signs[:1] in (["("], ["-"]),
            parts["ahead"] or parts["before"] or "",
            parts["after"] or "",
        )

    @classmethod
    def of_text(cls, text: str) -> Outline | None:
        """Take text with any digits to pieces."""
        return cls.of(re.sub("[0-9]", "9", text))

    def fits(self, decimal: str, thousands: str) -> bool:
        """Say whether the digits are a number by these signs, if groups begin with no 0."""
        return _pattern(decimal, thousands).fullmatch(self.digits) is not None

    def has_groups(self, decimal: str) -> bool:
        """Say whether there are signs between the digits besides the one before decimals."""
        return bool(self.group_signs(decimal))

    def group_signs(self, decimal: str) -> set[str]:
        """Return the signs between thousands, if this is the one before decimals."""
        return {*self.digits} - {"9", "e", decimal, _ARABIC}

    @cached_property
    def unit(self) -> Unit | None:
        """The unit; None: nobody knows it."""
        return find_unit(self.before, self.after)


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
        for sign in used & {" ", "'", _OTHER_SIGN[decimal]}:
            digits = pc.replace_substring(digits, sign, "")
        for sign in used & {decimal, _ARABIC} - {"."}:
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
    return _flags(pc.match_substring_regex(text, _SPECIAL, ignore_case=True))


def _simple(
    text: pa.Array, dialect: NumberDialect
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Read what has nothing but digits, a sign and the decimal sign; return what is left."""
    simple = is_special(text)
    if not dialect.unit:
        pattern = _SIMPLE[dialect.decimal]
        simple |= _flags(pc.match_substring_regex(text, pattern, ignore_case=True))
    known = pc.if_else(pa.array(simple), text, pa.scalar(None, pa.string()))
    if dialect.decimal == ",":
        known = pc.replace_substring(known, ",", ".")
    return _floats(known), ~simple & ~_flags(is_missing(text))


def _factors(numerals: Numerals, dialect: NumberDialect) -> NDArray[np.float64]:
    """Return what to multiply each number by; NaN where it has another unit."""
    wanted = name_unit(dialect.unit) if dialect.unit else BARE
    factors = []
    for outline in numerals.outlines:
        unit = None if outline is None else outline.unit
        if unit is None and outline is not None and outline.after == dialect.unit:
            unit = wanted  # known by nobody but this dialect
        factors.append(np.nan if unit is None else _factor(unit, wanted, dialect.bare))
    return np.array(factors)[numerals.codes]


def _factor(unit: Unit, wanted: Unit, bare: bool) -> float:
    if wanted == BARE:
        return 1.0 if unit == BARE else np.nan
    if unit == BARE:
        if not bare:
            return np.nan
        return 1 / wanted.size if wanted.family == "count" else 1.0
    return unit.size / wanted.size if unit.family == wanted.family else np.nan


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return a pattern for digits, all of them 9, with these signs."""
    other = _OTHER_SIGN[decimal]
    signs = {" ", "'"} | ({thousands} if thousands not in ("", decimal) else set())
    whole = "|".join(["9+", *map(_grouped, sorted(signs))])
    fraction = rf"[{decimal}{_ARABIC}]9+"
    return re.compile(
        rf"(?:{whole})(?:{fraction})?|{fraction}|(?:{_grouped(other)}){fraction}"
        rf"|{_grouped(other, 2)}|(?:9+(?:{fraction})?|{fraction})e"
    )


def _grouped(sign: str, fewest: int = 1) -> str:
    """Return a pattern for whole numbers in groups of three, or of two as in India."""
    mark = re.escape(sign)
    return rf"9{{1,3}}(?:{mark}999){{{fewest},}}|99?(?:{mark}99)+{mark}999"


def _flags(mask: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
    return flags


def _floats(text: pa.Array) -> NDArray[np.float64]:
    values: NDArray[np.float64] = text.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values
