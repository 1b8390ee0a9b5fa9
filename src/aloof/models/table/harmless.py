"""Rows that are known to be harmless: a value in a column, as a reviewer said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["LONGEST", "Harmless", "Rules", "shown_texts", "suppressed", "values_of"]

LONGEST = 2000  # characters of a value that are shown, and compared
_NUMBERS = (int, float, Decimal)


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


class Rules:
    """Rules that rows are held against: the first one that covers a row names it.

    A value is compared as the text that people are shown. A number is also compared as a
    number: whether 3 comes as 3 or as 3.0 depends on the numbers beside it.

    Parameters
    ----------
    rules
        All of them, the first one first.

    Examples
    --------
    >>> rules = Rules([Harmless("host", "backup"), Harmless("n", "3")])
    >>> rules.covering({"host": ["web", "backup", None], "n": [1, 3.0, 3.0]}, 3)
    [None, 'host = backup', 'n = 3']
    """

    def __init__(self, rules: Sequence[Harmless] = ()) -> None:
        self.words = tuple(map(str, rules))
        self._places: dict[str, dict[Any, int]] = {}
        for place, rule in enumerate(rules):
            known = self._places.setdefault(rule.column, {})
            known.setdefault(rule.value, place)
            if (number := _number(rule.value)) is not None:
                known.setdefault(number, place)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that rules are about."""
        return tuple(self._places)

    def first(self, values: Mapping[str, Iterable[Any]], n: int) -> NDArray[np.int64]:
        """Return the first rule that each of `n` rows is covered by; -1: there is none.

        Parameters
        ----------
        values
            By column; others than those that rules are about do not matter.
        n
            How many rows there are.
        """
        found = np.full(n, -1, np.int64)
        for column, known in self._places.items():
            if column not in values:
                continue
            for row, value in enumerate(values[column]):
                place = _place(known, value)
                if place >= 0 and not 0 <= found[row] < place:
                    found[row] = place
        return found

    def covering(self, values: Mapping[str, Iterable[Any]], n: int) -> list[str | None]:
        """Return the same in words."""
        return [self.words[k] if k >= 0 else None for k in self.first(values, n).tolist()]


def shown_texts(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Return values as people are shown them, and as rules compare them."""
    return [_shown(value) for value in values_of(column)]


def values_of(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return the values of a column; what is none in Python, such as times, is text."""
    try:
        values: list[Any] = column.to_pylist()
    except (ValueError, OverflowError):
        values = column.cast(pa.string()).to_pylist()
    return values


def suppressed(table: pa.Table, rules: Sequence[Harmless]) -> NDArray[np.int64]:
    """Return the first rule that each row is covered by; -1: there is none.

    Examples
    --------
    >>> table = pa.table({"host": ["web", "backup", None], "n": [1, 2, 3]})
    >>> suppressed(table, [Harmless("host", "backup"), Harmless("n", "3")]).tolist()
    [-1, 0, 1]
    """
    known, given = Rules(rules), {*table.column_names}
    values = {name: values_of(table[name]) for name in known.columns if name in given}
    return known.first(values, table.num_rows)


def _shown(value: Any) -> str:
    return "" if value is None else str(value)[:LONGEST]


def _place(known: Mapping[Any, int], value: Any) -> int:
    """Return the first rule for a value; -1: there is none."""
    place = known.get(_shown(value), -1)
    if isinstance(value, _NUMBERS) and not isinstance(value, bool):
        by_number = known.get(value, -1)
        if by_number >= 0 and not 0 <= place < by_number:
            return by_number
    return place


def _number(text: str) -> int | float | None:
    """Return the number that a text stands for, if it is one that equals itself."""
    for read in (int, float):
        with suppress(ValueError):
            number: int | float = read(text)
            return number if number == number else None
    return None
