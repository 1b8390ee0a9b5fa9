"""Where in a file something stands: what is said about a value names its line.

What says something about values that cannot be read holds them as `Misread`, as errors and
warnings do. Who knows the file says where they are: files are read again for that, and only if
something is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from aloof.exceptions import LabelError, TableError, TableWarning
from aloof.models.table.words import short

__all__ = [
    "Misread",
    "MisreadError",
    "MisreadLabels",
    "MisreadWarning",
    "Spot",
    "locating_errors",
    "locating_warnings",
]


@dataclass(frozen=True)
class Spot:
    """A place in a file, counted as people who open the file see it.

    Attributes
    ----------
    line
        From 1 on.
    word
        What lines are called: "line", "sheet row".
    file
        Which file, where there are more than one.
    """

    line: int
    word: str = "line"
    file: str | None = None

    def __str__(self) -> str:
        of = "" if self.file is None else f" of {self.file}"
        return f"{self.word} {self.line:,}{of}"


@dataclass(frozen=True)
class Misread:
    """Values of a column that cannot be read, and what there is to say about them.

    Attributes
    ----------
    column
        Its name.
    before, after
        What stands before and after the examples.
    examples
        The first different values.
    n_more
        How many more different ones there are.
    """

    column: str
    before: str
    after: str
    examples: tuple[str, ...]
    n_more: int = 0

    @classmethod
    def of(cls, column: str, before: str, after: str, bad: pa.Array, most: int = 3) -> Self:
        """Return what to say about some values."""
        different = pc.unique(bad)
        first = tuple(different.slice(0, most).to_pylist())
        return cls(column, before, after, first, len(different) - len(first))

    def words(self, spots: Mapping[str, Spot]) -> str:
        """Say it, with the places of the examples as far as they are known."""
        shown = ", ".join(
            repr(short(value)) + (f" in {spots[value]}" if value in spots else "")
            for value in self.examples
        )
        more = f" and {self.n_more:,} more" if self.n_more else ""
        return f"{self.before}{shown}{more}{self.after}"

    def __str__(self) -> str:
        return self.words({})


class MisreadError(TableError):
    """Values that cannot be read."""

    def __init__(self, misread: Misread, spots: Mapping[str, Spot] | None = None) -> None:
        super().__init__(misread.words(spots or {}))
        self.misread = misread


class MisreadLabels(MisreadError, LabelError):
    """Labels that cannot be read."""


class MisreadWarning(TableWarning):
    """Values that cannot be read and count as missing."""

    def __init__(self, misread: Misread, spots: Mapping[str, Spot] | None = None) -> None:
        super().__init__(misread.words(spots or {}), misread.column)
        self.misread = misread


class _File(Protocol):
    def lines_of(self, column: str, values: Sequence[str]) -> dict[str, Spot]: ...


@contextmanager
def locating_errors(data: _File | Any) -> Iterator[None]:
    """Put the lines of a file into errors about its values; a frame has none."""
    try:
        yield
    except MisreadError as error:
        raise type(error)(error.misread, _spots(data, error.misread)) from error


def locating_warnings(
    data: _File | Any, say: Callable[[TableWarning], None]
) -> Callable[[TableWarning], None]:
    """Return what puts the lines of a file into warnings before they are said."""

    def located(warning: TableWarning) -> None:
        if isinstance(warning, MisreadWarning):
            misread = warning.misread
            warning = MisreadWarning(misread, _spots(data, misread))
        say(warning)

    return located


def _spots(data: _File | Any, misread: Misread) -> dict[str, Spot]:
    if not hasattr(data, "lines_of"):
        return {}
    return dict(data.lines_of(misread.column, misread.examples))
