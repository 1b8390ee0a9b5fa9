"""What the values of a column say about how its numbers are written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aloof.exceptions import TableError
from aloof.models.table.dialects.cells import MOSTLY, clean, is_missing, some_of
from aloof.models.table.dialects.hints import Hints, Locale, Question
from aloof.models.table.dialects.numbers import (
    PLAIN,
    NumberDialect,
    Numerals,
    cast_numbers,
    is_special,
    read_numerals,
)
from aloof.phrases import count
from aloof.written.numbers import Outline
from aloof.written.units import BARE, Unit, name_unit

__all__ = ["NumberEvidence", "NumberFinding", "find_numbers", "locale_of_numbers"]

_CALLED = {".": "point", ",": "comma"}
_OTHER = {".": ",", ",": "."}


@dataclass
class NumberEvidence:
    """Counts of values by what they say.

    Attributes
    ----------
    n_values
        How many there are, without missing ones.
    n_numbers
        How many are numbers by some decimal sign.
    only
        How many are numbers by this decimal sign and not by the other.
    either
        How many have just this sign and can be read in both ways: 1.234 and 1,234.
    long
        How many have four digits or more and no sign, so that thousands have none.
    groups
        How many have a sign between thousands, by the decimal sign that they are read with.
    units
        How many have which unit.
    unknown
        Words behind numbers that nobody knows.
    examples
        The first value of each sort.
    """

    n_values: int = 0
    n_numbers: int = 0
    only: Counter[str] = field(default_factory=Counter)
    either: Counter[str] = field(default_factory=Counter)
    long: int = 0
    groups: dict[str, Counter[str]] = field(
        default_factory=lambda: {".": Counter(), ",": Counter()}
    )
    units: Counter[Unit] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: pa.Array) -> NumberEvidence:
        """Look at all values of a column of text.

        A part of them is enough for plain numbers with decimals, and for what is no numbers.
        """
        plain = cast_numbers(text, PLAIN) is not None
        if (part := some_of(text)) is not None:
            some = cls._counted(clean(part))
            if not plain and some.share < MOSTLY / 2:
                return some
            if plain and some.only["."]:
                return some
        if plain and not pc.any(pc.match_substring(text, ".")).as_py():
            n = len(text) - text.null_count
            return cls(n, n, units=Counter({BARE: n}))
        return cls._counted(clean(text))

    @classmethod
    def _counted(cls, text: pa.Array) -> NumberEvidence:
        there = text.filter(pc.invert(is_missing(text)))
        found, numerals = cls(len(there)), Numerals(there)
        special = int(is_special(there).sum())
        found.n_numbers += special
        found.units[BARE] += special
        pairs = 2 * numerals.codes + numerals.begins_with_zero
        kinds, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        for kind, place, n in zip(kinds.tolist(), first.tolist(), counts.tolist(), strict=True):
            outline = numerals.outlines[kind // 2]
            if outline is not None:
                found._add(outline, bool(kind % 2), n, there[place].as_py())
        return found

    def _add(self, outline: Outline, zero: bool, n: int, example: str) -> None:
        unit = outline.unit
        if unit is None:
            self.unknown[outline.after if not outline.before else ""] += n
            self.examples.setdefault("unknown", example)
        else:
            self.units[unit] += n
            self.examples.setdefault(f"unit {unit.name}", example)
        fits = [
            sign
            for sign in ".,"
            if outline.fits(sign, _OTHER[sign]) and not (zero and outline.has_groups(sign))
        ]
        self.n_numbers += n if fits and unit is not None else 0
        for sign in fits:
            for mark in outline.group_signs(sign):
                self.groups[sign][mark] += n
        signs = [sign for sign in ".," if sign in outline.digits]
        if len(fits) == 1 and signs:
            self.only[fits[0]] += n
            both = "both " if len(signs) == 2 else ""
            self.examples.setdefault(f"{both}only {fits[0]}", example)
        elif len(fits) == 2 and signs:
            self.either[signs[0]] += n
            self.examples.setdefault(f"either {signs[0]}", example)
        elif fits and outline.digits.strip("9") == "" and len(outline.digits) > 3:
            self.long += n

    @property
    def share(self) -> float:
        """The share of the values that are numbers by some decimal sign."""
        return self.n_numbers / self.n_values if self.n_values else 0.0

    @property
    def is_numbers(self) -> bool:
        """Whether nearly all values are numbers."""
        return self.n_values > 0 and self.share >= MOSTLY

    @property
    def decimal(self) -> str:
        """The decimal sign that the values leave no doubt about, or nothing."""
        found = [sign for sign in ".," if self.only[sign]]
        if len(found) == 2:
            less, more = sorted(found, key=lambda sign: self.only[sign])
            return more if self.only[less] <= (1 - MOSTLY) * self.only[more] else ""
        return found[0] if found else ""

    def example(self, *sorts: str) -> str:
        """Return the first value of the first sort that there is."""
        return next((self.examples[sort] for sort in sorts if sort in self.examples), "")


@dataclass(frozen=True)
class NumberFinding:
    """How the numbers of a column are read.

    Attributes
    ----------
    dialect
        The rules; None: they are not one kind of number.
    said
        What was understood and why, in words; nothing where numbers are written as in programs.
    refusal
        Why they are not one kind of number.
    """

    dialect: NumberDialect | None
    said: str = ""
    refusal: str = ""


def locale_of_numbers(columns: dict[str, NumberEvidence]) -> Locale:
    """Return what columns that leave no doubt say about the signs in all columns."""
    sure = {
        name: found.decimal
        for name, found in columns.items()
        if found.is_numbers and found.decimal
    }
    if len({*sure.values()}) != 1:
        return Locale()
    name, sign = next(iter(sure.items()))
    example = columns[name].example(f"both only {sign}", f"only {sign}")
    groups: Counter[str] = sum((columns[n].groups[sign] for n in sure), Counter())
    return Locale(
        decimal=sign,
        thousands=groups.most_common(1)[0][0] if groups else "",
        decimal_from=f"column {name!r} has {example!r}",
    )


def find_numbers(
    name: str, found: NumberEvidence, hints: Hints, *, asked: bool = False
) -> NumberFinding:
    """Decide how the numbers of a column are read.

    Parameters
    ----------
    name
        Of the column.
    found
        What its values say.
    hints
        What else is known.
    asked
        Whether the user says that they are numbers: then any one word behind them is a unit.

    Raises
    ------
    Question
        Where nobody can tell.
    """
    unit, bare, refusal = _unit(found, asked)
    if refusal:
        return NumberFinding(None, refusal=refusal)
    decimal, why = _decimal(name, found, hints)
    thousands: Any = ""
    if decimal:
        groups = found.groups[decimal]
        thousands = groups.most_common(1)[0][0] if groups else ""
        if hints.thousands and not groups:
            thousands = hints.thousands
        elif not groups and hints.locale.thousands != decimal:
            thousands = hints.locale.thousands
    dialect = NumberDialect(decimal, thousands, unit, bare)  # type: ignore[arg-type]
    return NumberFinding(dialect, _words(found, dialect, why))


def _unit(found: NumberEvidence, asked: bool) -> tuple[str, bool, str]:
    """Return the unit, whether numbers may lack it, and why there is not one."""
    units = found.units.copy()
    if asked and len(found.unknown) == 1 and "" not in found.unknown:
        ((word, n),) = found.unknown.items()
        units[Unit(word, f"other {word}")] += n
    total, bare = units.total(), units.pop(BARE, 0)
    few = (1 - MOSTLY) * total
    if units.total() <= few:
        return "", True, ""
    families: Counter[str] = Counter()
    for unit, n in units.items():
        families[unit.family] += n
    (family, n), *_ = families.most_common()
    own = Counter({unit: n for unit, n in units.items() if unit.family == family})
    unit = own.most_common(1)[0][0]
    if units.total() - n > few:
        listed = ", ".join(f"{u.name} ({n:,})" for u, n in units.most_common(3))
        return "", True, f"holds numbers in different units: {listed}"
    if unit.is_share and bare > few:
        return "", True, f"holds numbers with {unit.name} ({n:,}) and without ({bare:,})"
    takes_bare = unit.size == 1 if unit.is_currency else bare > 0
    return unit.name, takes_bare and not unit.is_share, ""


def _decimal(name: str, found: NumberEvidence, hints: Hints) -> tuple[str, str]:
    """Return the decimal sign, and why; nothing where no value has a sign."""
    given = hints.decimal
    if given is None and hints.thousands in (".", ","):
        given = _OTHER[hints.thousands]
    own, n = found.decimal, found.n_values
    if given is not None:
        against = found.only[_OTHER[given]]
        if against > (1 - MOSTLY) * n:
            example = found.example(f"both only {_OTHER[given]}", f"only {_OTHER[given]}")
            raise TableError(
                f"Column {name!r} cannot have the decimal sign {given!r}: {against:,} of "
                f"{count(n, 'value')} can only be read with {_OTHER[given]!r}, such as "
                f"{example!r}. Use decimal={{{name!r}: {_OTHER[given]!r}}} "
                f"(--decimal {quote(f'{name}={_OTHER[given]}')}) for this column."
            )
        return given, "as you said"
    if own:
        sure = found.only[own]
        values = f"{sure:,} of {count(n, 'value')}"
        return own, f"{values} can only be read with a decimal {_CALLED[own]}"
    if found.only.total():
        examples = [found.example(f"both only {s}", f"only {s}") for s in ".,"]
        raise Question(
            f"Column {name!r} mixes numbers with a decimal point, such as {examples[0]!r} "
            f"({found.only['.']:,}), and with a decimal comma, such as {examples[1]!r} "
            f"({found.only[',']:,}). Choose decimal={{{name!r}: ','}} "
            f"(--decimal {quote(f'{name}=,')}) or decimal={{{name!r}: '.'}} "
            f"(--decimal {quote(f'{name}=.')}), and the others become gaps. Or leave the "
            f"column out: drop=[{name!r}] (--drop {quote(name)}). Or, if these are not "
            f"numbers: kinds={{{name!r}: 'category'}} (--kind {quote(f'{name}=category')})."
        )
    open_signs = [sign for sign in ".," if found.either[sign]]
    locale = hints.locale
    if not open_signs:
        return locale.decimal, ""
    sign = open_signs[0]
    by_length = ""
    if len(open_signs) == 1 and found.long * 10 >= found.either[sign]:
        by_length = sign
    if locale.decimal and by_length in ("", locale.decimal):
        return locale.decimal, f"because {locale.decimal_from}"
    if by_length and not locale.decimal:
        return sign, f"{count(found.long, 'value')} of 1000 or more without a separator"
    raise _question(name, found, sign)


def _question(name: str, found: NumberEvidence, sign: str) -> Question:
    example = found.example(f"either {sign}")
    numeral = _numeral(example, sign)
    n = found.either[sign]
    return Question(
        f"Column {name!r}: {example!r} could be {numeral[0]} or {numeral[1]}, and so could "
        f"all {count(n, 'value')} with a {_CALLED[sign]}; no other column settles it. "
        f"Set thousands={sign!r} (--thousands {sign}) or decimal={sign!r} (--decimal {sign}) "
        "to say which."
    )


def _numeral(example: str, sign: str) -> tuple[str, str]:
    """Return a number as if the sign stood between thousands, and before decimals."""
    outline = Outline.of_text(example)
    digits = example if outline is None else example[outline.begin : outline.end]
    return digits.replace(sign, ""), digits.replace(sign, ".")


def _words(found: NumberEvidence, dialect: NumberDialect, why: str) -> str:
    sign = dialect.decimal
    decided = bool(why) and (found.either.total() > 0 or sign == ",")
    if dialect.is_plain and not (decided and not found.only["."]):
        return ""
    if not dialect.unit and not decided and not found.groups[sign or "."]:
        return ""
    sorts = [f"both only {sign}", *(f"either {s}" for s in ".," if not found.only[sign])]
    sorts += [f"only {sign}", "either .", "either ,", f"unit {dialect.unit}"]
    if dialect.unit and f"unit {dialect.unit}" in found.examples:
        own = name_unit(dialect.unit)
        others = [u for u in found.units if u.family == own.family and u not in (own, BARE)]
        converted = [f"unit {u.name}" for u in others]
        both = [sort for sort in sorts if sort.startswith("both")]
        sorts = [*converted, *both, f"unit {dialect.unit}", *sorts]
    for sort in sorts:
        example = found.examples.get(sort, "")
        (value,) = read_numerals(clean(pa.array([example])), dialect)
        if example and value == value:
            break
    else:
        return ""
    number = f"{value:,.15g}"
    unit = f" {dialect.unit}" if dialect.unit else ""
    evidence = f" ({why})" if why and decided else ""
    return f"numbers: {example!r} is {number}{unit}{evidence}"
