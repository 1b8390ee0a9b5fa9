"""Rows that are known to be harmless: a value in a column, as a reviewer said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["LONGEST", "Harmless", "shown_texts", "suppressed"]

LONGEST = 2000  # characters of a value that are shown, and compared


@dataclass(frozen=True)
class Harmless:
    """Rows with this value in this column are not to be flagged.

    Attributes
    ----------
    column, value
        The column, and the value as text.
    """

    column: str
    value: str

    def __str__(self) -> str:
        return f"{self.column} = {self.value}"


def shown_texts(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Return values as people are shown them, and as rules compare them."""
    return ["" if v is None else str(v)[:LONGEST] for v in column.to_pylist()]


def suppressed(table: pa.Table, rules: Sequence[Harmless]) -> NDArray[np.int64]:
    """Return the first rule that each row is covered by; -1: there is none.

    Examples
    --------
    >>> table = pa.table({"host": ["web", "backup", None], "n": [1, 2, 3]})
    >>> suppressed(table, [Harmless("host", "backup"), Harmless("n", "3")]).tolist()
    [-1, 0, 1]
    """
    found = np.full(table.num_rows, -1, np.int64)
    texts: dict[str, NDArray[np.object_]] = {}
    for place, rule in enumerate(rules):
        if rule.column not in table.column_names:
            continue
        if rule.column not in texts:
            texts[rule.column] = np.array(shown_texts(table[rule.column]), object)
        found[(found < 0) & (texts[rule.column] == rule.value)] = place
    return found
