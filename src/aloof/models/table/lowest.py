"""The rows of a stream with the lowest keys, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aloof.models.table.files import joined_table

__all__ = ["Lowest", "Rows"]


@dataclass(frozen=True)
class Rows:
    """Some rows of a table, and arrays with an entry for each.

    Attributes
    ----------
    table
        The rows.
    arrays
        By name, such as the scores.
    """

    table: pa.Table
    arrays: dict[str, NDArray[Any]]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def take(self, which: NDArray[np.intp]) -> Rows:
        """Return the rows at these places, in this order."""
        taken = {name: array[which] for name, array in self.arrays.items()}
        return Rows(self.table.take(pa.array(which)), taken)


class Lowest:
    """The `n` rows with the lowest keys of all that were added; the earlier of equal ones.

    Memory holds up to twice as many. The highest are those with the lowest negative keys, and
    a random sample those with the lowest random keys.
    """

    def __init__(self, n: int) -> None:
        self._n, self._bound = n, np.inf
        self._parts: list[Rows] = []
        self._keys: list[NDArray[np.float64]] = []

    def add(self, rows: Rows, keys: NDArray[np.float64]) -> None:
        """Take rows as far as they are among the lowest yet; infinite keys are never."""
        chosen = np.flatnonzero(keys < self._bound)
        if len(chosen) > self._n:
            chosen = np.sort(chosen[np.argsort(keys[chosen], kind="stable")[: self._n]])
        if len(chosen) or not self._parts:
            self._parts.append(rows.take(chosen))
            self._keys.append(keys[chosen])
        if sum(map(len, self._keys)) > 2 * self._n:
            self._shrink()

    def rows(self) -> Rows:
        """Return the rows, lowest key first; there must have been some to choose from."""
        self._shrink()
        return self._parts[0]

    def _shrink(self) -> None:
        keys, parts = np.concatenate(self._keys), self._parts
        order = np.argsort(keys, kind="stable")[: self._n]
        batches = [batch for part in parts for batch in part.table.to_batches()]
        joined = Rows(
            joined_table(batches) if batches else parts[0].table,
            {name: np.concatenate([part[name] for part in parts]) for name in parts[0].arrays},
        )
        self._parts, self._keys = [joined.take(order)], [keys[order]]
        if len(order) == self._n:
            self._bound = float(self._keys[0][-1])
