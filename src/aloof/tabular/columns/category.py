"""Columns of categories, and of true and false."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from aloof.tabular.columns.base import NEVER, RARE, Kind, Note, column_state
from aloof.tabular.columns.reading import plain, read_text

__all__ = ["MOST_CATEGORIES", "CategoryColumn", "as_boolean"]

MOST_CATEGORIES = 30
# So many rare values are remembered by name; beyond, rare and never seen are the same.
_MOST_RARE = 1000
# Rarer than this a value has no feature of its own.
_SMALLEST_SHARE = 0.001

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


@dataclass(frozen=True)
class CategoryColumn:
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

    name: str
    categories: tuple[str, ...]
    shares: tuple[float, ...]
    rare: tuple[str, ...]
    rare_share: float
    complete: bool
    missing_share: float
    boolean: bool = False

    @classmethod
    def fit(cls, name: str, text: pa.Array, *, boolean: bool = False) -> CategoryColumn:
        """Learn from text, with at least one value."""
        if boolean:
            text = as_boolean(text)
        counts = _counts(text)
        n_rows = len(text)
        fewest = max(2, _SMALLEST_SHARE * n_rows) if len(counts) > MOST_CATEGORIES else 1
        frequent = [value for value, count in counts if count >= fewest][:MOST_CATEGORIES]
        taken = set(frequent)
        rare = [value for value, _ in counts if value not in taken]
        share_of = {value: count / n_rows for value, count in counts}
        complete = len(rare) <= _MOST_RARE
        return cls(
            name=name,
            categories=tuple(frequent),
            shares=tuple(share_of[value] for value in frequent),
            rare=tuple(sorted(rare)) if complete else (),
            rare_share=sum(share_of[value] for value in rare),
            complete=complete,
            missing_share=text.null_count / n_rows,
            boolean=boolean,
        )

    @property
    def kind(self) -> Kind:
        """What the values are."""
        return "boolean" if self.boolean else "category"

    @property
    def parts(self) -> tuple[str, ...]:
        """What each feature stands for."""
        rare = ("rare values",) if self.rare_share else ()
        missing = ("missing",) if self.missing_share else ()
        return (*self.categories, *rare, *missing, "never seen")

    @property
    def varies(self) -> bool:
        """Whether there is more than one value, or some are missing."""
        return len(self.parts) > 2

    def is_known(self, value: str) -> bool:
        """Say whether a value was seen in training, as far as is remembered."""
        return value in self.categories or value in self.rare or not self.complete

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the weight of the value into its feature, 0 into the others."""
        slots = self._slots(array)
        out[:] = 0
        out[np.arange(len(slots)), slots] = self._weights[slots]

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the values as text, None where there is none."""
        text = read_text(self.name, array)
        if self.boolean:
            text = as_boolean(text)
        return np.asarray(text.to_numpy(zero_copy_only=False), dtype=object)

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the most expected values, None where missing is."""
        names: list[str | None] = [*self.categories]
        names += ["rare values"] if self.rare_share else []
        names += [None] if self.missing_share else []
        expected = features[:, : len(names)] / self._weights[: len(names)]
        values: NDArray[Any] = np.array(names, dtype=object)[expected.argmax(axis=1)]
        return values

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return column_state(self)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        rare = [self.rare_share] if self.rare_share else []
        missing = [self.missing_share] if self.missing_share else []
        shares = np.array([*self.shares, *rare, *missing])
        weights = np.minimum(1 / np.sqrt(shares * max(len(shares) - 1, 1)), RARE)
        return np.append(weights, NEVER)

    @cached_property
    def _known(self) -> pa.Array:
        return pa.array([*self.categories, *self.rare], pa.string())

    def _slots(self, array: pa.Array) -> NDArray[np.intp]:
        """Return the feature of each value."""
        array = plain(self.name, array)
        never = len(self.parts) - 1
        missing = never - 1 if self.missing_share else never
        if pt.is_dictionary(array.type):
            by_code = np.append(self._slots(array.dictionary), missing)
            codes = pc.fill_null(array.indices.cast(pa.int64()), len(by_code) - 1)
            found: NDArray[np.intp] = by_code[codes.to_numpy(zero_copy_only=False)]
            return found
        text = read_text(self.name, array)
        if self.boolean:
            text = as_boolean(text)
        n = len(self.categories)
        codes = pc.fill_null(pc.index_in(text, value_set=self._known), -1)
        slots: NDArray[np.intp] = codes.to_numpy(zero_copy_only=False).astype(np.intp)
        slots[slots > n] = n  # all rare ones share a feature
        slots[slots < 0] = never if self.complete else n
        if text.null_count:
            slots[pc.is_null(text).to_numpy(zero_copy_only=False)] = missing
        return slots


def as_boolean(text: pa.Array) -> pa.Array:
    """Return "true" and "false" for the words that mean it, other text as it is."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    is_true = pc.is_in(words, value_set=pa.array(_TRUE))
    is_false = pc.is_in(words, value_set=pa.array(_FALSE))
    return pc.if_else(is_true, "true", pc.if_else(is_false, "false", text))


def _counts(text: pa.Array) -> list[tuple[str, int]]:
    """Return the values and how often they are there, the most frequent first."""
    counted = pc.value_counts(text.drop_null())
    pairs = zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
