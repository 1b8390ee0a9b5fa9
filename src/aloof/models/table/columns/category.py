"""Columns of categories, and of true and false."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from aloof.models.table.columns.base import NEVER, RARE, Choice, Column, Note, Share, Values
from aloof.models.table.columns.codes import nature_of
from aloof.models.table.columns.reading import read_text, unwrapped
from aloof.models.table.dialects.time_evidence import are_durations
from aloof.models.table.words import against, short
from aloof.phrases import count

__all__ = ["FALSE_WORDS", "TRUE_WORDS", "CategoryColumn"]

_MOST_CATEGORIES = 30
# So many rare values are remembered by name; beyond, rare and never seen are the same.
_MOST_RARE = 1000
# Rarer than this a value has no feature of its own.
_SMALLEST_SHARE = 0.001
# With fewer rows nothing can be said about free text.
_ENOUGH_FOR_TEXT = 20

# Between these shares it is worth saying that a column is nearly numbers, or times.
_HALF, _NEARLY_ALL = 0.5, 0.9

# Words for true and false, in any mixture of small and capital letters.
TRUE_WORDS, FALSE_WORDS = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class CategoryColumn(Column):
    """One feature for each frequent value, for the rare ones, for missing, for never seen.

    A feature is 0, or its weight where the row has the value: the rarer, the heavier, as in
    multiple correspondence analysis, up to what is rare enough. All of them together have a
    variance of 1. What was never seen in training, or never missing there, has a feature that
    is 0 in training and the heaviest.

    Attributes
    ----------
    name
        The name in the table.
    categories, shares
        The frequent values, the most frequent first, and their shares of the training rows.
    rare, rare_share
        Other values that were seen, if they are not too many to list, and their share.
    complete
        Whether `rare` lists them all.
    missing_share
        Share of the training rows.
    boolean
        Whether the values are "true" and "false", in any spelling.
    """

    kinds = ("category", "boolean")

    name: str
    categories: tuple[str, ...]
    shares: tuple[Share, ...]
    rare: tuple[str, ...]
    rare_share: Share
    complete: bool
    missing_share: Share
    boolean: bool = False

    @classmethod
    def claim(cls, values: Values) -> Choice | None:
        """Take whatever no other kind does; free text only if the user says so."""
        name, text = values.name, values.text
        if values.kind in cls.kinds:
            return Choice(cls.fit(name, text, boolean=values.kind == "boolean"))
        if values.kind is None and _is_boolean(values):
            return Choice(cls.fit(name, text, boolean=True))
        column = cls.fit(name, text)
        present, distinct = len(text) - text.null_count, values.n_distinct
        unique = distinct == present and present >= _ENOUGH_FOR_TEXT
        covered = sum(column.shares) * len(text) / present
        if unique or (
            distinct > _MOST_CATEGORIES and (distinct > present / 2 or covered < 0.2)
        ):
            return _left_out(values, distinct, present)
        refusal = _refusal(values)
        almost = _almost(values) or (f" It {refusal}." if refusal else "")
        if column.rare_share > 0.3:
            remark = (
                f"Column {name!r} has {distinct:,} different values. The "
                f"{len(column.categories)} most frequent get a feature each; the others "
                f"({column.rare_share:.0%} of the rows) share one.{almost}"
            )
            return Choice(column, warnings=(remark,))
        if almost:
            return Choice(column, warnings=(f"Read column {name!r} as categories.{almost}",))
        return Choice(column)

    @classmethod
    def fit(cls, name: str, text: pa.Array, *, boolean: bool = False) -> CategoryColumn:
        """Learn from text, with at least one value."""
        if boolean:
            text = _as_boolean(text)
        counts = _counts(text)
        n_rows = len(text)
        fewest = max(2, _SMALLEST_SHARE * n_rows) if len(counts) > _MOST_CATEGORIES else 1
        frequent = [value for value, count in counts if count >= fewest][:_MOST_CATEGORIES]
        taken = set(frequent)
        rare = [value for value, _ in counts if value not in taken]
        share_of = {value: count / n_rows for value, count in counts}
        complete = len(rare) <= _MOST_RARE
        return cls(
            name=name,
            categories=tuple(frequent),
            shares=tuple(share_of[value] for value in frequent),
            rare=tuple(sorted(rare)) if complete else (),
            rare_share=float(sum(share_of[value] for value in rare)),
            complete=complete,
            missing_share=text.null_count / n_rows,
            boolean=boolean,
        )

    @property
    def kind(self) -> str:
        """What the values are."""
        return "boolean" if self.boolean else "category"

    @property
    def features(self) -> tuple[str, ...]:
        """What each feature stands for."""
        rare = ("rare values",) if self.rare_share else ()
        missing = ("missing",) if self.missing_share else ()
        return (*self.categories, *rare, *missing, "never seen")

    @property
    def varies(self) -> bool:
        """Whether there is more than one value, or some are missing."""
        return len(self.features) > 2

    def is_known(self, value: str) -> bool:
        """Say whether a value was seen in training, as far as is remembered."""
        return value in self.categories or value in self.rare or not self.complete

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the weight of the value into its feature, 0 into the others."""
        slots = self._slots(array)
        out[:] = 0
        out[np.arange(len(slots)), slots] = self.weights[slots]

    def typical(self) -> str | None:
        """Return the most frequent value."""
        return self.categories[0] if self.categories else None

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the values as text, None where there is none."""
        return np.asarray(self._text(array).to_numpy(zero_copy_only=False), dtype=object)

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the most expected values, None where missing is."""
        names: list[str | None] = [*self.categories]
        names += ["rare values"] if self.rare_share else []
        names += [None] if self.missing_share else []
        expected = features[:, : len(names)] / self.weights[: len(names)]
        values: NDArray[Any] = np.array(names, dtype=object)[expected.argmax(axis=1)]
        return values

    def reason(self, value: Any, expected: Any) -> str:
        """Say the value, and which one was expected."""
        there = self.expected_words(value)
        if not self.is_known(value):
            return f"{there}, never seen in training"
        if value not in self.categories:
            return f"{there}, rare in training"
        return against(there, self.expected_words(expected), same=value == expected)

    def expected_words(self, expected: Any) -> str:
        """Say a value, in quotation marks where it is one of the table."""
        if expected is None:
            return ""
        is_ours = self.boolean or expected == "rare values"
        return str(expected) if is_ours else f"'{short(expected)}'"

    def summary(self) -> str:
        """Say the most frequent values, and how many there are."""
        shown = ", ".join(self.categories[:3])
        n = len(self.categories) + len(self.rare)
        more = "" if self.complete else "more than "
        return shown if n <= 3 else f"{shown}, ... ({more}{n:,} values)"

    def check(self) -> None:
        """Raise where values and shares contradict each other."""
        if len(self.categories) != len(self.shares):
            raise ValueError("there must be one share for each category")
        known = [*self.categories, *self.rare]
        if len(set(known)) < len(known):
            raise ValueError("a value appears more than once")
        if not (self.rare_share or self.categories) or 0 in self.shares:
            raise ValueError("values must have been seen in training")
        if bool(self.rare) != bool(self.rare_share) and self.complete:
            raise ValueError("rare and rare_share contradict each other")
        if self.rare and not self.complete:
            raise ValueError("rare must list all values, or none")

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """What each feature is where a row has its value."""
        rare = [self.rare_share] if self.rare_share else []
        missing = [self.missing_share] if self.missing_share else []
        shares = np.array([*self.shares, *rare, *missing])
        weights = np.minimum(1 / np.sqrt(shares * max(len(shares) - 1, 1)), RARE)
        return np.append(weights, NEVER)

    @cached_property
    def _known(self) -> pa.Array:
        return pa.array([*self.categories, *self.rare], pa.string())

    def _text(self, array: pa.Array) -> pa.Array:
        text = read_text(self.name, array)
        return _as_boolean(text) if self.boolean else text

    def _slots(self, array: pa.Array) -> NDArray[np.intp]:
        """Return the feature of each value."""
        array = unwrapped(self.name, array)
        never = len(self.features) - 1
        missing = never - 1 if self.missing_share else never
        if pt.is_dictionary(array.type):
            by_code = np.append(self._slots(array.dictionary), missing)
            codes = pc.fill_null(array.indices.cast(pa.int64()), len(by_code) - 1)
            found: NDArray[np.intp] = by_code[codes.to_numpy(zero_copy_only=False)]
            return found
        text = self._text(array)
        n = len(self.categories)
        codes = pc.fill_null(pc.index_in(text, value_set=self._known), -1)
        slots: NDArray[np.intp] = codes.to_numpy(zero_copy_only=False).astype(np.intp)
        slots[slots > n] = n  # all rare ones share a feature
        slots[slots < 0] = never if self.complete else n
        if text.null_count:
            slots[pc.is_null(text).to_numpy(zero_copy_only=False)] = missing
        return slots


def _left_out(values: Values, distinct: int, present: int) -> Choice:
    """Return that a column has too many values to learn from, called what it is."""
    name, nature = values.name, nature_of(values)
    what, read = f"holds {nature}", ""
    if refusal := _refusal(values):
        what = refusal
    elif nature == "free text":
        what = "is free text"
        read = f"Read it with kinds={{{name!r}: 'text'}} (--text {quote(name)}), or keep"
    return Choice(
        None,
        what,
        (
            f"Column {name!r} {what} ({distinct:,} different values in "
            f"{count(present, 'row')}), so it is left out. {read or 'Keep'} its frequent "
            f"values with kinds={{{name!r}: 'category'}} (--kind "
            f"{quote(f'{name}=category')}).{_almost(values)}",
        ),
    )


def _refusal(values: Values) -> str:
    """Say why numbers are not one kind of number, or nothing."""
    if values.kind is not None or not values.evidence.numbers.is_numbers:
        return ""
    return values.written_numbers.refusal


def _almost(values: Values) -> str:
    """Say what the column would nearly have been, or nothing."""
    if values.kind is not None:
        return ""
    if values.evidence.times.is_times and are_durations(values.name, values.evidence.times):
        return (
            " It looks like durations. Write them as numbers, such as seconds; or, if they "
            f"are times of day, set kinds={{{values.name!r}: 'timestamp'}} (--kind "
            f"{quote(f'{values.name}=timestamp')})."
        )
    for kind in ("number", "timestamp"):
        found = values.evidence.numbers if kind == "number" else values.evidence.times
        if _HALF <= found.share < _NEARLY_ALL:
            return (
                f" {found.share:.0%} of its values can be read as {kind}s. To read it so, "
                f"with gaps for the others: kinds={{{values.name!r}: '{kind}'}} (--kind "
                f"{quote(f'{values.name}={kind}')})."
            )
    return _in_unknown_unit(values)


def _in_unknown_unit(values: Values) -> str:
    """Say that many numbers have one and the same word behind them, or nothing."""
    seen = values.evidence.numbers
    (word, n), *others = seen.unknown.most_common() or [("", 0)]
    if not word or others or values.n_distinct <= _MOST_CATEGORIES:
        return ""
    if n < _NEARLY_ALL * seen.n_values:
        return ""
    return (
        f" If they are numbers in {word!r}: kinds={{{values.name!r}: 'number'}} (--kind "
        f"{quote(f'{values.name}=number')})."
    )


def _is_boolean(values: Values) -> bool:
    """Say whether the values are true and false, in a spelling that is not that of numbers."""
    if not values.is_text or values.evidence.numbers.is_numbers:
        return bool(pt.is_boolean(values.array.type))
    spelled = pc.utf8_lower(pc.unique(_as_boolean(values.text)).drop_null())
    return set(spelled.slice(0, 3).to_pylist()) <= {"true", "false"}


def _as_boolean(text: pa.Array) -> pa.Array:
    """Return "true" and "false" for the words that mean it, other text as it is."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    is_true = pc.is_in(words, value_set=pa.array(TRUE_WORDS))
    is_false = pc.is_in(words, value_set=pa.array(FALSE_WORDS))
    return pc.if_else(is_true, "true", pc.if_else(is_false, "false", text))


def _counts(text: pa.Array) -> list[tuple[str, int]]:
    """Return the values and how often they are there, the most frequent first."""
    counted = pc.value_counts(text.drop_null())
    pairs = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
