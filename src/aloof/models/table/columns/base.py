"""What a kind of columns is: when it claims a column, how it encodes, what it says."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from shlex import quote
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray
from pydantic import ConfigDict, Field

from aloof.io.sections import STRICT, from_json
from aloof.models.differences import Share
from aloof.models.table.columns.reading import (
    Reading,
    decoded,
    is_text,
    read_numbers,
    read_text,
)
from aloof.models.table.dialects import Evidence, Hints, TimeDialect
from aloof.models.table.dialects.number_evidence import NumberFinding, find_numbers
from aloof.models.table.dialects.numbers import PLAIN
from aloof.models.table.dialects.time_evidence import (
    TimeFinding,
    epoch_of,
    find_times,
    is_compact,
)
from aloof.models.table.locating import Misread, MisreadError
from aloof.models.table.words import against, missing_words, short

__all__ = [
    "LIMIT",
    "NEVER",
    "RARE",
    "Choice",
    "Column",
    "Note",
    "Positive",
    "Share",
    "Values",
    "flag_weight",
]

# Takes the text in a column that could not be read, and words for what it should have been.
Note = Callable[[pa.Array, str], None]

# Standard deviations: as far as a value can be from the mean, as far as what is rare in
# training stands out, and what was never seen there.
LIMIT, RARE, NEVER = 30.0, 4.0, 6.0

# Numbers of a state.
Positive = Annotated[float, Field(gt=0)]


@dataclasses.dataclass(frozen=True)
class Values:
    """The training values of one column, read in each way at most once.

    Attributes
    ----------
    name
        Of the column.
    array
        Its values.
    kind
        What it is, where the user knows better.
    embedder
        What makes vectors of text.
    hints
        What is known besides about how they are written.
    seen
        What all values say about it, also those of rows that are not learned from.
    """

    name: str
    array: pa.Array
    kind: str | None
    embedder: str
    hints: Hints = dataclasses.field(default_factory=Hints)
    seen: Evidence | None = None

    @property
    def type(self) -> pa.DataType:
        """The type of the values, also of those in a dictionary."""
        kind = self.array.type
        return kind.value_type if pt.is_dictionary(kind) else kind

    @property
    def is_text(self) -> bool:
        """Whether they came as text, which may hold anything."""
        return is_text(self.array.type)

    @cached_property
    def text(self) -> pa.Array:
        """The values as text."""
        return read_text(self.name, self.array)

    @cached_property
    def n_distinct(self) -> int:
        """How many different values there are, without missing ones."""
        return int(pc.count_distinct(self.text).as_py())

    @cached_property
    def missing_share(self) -> float:
        """The share of the rows where there is none."""
        return float(self.text.null_count / len(self.text))

    @cached_property
    def evidence(self) -> Evidence:
        """What the values say about how they are written."""
        if self.seen is not None:
            return self.seen
        return Evidence(decoded(self.name, self.array) if self.is_text else None)

    @cached_property
    def written_numbers(self) -> NumberFinding:
        """How numbers in text are written; a `Question` where nobody can tell."""
        asked = self.kind is not None
        return find_numbers(self.name, self.evidence.numbers, self.hints, asked=asked)

    @cached_property
    def written_times(self) -> TimeFinding:
        """How times in text are written; a `Question` where nobody can tell."""
        return find_times(self.name, self.evidence.times, self.hints)

    @cached_property
    def numbers(self) -> Reading:
        """The values as numbers."""
        dialect = self.written_numbers.dialect if self.is_text else PLAIN
        if dialect in (None, PLAIN):
            return self._plain_numbers
        return read_numbers(self.name, self.array, dialect)

    @cached_property
    def _plain_numbers(self) -> Reading:
        return read_numbers(self.name, self.array)

    @cached_property
    def times_in_numbers(self) -> TimeDialect | None:
        """How numbers are times: since 1970, or as in 20240131; None: they are none."""
        if self.is_text and not self.evidence.numbers.is_numbers:
            return None
        if not (self.is_text or pt.is_integer(self.type) or pt.is_floating(self.type)):
            return None
        found = self._plain_numbers
        if not found.is_most:
            return None
        if epoch := epoch_of(self.name, found.values, asked=self.kind is not None):
            return TimeDialect(epoch=epoch)
        return TimeDialect(compact=True) if is_compact(found.values) else None

    def unread(self, what: str, reading: Reading) -> MisreadError:
        """Return the error that they are not what the user says."""
        parts = [part for part in (reading.unreadable, reading.impossible) if part is not None]
        bad = pa.concat_arrays(parts)
        return MisreadError(
            Misread.of(
                self.name,
                f"Column {self.name!r} cannot be read as {what}: {len(bad):,} of its "
                f"{len(self.array):,} values do not fit, such as ",
                f". Say how it is written, or leave it out: drop=[{self.name!r}] (--drop "
                f"{quote(self.name)}).",
                bad,
                5,
            )
        )


@dataclasses.dataclass(frozen=True)
class Choice:
    """What becomes of a column.

    Attributes
    ----------
    column
        How it is encoded; None if it is dropped.
    reason
        Why it is dropped.
    warnings
        What the user should know.
    said
        How its values are read, in words, where that does not go without saying.
    """

    column: Column | None
    reason: str = ""
    warnings: tuple[str | Misread, ...] = ()
    said: str = ""


class Column(ABC):
    """One column of a table: what was learned about it, and how it becomes features.

    A kind of columns is a subclass that is a frozen dataclass, whose fields JSON can hold, and
    that `aloof.models.table.columns.register` makes known. The features of a column have a
    variance of about 1 taken together, so that a category with many values counts as much as
    a number.

    Attributes
    ----------
    kinds
        What users call such columns.
    on_request
        Whether users can say that a column is one.
    reads_text
        Whether values are documents, whose passages can be told apart.
    name
        The name in the table.
    missing_share
        The share of the training rows where it is missing.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kinds: ClassVar[tuple[str, ...]]
    on_request: ClassVar[bool] = True
    reads_text: ClassVar[bool] = False

    name: str
    missing_share: float

    @classmethod
    @abstractmethod
    def claim(cls, values: Values) -> Choice | None:
        """Return what becomes of a column with these values; None: it is of another kind.

        Where ``values.kind`` is one of `kinds`, the user says that it is of this one.
        """

    @property
    def kind(self) -> str:
        """What the values are."""
        return self.kinds[0]

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """What each feature stands for."""

    @property
    def varies(self) -> bool:
        """Whether the features vary in training."""
        return True

    @abstractmethod
    def encode(self, array: pa.Array, out: NDArray[np.float32], note: Note) -> None:
        """Write the features into `out`, ``(n, len(features))``."""

    def absent(self) -> NDArray[np.float32]:
        """Return the features where a table lacks the column: nothing that stands out.

        They are those of a missing value, or of `typical` where none was missing in training.
        """
        value = None if self.missing_share else self.typical()
        out = np.zeros((1, len(self.features)), np.float32)
        if self.missing_share or value is not None:
            self.encode(pa.array([value], pa.string()), out, lambda values, what: None)
        features: NDArray[np.float32] = out[0]
        return features

    def typical(self) -> str | None:
        """Return a value as a typical row has it, as text; None: there is none."""
        return None

    def read(self, array: pa.Array) -> NDArray[Any]:
        """Return the values as they are understood: text, None where there is none."""
        text = read_text(self.name, array).to_numpy(zero_copy_only=False)
        return np.asarray(text, dtype=object)

    def decode(self, features: NDArray[np.float64]) -> NDArray[Any]:
        """Return the values that features stand for, as `read` does; None: nobody can tell."""
        return np.full(len(features), None, dtype=object)

    def reasons(
        self,
        values: NDArray[Any],
        expected: NDArray[Any],
        contributions: NDArray[np.float64],
        features: NDArray[np.float64],
    ) -> list[str]:
        """Say for some rows why the column stands out.

        Parameters
        ----------
        values, expected
            What is there and what was expected, ``(n,)``, as `read` gives it.
        contributions, features
            Of each feature, and what was expected of it, ``(n, len(features))``.
        """
        return [
            f"`{self.name}` "
            + (
                missing_words(self.missing_share, self.expected_words(wanted))
                if value is None or value != value
                else self.reason(value, wanted)
            )
            for value, wanted in zip(values, expected, strict=True)
        ]

    def reason(self, value: Any, expected: Any) -> str:
        """Say why a value that is there stands out."""
        return against(f"'{short(str(value))}'", None, same=True)

    def expected_words(self, expected: Any) -> str:
        """Say what was expected where a value is missing; nothing: just a value."""
        return ""

    def summary(self) -> str:
        """Say what the values were in training."""
        return ""

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        fields: Any = self
        return {"kind": self.kind, **dataclasses.asdict(fields)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the column whose `state` this is; a ValueError says what is wrong with it."""
        column = from_json(cls, {key: state[key] for key in state if key != "kind"})
        if column.kind != state.get("kind"):
            raise ValueError(f"kind must be {column.kind!r}, got {state.get('kind')!r}")
        column.check()
        return column

    def check(self) -> None:  # noqa: B027 - most have nothing to add
        """Raise a ValueError where fields, each right by itself, contradict each other."""

    def expects_none(self, features: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return where the flag of missing values is what features stand for."""
        if "missing" not in self.features:
            return np.zeros(len(features), bool)
        flag = features[:, self.features.index("missing")]
        return np.asarray(flag > flag_weight(self.missing_share) / 2)


def flag_weight(share: float) -> float:
    """Return the weight of a feature that is 1 in this share of the rows, 0 in the others."""
    variance = share * (1 - share)
    return min(1 / np.sqrt(variance), RARE) if variance > 0 else RARE
