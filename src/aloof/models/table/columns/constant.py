"""Columns with one value, or none."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.models.table.columns.base import (
    NEVER,
    Choice,
    Column,
    Note,
    Share,
    Values,
    flag_weight,
)
from aloof.models.table.columns.reading import read_numbers, read_text
from aloof.models.table.words import short

__all__ = ["ConstantColumn"]


@dataclass(frozen=True)
class ConstantColumn(Column):
    """A check: 0 where the value is the one of all training rows, else as never seen.

    Attributes
    ----------
    name
        The name in the table.
    value
        The value, as text; None if all are missing.
    number
        The same as a number, if it is one.
    missing_share
        Share of the training rows. Between 0 and 1 there is a flag for it.
    """

    kinds = ("constant",)
    on_request = False

    name: str
    value: str | None
    number: float | None
    missing_share: Share

    @classmethod
    def claim(cls, values: Values) -> Choice | None:
        """Take what has one value at most."""
        if values.n_distinct > 1:
            return None
        value = values.text.drop_null()[0].as_py() if values.n_distinct else None
        return cls.choice(values.name, value, values.missing_share)

    @classmethod
    def choice(cls, name: str, value: str | None, missing_share: float) -> Choice:
        """Return a column that always has this value, with words about it."""
        number = None
        if value is not None:
            (parsed,) = read_numbers(name, pa.array([value])).values
            number = float(parsed) if np.isfinite(parsed) else None
        what = (
            "has no value in any training row. Any value"
            if value is None
            else f"is always {short(value)!r} in training. Any other value"
        )
        words = (
            f"Column {name!r} {what} will count as never seen. If that should not matter, "
            f"leave the column out: drop=[{name!r}] (--drop {quote(name)})."
        )
        return Choice(cls(name, value, number, missing_share), warnings=(words,))

    @property
    def features(self) -> tuple[str, ...]:
        """What each feature stands for."""
        return ("value", "missing") if self.varies else ("value",)

    @property
    def varies(self) -> bool:
        """Whether the value is missing in some rows."""
        return self.value is not None and self.missing_share > 0

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write whether the value is another, and whether it is missing."""
        there, same = self._compare(array)
        expected = same if self.value is not None else ~there
        if self.varies:
            expected = expected | ~there
            out[:, 1] = ~there * flag_weight(self.missing_share)
        out[:, 0] = ~expected * NEVER

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the one value."""
        return np.full(len(features), self.value, dtype=object)

    def reason(self, value: Any, expected: Any) -> str:
        """Say the value, and which one it always was."""
        if self.value is None:
            return f"'{short(value)}', though it never had a value in training"
        return f"'{short(value)}' where it was always '{short(self.value)}' in training"

    def summary(self) -> str:
        """Say the value."""
        return "nothing" if self.value is None else f"always {self.value}"

    def _compare(self, array: pa.Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return where there is a value, and where it is the one."""
        text = read_text(self.name, array)
        there = pc.is_valid(text).to_numpy(zero_copy_only=False)
        if self.value is None:
            return there, ~there
        same = pc.fill_null(pc.equal(text, self.value), False).to_numpy(zero_copy_only=False)
        if self.number is not None:
            same = same | (read_numbers(self.name, text).values == self.number)
        return there, same
