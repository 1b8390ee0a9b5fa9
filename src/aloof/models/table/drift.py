"""Whether a table looks like the one that was learned from, and if not, in which column.

What is kept of the training rows is a `Profile`, a few numbers for each column beside what its
`Column` knows. Of the rows to score a sample is kept (`RowSample`), whatever their number. A
difference is said where it is large and chance is no explanation: fresh rows of the same
source are rarely worth a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import sqrt
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field

from aloof.io.sections import from_json
from aloof.models.differences import (
    FEWEST,
    LARGEST,
    Judge,
    NumberProfile,
    Share,
    flagged_drift,
    in_percent,
    together,
)
from aloof.models.results import Drift
from aloof.models.table.columns import Column, one_array
from aloof.models.table.columns.category import CategoryColumn
from aloof.models.table.columns.constant import ConstantColumn
from aloof.models.table.columns.number import NumberColumn
from aloof.models.table.columns.timestamp import TimestampColumn
from aloof.models.table.encoder import TableEncoder
from aloof.models.table.lowest import Lowest, Rows
from aloof.models.table.words import number_words, short
from aloof.phrases import count

__all__ = [
    "NumberProfile",
    "Profile",
    "RowSample",
    "drift_lines",
    "find_drift",
    "flagged_drift",
]

# So many rows of a table are looked at.
_SAMPLED = 2048
_KEY = b"aloof.sample"  # where a part carries its sample
_SEED = 0x616C6F6F66  # of which rows: one that no table was made with
# What is large: differences of shares and of distribution functions.
_SHIFT, _OUTSIDE, _MISSING, _MISSING_FIRST, _UNREAD, _UNSEEN = 0.25, 0.1, 0.1, 0.03, 0.01, 0.01
# Another unit: times this factor, or divided by it, the values are those of training.
_FACTORS = (10, 100, 1000, 10_000, 1_000_000, 60, 3600, 24, 12, 2.20462, 3.28084, 1.60934, 2.54)
_SAME, _SAME_OF_FEW = 0.15, 1.4

_DAY = 86_400.0
# Times so much later than in training are as usual, if the training period is not longer.
_LATER, _LATEST = 92 * _DAY, 366 * _DAY

# Said already by what reads the rows.
_SAID_WHEN_READ = ("new column", "unreadable")
_MOST_LINES = 8


@dataclass(frozen=True)
class Profile:
    """What is kept of the training rows, beside what the columns know.

    Attributes
    ----------
    n_rows
        How many rows there were.
    numbers
        By column.
    unseen
        Which share of fresh rows has a value that was never seen, by column of categories:
        about the share of the values that were seen once.
    """

    __pydantic_config__ = Column.__pydantic_config__

    n_rows: Annotated[int, Field(ge=1)]
    numbers: dict[str, NumberProfile] = field(default_factory=dict)
    unseen: dict[str, Share] = field(default_factory=dict)

    @classmethod
    def of(cls, encoder: TableEncoder, table: pa.Table) -> Profile:
        """Return the profile of rows that are normal, as far as anybody knows."""
        numbers, unseen = {}, {}
        for column in encoder.columns:
            if isinstance(column, NumberColumn):
                if found := NumberProfile.of(column.read(one_array(table[column.name]))):
                    numbers[column.name] = found
            elif isinstance(column, CategoryColumn):
                values = column.read(one_array(table[column.name]))
                counts = pc.value_counts(pa.array(values, pa.string()).drop_null())
                once = int(pc.sum(pc.equal(counts.field(1), 1)).as_py() or 0)
                unseen[column.name] = once / max(1, table.num_rows)
        return cls(max(1, table.num_rows), numbers, unseen)

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Profile:
        """Return the profile whose `state` this is; a ValueError says what is wrong."""
        found = from_json(cls, state)
        for name, numbers in found.numbers.items():
            if list(numbers.quantiles) != sorted(numbers.quantiles):
                raise ValueError(f"the quantiles of {name!r} must be in order")
        return found


class RowSample:
    """Some rows of a table that comes in parts, each as likely as any other.

    The same rows of the same parts, always: nothing is random that was not seeded. Memory
    holds a few thousand rows.

    Parameters
    ----------
    encoder
        What reads the columns.
    """

    def __init__(self, encoder: TableEncoder) -> None:
        self._encoder = encoder
        self._lowest = Lowest(_SAMPLED)
        self.n_rows = 0

    def carried_by(self, part: pa.Table, rows: pa.Table) -> pa.Table:
        """Return a part that carries the sample of the rows that it belongs to."""
        chosen = self._short(rows.take(pa.array(_drawn(rows.num_rows)[0])))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, chosen.schema) as writer:
            writer.write_table(chosen)
        return part.replace_schema_metadata({_KEY: sink.getvalue().to_pybytes()})

    def add_carried(self, part: pa.Table) -> pa.Table:
        """Take the sample that a part carries; return the part without it."""
        metadata = part.schema.metadata or {}
        if _KEY in metadata:
            rows = pa.ipc.open_stream(metadata[_KEY]).read_all()
            self._add(rows, _drawn(part.num_rows)[1], part.num_rows)
        return part.replace_schema_metadata(None)

    def add(self, rows: pa.Table) -> None:
        """Take rows."""
        places, keys = _drawn(rows.num_rows)
        self._add(self._short(rows.take(pa.array(places))), keys, rows.num_rows)

    def rows(self) -> pa.Table:
        """Return the rows; there must have been some."""
        return self._lowest.rows().table

    def _add(self, rows: pa.Table, keys: NDArray[np.float64], n: int) -> None:
        self.n_rows += n
        self._lowest.add(Rows(rows, {}), keys)

    def _short(self, rows: pa.Table) -> pa.Table:
        """Return the columns that are used; of documents, their beginnings."""
        used, given = {}, set(rows.column_names)
        for column in self._encoder.columns:
            if column.name in given:
                values = rows[column.name]
                if column.reads_text:
                    values = pc.utf8_slice_codeunits(values.cast(pa.string()), 0, 40)
                used[column.name] = values
        return pa.table(used)


def find_drift(
    encoder: TableEncoder,
    profile: Profile | None,
    sample: pa.Table,
    *,
    names: Sequence[str],
    known: Iterable[str] = (),
) -> list[Drift]:
    """Say where rows differ from those that were learned from.

    Parameters
    ----------
    encoder, profile
        What was learned; older models have no profile.
    sample
        Some of the rows.
    names
        The columns of the table.
    known
        Columns that play no part: label, id and those that were dropped.
    """
    found = []
    for column in encoder.columns:
        if column.name not in names:
            # Those who fill nothing, and score a row without the key, take it as missing.
            taken = "typical" if encoder.fills and not column.missing_share else "missing"
            words = f"the column is gone; its values count as {taken}"
            found.append(Drift(column.name, "gone", f"`{column.name}`: {words}"))
    expected = {*encoder.names, *encoder.dropped, *known}
    for name in names:
        if name not in expected:
            found.append(
                Drift(
                    name,
                    "new column",
                    f"`{name}`: the column is new and is ignored",
                )
            )
    if sample.num_rows < FEWEST:
        return found
    judge = Judge(encoder.n_rows if profile is None else profile.n_rows, len(encoder.columns))
    given = set(sample.column_names)
    for column in encoder.columns:
        if column.name in given:
            found += _Look(column, one_array(sample[column.name]), profile, judge).all()
    return found


def drift_lines(found: Sequence[Drift]) -> list[tuple[str, str]]:
    """Return what to say, in lines that are not too many, and what each is about."""
    said = [each for each in found if each.what not in _SAID_WHEN_READ]
    lines = [(each.words, f"{each.what} {each.column}") for each in said[:_MOST_LINES]]
    if rest := said[_MOST_LINES:]:
        named = ", ".join(f"`{name}`" for name in dict.fromkeys(e.column for e in rest) if name)
        lines.append((f"and {len(rest):,} more differences: {short(named, 200)}", "more"))
    return lines


class _Look:
    """What there is to say about one column."""

    def __init__(
        self, column: Column, array: pa.Array, profile: Profile | None, judge: Judge
    ) -> None:
        self._column, self._profile, self._judge = column, profile, judge
        self._n_unread = 0
        self._example = ""
        if not column.reads_text:
            features = np.empty((len(array), len(column.features)), np.float32)
            column.encode(array, features, self._note)
        self._n = len(array)
        self._n_given = len(array) - array.null_count
        values = column.read(array)
        missing = pc.is_null(pa.array(values, from_pandas=True)).to_numpy(zero_copy_only=False)
        self._there = values[~missing]
        self._missing = float(missing.mean())

    def all(self) -> list[Drift]:
        """Return everything."""
        if self._missing == 1 and self._column.missing_share < 1:
            if not self._n_unread:
                return [self._say("missing", "all values are missing")]
        said = self._unreadable() or self._gaps()
        if len(self._there) < FEWEST:
            return said
        looks: list[tuple[type[Column], Callable[[Any], list[Drift]]]] = [
            (NumberColumn, self._numbers),
            (CategoryColumn, self._categories),
            (ConstantColumn, self._constant),
            (TimestampColumn, self._times),
        ]
        for kind, look in looks:
            if isinstance(self._column, kind):
                said += look(self._column)
        return said

    def _note(self, values: pa.Array, what: str) -> None:
        self._n_unread += len(values)
        self._example = self._example or str(values[0].as_py())

    def _say(self, what: str, words: str) -> Drift:
        return Drift(self._column.name, what, f"`{self._column.name}`: {words}")

    def _unreadable(self) -> list[Drift]:
        learned = self._column.missing_share  # gaps in training may have been unreadable too
        share = self._n_unread / max(1, self._n_given)
        if share < _UNREAD or not self._judge.is_real(share, learned, self._n_given):
            return []
        words = (
            f"{in_percent(share)} of the values cannot be read, such as "
            f"{short(self._example)!r}; has the format changed?"
        )
        return [self._say("unreadable", words)]

    def _gaps(self) -> list[Drift]:
        now, learned = self._missing, self._column.missing_share
        first = learned < 0.001 and now >= _MISSING_FIRST
        large = now - learned >= _MISSING or learned - now >= _SHIFT
        if not (first or large) or not self._judge.is_real(now, learned, self._n):
            return []
        then = f"{in_percent(learned)} were" if learned else "none were"
        return [
            self._say(
                "missing", f"{in_percent(now)} of the values are missing; in training, {then}"
            )
        ]

    def _numbers(self, column: NumberColumn) -> list[Drift]:
        learned = None if self._profile is None else self._profile.numbers.get(column.name)
        values = np.asarray(self._there, np.float64)
        values = np.clip(values[np.isfinite(values)], -LARGEST, LARGEST)
        if learned is None or len(values) < FEWEST:
            return []
        zeros = float((values == 0).mean())
        others = values[values != 0]
        judge = replace(self._judge, n_training=learned.n_others)
        far = 0.0
        if len(others) >= FEWEST:
            far = learned.distance(others)
            far = far if judge.is_far(far, len(others)) else 0.0
        now, then = number_words(float(np.median(values)), 4), number_words(learned.median, 4)
        medians = f"the median is {now} ({then} in training)"
        if far > _SHIFT:
            factor = _factor(learned, others)
            if factor:
                centre = number_words(float(np.median(others)), 4)
                was = number_words(float(np.median(learned.quantiles)), 4)
                zero = " (without zeros)" if learned.zero_share or zeros else ""
                words = f"the median{zero} is {centre} ({was} in training){factor}"
                return [self._say("unit", words)]
            if now != then:
                return [self._say("values", medians)]
            low, high = (number_words(float(q), 4) for q in np.quantile(values, [0.05, 0.95]))
            first, last = (number_words(learned.quantiles[i], 4) for i in (2, -3))
            words = (
                f"nine in ten values are from {low} to {high} ({first} to {last} in training)"
            )
            return [self._say("values", words)]
        if abs(zeros - learned.zero_share) > _SHIFT and self._judge.is_real(
            zeros, learned.zero_share, len(values)
        ):
            were = in_percent(learned.zero_share)
            words = f"{in_percent(zeros)} of the values are 0; in training, {were} were"
            return [self._say("values", words)]
        smallest, largest = learned.quantiles[0], learned.quantiles[-1]
        for outside, word, end in (
            (float((others > largest).mean()) if len(others) else 0.0, "above", largest),
            (float((others < smallest).mean()) if len(others) else 0.0, "below", smallest),
        ):
            if outside > _OUTSIDE and judge.is_real(outside, 0.0, len(others)):
                extreme = "largest" if word == "above" else "smallest"
                words = (
                    f"{in_percent(outside)} of the values are {word} {number_words(end, 4)}, "
                    f"the {extreme} in training"
                )
                return [self._say("values", words)]
        return []

    def _categories(self, column: CategoryColumn) -> list[Drift]:
        text = pa.array(self._there, pa.string())
        counts = {pair["values"]: pair["counts"] for pair in pc.value_counts(text).to_pylist()}
        n = len(text)
        new = {value: k for value, k in counts.items() if not column.is_known(value)}
        share = sum(new.values()) / n
        usual = 0.0 if self._profile is None else self._profile.unseen.get(column.name, 0.0)
        if share > usual + _UNSEEN and self._judge.is_real(share, 1.5 * usual, n):
            first = sorted(new, key=lambda value: (-new[value], value))
            shown = ", ".join(repr(short(value)) for value in first[:3])
            more = f" and {len(first) - 3:,} more" if len(first) > 3 else ""
            words = (
                f"{in_percent(share)} of the values were never seen in training: {shown}{more}"
            )
            return [self._say("new values", words)]
        there = 1 - column.missing_share
        learned = np.array([*column.shares, column.rare_share]) / there
        now = np.array([counts.get(value, 0) / n for value in column.categories])
        now = np.append(now, 1 - now.sum())
        distance = float(np.abs(now - learned).sum() / 2)
        if distance > _SHIFT and self._judge.is_far(distance, n, classes=len(now)):
            at = int(np.abs(now - learned).argmax())
            what = (
                repr(short(column.categories[at])) if at < len(column.categories) else "others"
            )
            words = (
                f"{what} makes up {in_percent(now[at])} of the values "
                f"({in_percent(learned[at])} in training)"
            )
            return [self._say("shares", words)]
        return []

    def _constant(self, column: ConstantColumn) -> list[Drift]:
        if column.value is None:
            words = "has values, but had none in training"
            return [Drift(column.name, "new values", f"`{column.name}` {words}")]
        _, same = column._compare(pa.array(self._there, pa.string()))
        share = float(1 - same.mean())
        if share <= _UNSEEN or not self._judge.is_real(share, 0.0, len(same)):
            return []
        example = short(str(self._there[~same][0]))
        words = (
            f"{in_percent(share)} of the rows have another value, such as {example!r}; in "
            f"training it was always {short(column.value)!r}"
        )
        return [self._say("new values", words)]

    def _times(self, column: TimestampColumn) -> list[Drift]:
        if not column.position:
            return []
        seconds = self._there.astype("datetime64[s]").astype(np.int64).astype(np.float64)
        middle = float(np.median(seconds))
        free = min(max(column.high - column.low, _LATER), _LATEST)
        later, earlier = middle - column.high, column.low - middle
        if max(later, earlier) <= free:
            return []
        ends = np.array([column.low, column.high]).astype(np.int64).astype("datetime64[s]")
        first, last = (str(end)[:10] for end in ends)
        by, word = (later, "later") if later > 0 else (earlier, "earlier")
        words = f"times are {_span(by)} {word} than in training ({first} to {last})"
        return [self._say("times", words)]


def _drawn(n: int) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return which of `n` rows are drawn, and their keys."""
    keys = np.random.default_rng(_SEED).random(n)
    places = np.argsort(keys, kind="stable")[:_SAMPLED]
    return places, keys[places]


def _factor(learned: NumberProfile, values: NDArray[np.float64]) -> str:
    """Say by which factor all values differ, if there is one."""
    ways = {": the sign has flipped": -values}
    for factor in _FACTORS:
        size = f"{factor:,.4g}"
        ways[f", about {size} times as much: another unit or decimal sign?"] = values / factor
        ways[f", about 1/{size} of that: another unit or decimal sign?"] = values * factor
    far = {words: learned.distance(scaled) for words, scaled in ways.items()}
    nearest = min(far, key=far.__getitem__)
    chance = _SAME_OF_FEW / sqrt(together(len(values), learned.n_others))
    return nearest if far[nearest] < max(_SAME, chance) else ""


def _span(seconds: float) -> str:
    days = seconds / _DAY
    if days >= 730:
        return count(round(days / 365.25), "year")
    return count(round(days / 30.44), "month")
