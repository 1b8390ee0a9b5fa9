"""Columns with one value, or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.tabular.columns.base import NEVER, Kind, Note, column_state, flag_weight
from aloof.tabular.columns.reading import read_numbers, read_text

__all__ = ["ConstantColumn"]


@dataclass(frozen=True)
class ConstantColumn:
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

    kind: ClassVar[Kind] = "constant"

    name: str
    value: str | None
    number: float | None
    missing_share: float

    @property
    def parts(self) -> tuple[str, ...]:
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

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the values as text, None where there is none."""
        text = read_text(self.name, array).to_numpy(zero_copy_only=False)
        return np.asarray(text, dtype=object)

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the one value."""
        return np.full(len(features), self.value, dtype=object)

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return column_state(self)

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
