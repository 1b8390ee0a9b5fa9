"""Numbers in text as people write them: signs, separators, currencies and units.

A value is read by itself, by the rules of a dialect, or it cannot be read. What a dialect
leaves open is read where the value has one meaning only: 12,50 and 1.234.567 have, 1.234 has
not.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal, Protocol

from aloof.written.cells import clean_text, means_nothing
from aloof.written.units import BARE, Unit, find_unit, name_unit

__all__ = [
    "ARABIC",
    "OTHER_SIGN",
    "SIMPLE",
    "SPECIAL",
    "DecimalSign",
    "NumberRules",
    "Outline",
    "ThousandsSign",
    "read_number",
]

DecimalSign = Literal["", ".", ","]
ThousandsSign = Literal["", ".", ",", " ", "'"]

OTHER_SIGN = {".": ",", ",": "."}
# The Arabic decimal sign, which means nothing else.
ARABIC = "\u066b"
# What Arrow's cast to float64 takes, so that both paths agree.
_PLAIN_NUMBER = r"^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan(\([a-z0-9_]*\))?)$"
SIMPLE = {
    ".": _PLAIN_NUMBER,
    ",": r"^[+-]?(\d+,?\d*|,\d+)(e[+-]?\d+)?$",
    "": r"^[+-]?\d+$",
}
SPECIAL = r"^[+-]?(inf(inity)?|nan(\([a-z0-9_]*\))?)$"
_LETTER = r"[^\W\d_]"
_SIGN_OF_MONEY = (
    "[$¢£¤¥\u058f\u060b\u09f2\u09f3\u0e3f\u17db\u20a0-\u20c0\ufdfc\uff04\uffe1\uffe5]"
)
_MONEY = rf"{_LETTER}{{1,4}}\.?{_SIGN_OF_MONEY}?|{_SIGN_OF_MONEY}{_LETTER}{{0,2}}"
_WORD = rf"(?:{_LETTER}|{_SIGN_OF_MONEY}|[%‰°Ω/²³.]){{1,12}}"
_PARTS = re.compile(
    rf"(?P<ahead>{_MONEY})?\s*(?P<open>\()?\s*(?P<first>[+-])?\s*(?P<before>{_MONEY})?"
    r"\s*(?P<second>[+-])?\s*"
    rf"(?P<core>(?P<digits>[.,{ARABIC}]?9(?:[9.,{ARABIC}' ]*9)?)(?P<exponent>[eE][+-]?9+)?)"
    r"(?P<tail>[.,]-{1,2}|[.,])?(?P<late>[eE][+-]?9+)?"
    rf"\s*(?P<after>{_WORD}(?: {_WORD})?)?\s*(?P<last>-)?\s*(?P<close>\))?"
)
_special = re.compile(SPECIAL, re.IGNORECASE | re.ASCII)
_simple = {sign: re.compile(p, re.IGNORECASE | re.ASCII) for sign, p in SIMPLE.items()}
_DIGIT = re.compile("[0-9]")
_ZERO = re.compile("[^0-9]*0")


class NumberRules(Protocol):
    """How numbers are written: what `NumberDialect` of `aloof.models.table` has."""

    @property
    def decimal(self) -> DecimalSign:
        """The sign before decimals; empty: nobody knows."""

    @property
    def thousands(self) -> ThousandsSign:
        """The sign between groups of three digits."""

    @property
    def unit(self) -> str:
        """The currency or unit."""

    @property
    def bare(self) -> bool:
        """Whether a number without the unit is one in the same unit."""


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
        return {*self.digits} - {"9", "e", decimal, ARABIC}

    @cached_property
    def unit(self) -> Unit | None:
        """The unit; None: nobody knows it."""
        return find_unit(self.before, self.after)

    def factor(self, rules: NumberRules) -> float:
        """Return what to multiply the number by; NaN: it has another unit."""
        wanted = name_unit(rules.unit) if rules.unit else BARE
        unit = self.unit
        if unit is None and self.after == rules.unit:
            unit = wanted  # known by nobody but this dialect
        return math.nan if unit is None else _factor(unit, wanted, rules.bare)


def read_number(text: str, rules: NumberRules) -> float | None:
    """Return the number that a cell holds; NaN: it holds none, None: it cannot be read.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> german = SimpleNamespace(decimal=",", thousands=".", unit="EUR", bare=True)
    >>> read_number("1.234,50 \u20ac", german), read_number("n/a", german)
    (1234.5, nan)
    """
    text = clean_text(text)
    if _special.fullmatch(text) or (not rules.unit and _simple[rules.decimal].fullmatch(text)):
        return float(text.replace(",", ".").partition("(")[0])
    if means_nothing(text):
        return math.nan
    outline = _outline(_DIGIT.sub("9", text))
    if outline is None:
        return None
    if rules.decimal:
        number = _by(outline, text, rules.decimal, rules.thousands)
    else:
        number, comma = _by(outline, text, ".", ","), _by(outline, text, ",", ".")
        if number is None:
            number = comma
        elif comma is not None and number != comma:
            return None
    if number is None:
        return None
    found = number * outline.factor(rules)
    return None if math.isnan(found) else found


def _by(outline: Outline, text: str, decimal: str, thousands: str) -> float | None:
    """Return the number by these signs, without its unit; None: it is none by them."""
    if not outline.fits(decimal, thousands):
        return None
    if outline.has_groups(decimal) and _ZERO.match(text):
        return None  # no group of thousands begins with a zero
    digits = text[outline.begin : outline.end]
    for sign in (" ", "'", OTHER_SIGN[decimal]):
        digits = digits.replace(sign, "")
    number = float(digits.replace(decimal, ".").replace(ARABIC, "."))
    return -number if outline.negative else number


@lru_cache(maxsize=4096)
def _outline(text: str) -> Outline | None:
    return Outline.of(text)


def _factor(unit: Unit, wanted: Unit, bare: bool) -> float:
    if wanted == BARE:
        return 1.0 if unit == BARE else math.nan
    if unit == BARE:
        if not bare:
            return math.nan
        return 1 / wanted.size if wanted.family == "count" else 1.0
    return unit.size / wanted.size if unit.family == wanted.family else math.nan


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return a pattern for digits, all of them 9, with these signs."""
    other = OTHER_SIGN[decimal]
    signs = {" ", "'"} | ({thousands} if thousands not in ("", decimal) else set())
    whole = "|".join(["9+", *map(_grouped, sorted(signs))])
    fraction = rf"[{decimal}{ARABIC}]9+"
    return re.compile(
        rf"(?:{whole})(?:{fraction})?|{fraction}|(?:{_grouped(other)}){fraction}"
        rf"|{_grouped(other, 2)}|(?:9+(?:{fraction})?|{fraction})e"
    )


def _grouped(sign: str, fewest: int = 1) -> str:
    """Return a pattern for whole numbers in groups of three, or of two as in India."""
    mark = re.escape(sign)
    return rf"9{{1,3}}(?:{mark}999){{{fewest},}}|99?(?:{mark}99)+{mark}999"
