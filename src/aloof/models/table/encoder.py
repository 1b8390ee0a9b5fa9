"""From a table of anything to an array of finite numbers, and back to values."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from aloof.exceptions import ModelError, TableError, TableWarning
from aloof.io.sections import from_json
from aloof.labels import ANOMALY
from aloof.models.table.columns import (
    Column,
    choose_column,
    column_from_state,
    one_array,
)
from aloof.models.table.columns.reading import is_text, unwrapped
from aloof.models.table.dialects import Evidence, Question, Wishes, survey
from aloof.models.table.frames import to_table
from aloof.models.table.locating import Misread, MisreadError, MisreadWarning
from aloof.suggestion import closest
from aloof.text import DEFAULT_EMBEDDER

__all__ = ["Feature", "MissingColumns", "TableEncoder", "Unreadable"]

MissingColumns = Literal["refuse", "fill"]
"""What to do with a table that lacks columns of the training table."""

# Rows encoded at a time: they stay in the processor's cache.
_ROWS = 16_384
# Columns whose values say how numbers and times are written in the whole table.
_READ = (None, "number", "timestamp")
# From so many values on, a column of which none can be read is another column.
_ENOUGH_TO_REFUSE = 20


@dataclass(frozen=True)
class Feature:
    """One number of an encoded row.

    Attributes
    ----------
    column
        The column of the table it comes from.
    name
        What it says about it: "value", "missing", a category.
    """

    column: str
    name: str


@dataclass(frozen=True)
class _State:
    """What JSON holds of an encoder."""

    __pydantic_config__ = Column.__pydantic_config__

    columns: Annotated[list[dict[str, Any]], Field(min_length=1)]
    dropped: dict[str, str]
    warnings: tuple[str, ...]
    n_rows: Annotated[int, Field(ge=1)]
    readings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Unreadable:
    """Values of a column that could not be read; they count as missing.

    Attributes
    ----------
    column
        Its name.
    what
        What they should be, in words: "numbers".
    n_values
        How many values there are, without missing ones.
    n_unreadable
        How many of them could not be read.
    examples
        The first different ones.
    """

    column: str
    what: str
    n_values: int
    n_unreadable: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class TableEncoder:
    """What was learned about the columns of a table; `fit` makes one.

    A row is encoded by itself: the rows around it, their order and the order of the columns
    play no part. The features of a column have a variance of about 1 taken together, and all
    are multiplied by `gain`, so that a mean over features is a mean over columns. Encoded rows
    need no further scaling.

    Attributes
    ----------
    columns
        The columns that are used, in the order of the table given to `fit`.
    dropped
        Those that are not, and why.
    warnings
        What the user should know about the table.
    n_rows
        How many rows were learned from.
    readings
        How columns are read, in words, where that does not go without saying.
    misread
        Of the warnings, those about values that cannot be read; a state does not hold them.
    fills
        Whether a column that a table lacks counts as missing, and is not refused. Where it
        never was missing in training, its features are those of a typical row.

    Examples
    --------
    >>> table = {"age": [31.0, 44.0, None], "city": ["Oslo", "Bern", "Oslo"]}
    >>> encoder = TableEncoder.fit(table)
    >>> [(feature.column, feature.name) for feature in encoder.features][:3]
    [('age', 'value'), ('age', 'missing'), ('city', 'Oslo')]
    >>> encoder.transform(table).shape
    (3, 5)
    """

    columns: tuple[Column, ...]
    dropped: Mapping[str, str]
    warnings: tuple[str, ...]
    n_rows: int
    readings: Mapping[str, str] = field(default_factory=dict)
    fills: bool = False
    misread: tuple[Misread, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def fit(
        cls,
        table: Any,
        labels: ArrayLike | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        embedder: str = DEFAULT_EMBEDDER,
        wishes: Wishes | None = None,
        whole: Any = None,
    ) -> TableEncoder:
        """Learn what the columns hold.

        Parameters
        ----------
        table
            A frame of any flavour, see `to_table`, without label and id.
        labels
            1, 0 and -1 for each row. Rows labelled 1, anomalies, take no part.
        kinds
            "number", "category", "boolean", "timestamp", "text" or a kind of your own for
            columns where the values do not say it. Also keeps columns that would be left out:
            ids and free text.
        embedder
            What makes vectors of text; see `aloof.text.load_embedder`.
        wishes
            What the user says about how numbers and times in text are written.
        whole
            The table with all its rows, where those to learn from are a part of them: how a
            column is written is found out from all its values.

        Returns
        -------
        The encoder. It issues no warning: what there is to say is in its `warnings`.

        Raises
        ------
        TableError
            Also where a column can be read in more than one way, and nothing says which is
            right.
        """
        given = to_table(table)
        kinds, wishes = dict(kinds or {}), wishes or Wishes()
        for name in [*kinds, *sorted(wishes.columns)]:
            if name not in given.column_names:
                raise TableError(
                    f"There is no column {name!r}{closest(name, given.column_names)}."
                )
        for name in wishes.layouts:
            if kinds.setdefault(name, "timestamp") != "timestamp":
                raise TableError(
                    f"Column {name!r} has a date format, so its kind cannot be {kinds[name]!r}."
                )
        if given.num_columns == 0:
            raise TableError("The table has no columns to learn from.")
        seen = _evidence(given if whole is None else to_table(whole), given.column_names)
        _check_wishes(wishes, seen)
        locale = survey({name: seen[name] for name in seen if kinds.get(name) in _READ})
        normal = given if labels is None else _without_anomalies(given, np.asarray(labels))
        if normal.num_rows == 0:
            raise TableError("The table has no rows to learn from.")
        columns: list[Column] = []
        dropped: dict[str, str] = {}
        remarks: list[str | Misread] = []
        readings: dict[str, str] = {}
        questions: list[str] = []
        for name in normal.column_names:
            try:
                with _naming(name):
                    choice = choose_column(
                        name,
                        one_array(normal[name]),
                        kinds.get(name),
                        embedder=embedder,
                        hints=wishes.of(name, locale),
                        seen=seen.get(name),
                    )
            except Question as question:
                questions.append(str(question))
                continue
            remarks += choice.warnings
            if choice.said:
                readings[name] = choice.said
            if choice.column is None:
                dropped[name] = choice.reason
            else:
                columns.append(choice.column)
        if questions:
            raise TableError(" ".join(questions))
        if not columns:
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in dropped.items())
            raise TableError(
                f"No column is left to learn from: {reasons}. Say what a column holds, such "
                f"as kinds={{'code': 'category'}} (--kind code=category)."
            )
        misread = tuple(remark for remark in remarks if isinstance(remark, Misread))
        said = tuple(map(str, remarks))
        return cls(tuple(columns), dropped, said, normal.num_rows, readings, misread=misread)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns that are used."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """What each feature stands for."""
        return tuple(Feature(c.name, name) for c in self.columns for name in c.features)

    @property
    def n_features(self) -> int:
        """How many numbers a row becomes."""
        return len(self.features)

    @cached_property
    def owners(self) -> NDArray[np.intp]:
        """For each feature, the index of its column in `columns`."""
        return np.repeat(np.arange(len(self.columns)), np.diff(self._ends, prepend=0))

    @cached_property
    def gain(self) -> float:
        """What all features are multiplied by: a mean over them is then one over columns."""
        varying = sum(column.varies for column in self.columns)
        return float(np.sqrt(self.n_features / varying)) if varying else 1.0

    def transform(
        self,
        table: Any,
        *,
        warn: Callable[[TableWarning], None] | None = None,
        unreadable: Callable[[Unreadable], None] | None = None,
    ) -> NDArray[np.float32]:
        """Encode rows.

        Parameters
        ----------
        table
            A frame of any flavour with the columns of `fit`, in any order.
        warn
            Called with warnings about the table in place of `warnings.warn`. They are about
            columns that were not there in `fit`, and about values that cannot be read, which
            count as missing.
        unreadable
            Called with the counts of values that cannot be read, of each column that has some.

        Returns
        -------
        Array ``(n, n_features)``, finite.
        """
        whole = to_table(table)
        say = _issue if warn is None else warn
        self._check_names(whole.column_names, say)
        encoded = np.empty((whole.num_rows, self.n_features), np.float32)
        bad = [_Collected(column.name) for column in self.columns]
        place = {name: number for number, name in enumerate(whole.column_names)}
        for begin in range(0, whole.num_rows, _ROWS):
            rows = whole.slice(begin, _ROWS)
            blocks = self._by_column(encoded[begin : begin + _ROWS])
            for column, out, own in zip(self.columns, blocks, bad, strict=True):
                if column.name not in place:
                    out[:] = column.absent()
                    continue
                array = one_array(rows[place[column.name]])
                own.n_present += len(array) - array.null_count
                with _naming(column.name):
                    column.encode(array, out, own.add)
            encoded[begin : begin + _ROWS] *= np.float32(self.gain)
        for own in bad:
            for counted in own.counted:
                if unreadable is not None:
                    unreadable(counted)
                say(MisreadWarning(own.misread(counted)))
        return encoded

    def sum_by_column(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Sum what belongs to features, ``(n, n_features)``, for each column."""
        starts = [0, *self._ends[:-1]]
        summed: NDArray[np.float64] = np.add.reduceat(
            np.asarray(values, np.float64), starts, axis=1
        )
        return summed

    def read(self, table: Any) -> dict[str, NDArray[Any]]:
        """Return the values of each column as the encoder understands them.

        Numbers are float64 with NaN for missing ones, durations in seconds. Categories and
        constants are text or None. Times are datetime64[s], times of day timedelta64[s].
        """
        whole = to_table(table)
        self._check_names(whole.column_names, lambda words: None)
        nothing = pa.nulls(whole.num_rows, pa.string())
        given = {name: one_array(whole[name]) for name in whole.column_names}
        return {c.name: c.read(given.get(c.name, nothing)) for c in self.columns}

    def decode(self, features: NDArray[np.floating]) -> dict[str, NDArray[Any]]:
        """Return the values that encoded rows stand for, in the form of `read`.

        Of a reconstruction that is what was expected: for a category, the most expected one.
        """
        blocks = self._by_column(np.asarray(features, np.float64) / self.gain)
        return {c.name: c.decode(own) for c, own in zip(self.columns, blocks, strict=True)}

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "columns": [column.state() for column in self.columns],
            "dropped": dict(self.dropped),
            "warnings": list(self.warnings),
            "n_rows": self.n_rows,
            "readings": dict(self.readings),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> TableEncoder:
        """Return the encoder whose `state` this is."""
        try:
            found = from_json(_State, state)
        except ValueError as error:
            raise ModelError(f"Cannot read the model's table encoder: {error}.") from error
        columns = tuple(map(column_from_state, found.columns))
        names = {column.name for column in columns}
        if len(names) < len(columns) or names & {*found.dropped}:
            raise ModelError("Cannot read the model's table encoder: a column appears twice.")
        return cls(columns, found.dropped, found.warnings, found.n_rows, found.readings)

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Where the features of each column end."""
        return np.cumsum([len(column.features) for column in self.columns])

    def _by_column(self, features: NDArray[Any]) -> list[NDArray[Any]]:
        return np.split(features, self._ends[:-1], axis=1)

    def _check_names(self, given: Sequence[str], say: Callable[[TableWarning], None]) -> None:
        missing = [name for name in self.names if name not in given]
        extra = [name for name in given if name not in self.names and name not in self.dropped]
        if len(missing) == len(self.names):
            raise TableError(
                "The table has none of the columns that the model was trained on "
                f"({_some(missing)}). It has: {_some(given)}."
            )
        if missing and not self.fills:
            column = "column" if len(missing) == 1 else "columns"
            renamed = closest(missing[0], extra, typed=False)
            new = f"New in it: {_some(extra)}" if extra else f"It has: {_some(given)}"
            raise TableError(
                f"The table has no {column} {_some(missing)}, which the model was trained "
                f"on{renamed}. {new}. If a column was renamed, give it its old name. To score "
                "it anyway: missing_columns='fill' (--missing-columns fill)."
            )
        if extra:
            words = (
                f"The model was not trained on these columns and ignores them: {_some(extra)}."
            )
            say(TableWarning(words, "columns"))


class _Collected:
    """Collects the values of a column that cannot be read, by what they should be."""

    def __init__(self, name: str) -> None:
        self.name, self.n_present = name, 0
        self._n_bad: Counter[str] = Counter()
        self._first: dict[str, pa.Array] = {}

    def add(self, values: pa.Array, what: str) -> None:
        self._n_bad[what] += len(values)
        self._first.setdefault(what, values)

    @property
    def counted(self) -> list[Unreadable]:
        return [
            Unreadable(self.name, what, self.n_present, n, _examples(self._first[what]))
            for what, n in self._n_bad.items()
        ]

    def misread(self, found: Unreadable) -> Misread:
        first = self._first[found.what]
        if self._n_bad.total() == self.n_present >= _ENOUGH_TO_REFUSE:
            raise MisreadError(
                Misread.of(
                    self.name,
                    f"Column {self.name!r} was read as {found.what} in training, but none of "
                    f"its {self.n_present:,} values can be read that way now (",
                    "). Is it the same column, in the same format?",
                    first,
                )
            )
        return Misread.of(
            self.name,
            f"Column {self.name!r}: {found.n_unreadable:,} of {self.n_present:,} values cannot "
            f"be read as {found.what} (",
            "); they count as missing.",
            first,
        )


def _examples(values: pa.Array, most: int = 3) -> tuple[str, ...]:
    return tuple(pc.unique(values.slice(0, 10_000)).slice(0, most).to_pylist())


def _evidence(table: pa.Table, names: Sequence[str]) -> dict[str, Evidence]:
    """Return what the columns of text say about how they are written."""
    found = {}
    for name in names:
        array = unwrapped(name, one_array(table[name]))
        if is_text(array.type):
            found[name] = Evidence(array)
    return found


def _check_wishes(wishes: Wishes, seen: Mapping[str, Evidence]) -> None:
    """Raise where an option says how text is written, and there is none."""
    for name in sorted(wishes.columns - {*seen}):
        raise TableError(
            f"Column {name!r} does not hold text, so options about how it is written do not "
            "apply."
        )
    if wishes.about_all and not seen:
        raise TableError(
            f"{wishes.about_all} describes how text is written, but no column holds text."
        )


@contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except pa.ArrowException as error:
        raise TableError(f"Column {name!r} cannot be read: {error}.") from error


def _without_anomalies(table: pa.Table, labels: NDArray[Any]) -> pa.Table:
    if labels.shape != (table.num_rows,):
        raise TableError(
            f"There must be one label for each of the {table.num_rows:,} rows; got "
            f"{labels.shape}."
        )
    return table.filter(pa.array(labels != ANOMALY))


def _issue(warning: TableWarning) -> None:
    warnings.warn(warning, stacklevel=4)


def _some(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
