"""What the kinds of columns have in common."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["LIMIT", "NEVER", "RARE", "Column", "Kind", "Note", "column_state", "flag_weight"]

Kind = Literal["number", "category", "boolean", "timestamp", "text", "constant"]

# Takes the text in a column that could not be read, and words for what it should have been.
Note = Callable[[pa.Array, str], None]

# Standard deviations: as far as a value can be from the mean, as far as what is rare in
# training stands out, and what was never seen there.
LIMIT, RARE, NEVER = 30.0, 4.0, 6.0


class Column(Protocol):
    """One column of a table: what was learned about it, and how it becomes features.

    The features of a column have a variance of about 1 taken together, so that a category
    with many values counts as much as a number.
    """

    @property
    def name(self) -> str:
        """The name in the table."""

    @property
    def kind(self) -> Kind:
        """What the values are."""

    @property
    def missing_share(self) -> float:
        """The share of the training rows where it is missing."""

    @property
    def parts(self) -> tuple[str, ...]:
        """What each feature stands for."""

    @property
    def varies(self) -> bool:
        """Whether the features vary in training."""

    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the features into `out`, ``(n, len(parts))``."""

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the values as they are understood."""

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the values that features ``(n, len(parts))`` stand for, as `read` does."""

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""


def column_state(column: Any) -> dict[str, Any]:
    """Return the fields of a column, a dataclass, and its kind."""
    return {"kind": column.kind, **dataclasses.asdict(column)}


def flag_weight(share: float) -> float:
    """Return the weight of a feature that is 1 in this share of the rows, 0 in the others."""
    variance = share * (1 - share)
    return min(1 / np.sqrt(variance), RARE) if variance > 0 else RARE
