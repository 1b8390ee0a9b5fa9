"""Arrow arrays of any type as floats, text or seconds, each value by itself.

Whether and how a value is read never depends on its neighbours: where a whole array is cast at
once, the slower path that is taken when the cast fails reads every value the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from aloof.exceptions import TableError
from aloof.models.table.dialects.cells import MOSTLY, clean, is_missing
from aloof.models.table.dialects.layouts import read_by_layout
from aloof.models.table.dialects.numbers import (
    PLAIN,
    NumberDialect,
    cast_numbers,
    is_special,
    read_numerals,
)
from aloof.models.table.dialects.times import TimeDialect, read_moments
from aloof.models.table.locating import Misread
from aloof.phrases import count
from aloof.written.times import CLOCK, DATE, SECONDS, ZONE

__all__ = [
    "Reading",
    "decoded",
    "is_temporal",
    "is_text",
    "one_array",
    "read_numbers",
    "read_seconds",
    "read_text",
    "unwrapped",
]

_ISO = TimeDialect()


@dataclass(frozen=True)
class Reading:
    """Values that were read, and those that could not be.

    Attributes
    ----------
    values
        float64; NaN where a value is missing or cannot be read.
    unreadable
        The text that cannot be read, or None.
    impossible
        Dates and times that no calendar and no clock has, or None.
    """

    values: NDArray[np.float64]
    unreadable: pa.Array | None = None
    impossible: pa.Array | None = None

    @property
    def n_unread(self) -> int:
        """How many values are there and could not be read."""
        return sum(len(bad) for bad in (self.unreadable, self.impossible) if bad is not None)

    @property
    def share(self) -> float:
        """The share of what is there that could be read."""
        read = int((~np.isnan(self.values)).sum())
        return read / (read + self.n_unread) if read else 0.0

    @property
    def is_most(self) -> bool:
        """Whether nearly all that is there could be read."""
        return self.share >= MOSTLY

    def remarks(self, name: str, what: str) -> tuple[Misread, ...]:
        """Return what to say of values of a column that could not be read as what it holds."""
        bad = [(self.unreadable, ("value", "values"), f"cannot be read as {what}")]
        bad += [(self.impossible, ("date does", "dates do"), "not exist")]
        return tuple(
            Misread.of(
                name,
                f"Column {name!r}: {count(len(values), *things)} {why} (",
                "), treated as missing.",
                values,
            )
            for values, things, why in bad
            if values is not None
        )


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):  # what no single array can hold, or no chunk
        return (
            pa.concat_arrays(combined.chunks)
            if combined.num_chunks
            else pa.array([], combined.type)
        )
    return combined


def unwrapped(name: str, array: pa.Array) -> pa.Array:
    """Return `array` without extension, run-end or view types; refuse what holds no values."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return unwrapped(name, array.storage)
    if pt.is_run_end_encoded(kind):
        return unwrapped(name, pc.run_end_decode(array))
    if pt.is_string_view(kind) or pt.is_large_string(kind):
        return array.cast(pa.string())
    if pt.is_dictionary(kind):
        unwrapped(name, array.dictionary)
        return array
    if pt.is_nested(kind) or pt.is_interval(kind) or _is_binary(kind):
        raise TableError(
            f"Column {name!r} holds values of type {kind}, which aloof cannot read. Drop it, "
            "or turn it into columns of numbers, text or times."
        )
    return array


def is_text(kind: pa.DataType) -> bool:
    """Say whether values of this type are text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_temporal(kind: pa.DataType) -> bool:
    """Say whether values of this type are points in time, or times of day."""
    return bool(pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_time(kind))


def read_numbers(name: str, array: pa.Array, dialect: NumberDialect = PLAIN) -> Reading:
    """Read numbers, or text that holds numbers; a duration counts in seconds."""
    array = decoded(name, array)
    kind = array.type
    if is_text(kind):
        return _numbers_from_text(array, dialect)
    if pt.is_duration(kind):
        return Reading(_floats(array.cast(pa.int64())) * SECONDS[kind.unit])
    if is_temporal(kind):
        raise _changed(name, "numbers", kind)
    return Reading(_floats(array))


def read_seconds(
    name: str,
    array: pa.Array,
    zone: str | None,
    dialect: TimeDialect = _ISO,
    layout: str | None = None,
) -> Reading:
    """Read times as seconds of wall time in `zone` since 1970, or since midnight.

    Parameters
    ----------
    name
        Of the column.
    array
        Its values.
    zone
        Where the wall is.
    dialect
        How times in text and in numbers are written.
    layout
        How times in text are written, as in `time.strptime`, in place of the dialect.
    """
    array = decoded(name, array)
    kind = array.type
    in_numbers = bool(dialect.epoch) or dialect.compact
    if in_numbers and (pt.is_integer(kind) or pt.is_floating(kind)):
        if dialect.epoch:
            return _of_epoch(_floats(array), dialect)
        array = array.cast(pa.int64(), safe=False).cast(pa.string())
        kind = array.type
    if is_text(kind):
        return _seconds_from_text(array, zone, dialect, layout)
    if pt.is_null(kind):
        return Reading(np.full(len(array), np.nan))
    if pt.is_timestamp(kind):
        factor = SECONDS[kind.unit]
        return Reading(_floats(_wall_time(array, zone).cast(pa.int64())) * factor)
    if pt.is_date32(kind):
        return Reading(_floats(array.cast(pa.int32())) * 86_400.0)
    if pt.is_date64(kind):
        return Reading(_floats(array.cast(pa.int64())) * 1e-3)
    if pt.is_time(kind):
        integer = pa.int32() if pt.is_time32(kind) else pa.int64()
        return Reading(_floats(array.cast(integer)) * SECONDS[kind.unit])
    raise _changed(name, "times", kind)


def read_text(name: str, array: pa.Array) -> pa.Array:
    """Read anything as text; empty text is missing, and 12.0 is 12."""
    array = decoded(name, array)
    kind = array.type
    if pt.is_null(kind):
        return array.cast(pa.string())
    if pt.is_floating(kind):
        values = array.cast(pa.float64())
        array = pc.if_else(pc.is_nan(values), pa.scalar(None, pa.float64()), values)
    if pt.is_duration(kind):
        array = array.cast(pa.int64())
    text = array if pt.is_string(array.type) else array.cast(pa.string())
    empty = pc.equal(pc.utf8_trim_whitespace(text), "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), text)


def decoded(name: str, array: pa.Array) -> pa.Array:
    """Return `array` as values of a plain type; see `unwrapped`."""
    array = unwrapped(name, array)
    if pt.is_dictionary(array.type):
        return unwrapped(name, array.dictionary_decode())
    return array


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
        or pt.is_binary_view(kind)
    )


def _changed(name: str, was: str, kind: pa.DataType) -> TableError:
    return TableError(
        f"Column {name!r} was read as {was} in training, but now has the type {kind}. Convert "
        "it back, or fit again."
    )


def _floats(array: pa.Array) -> NDArray[np.float64]:
    # Unsafe, because a long integer may lose its last digits.
    values: NDArray[np.float64] = array.cast(pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return values


def _numbers_from_text(array: pa.Array, dialect: NumberDialect) -> Reading:
    values = cast_numbers(array, dialect)
    if values is not None:
        return Reading(values)
    text = clean(array)
    values = read_numerals(text, dialect)
    readable = ~np.isnan(values) | is_special(text)
    return Reading(values, _unreadable(array, text, pa.array(readable)))


def _of_epoch(numbers: NDArray[np.float64], dialect: TimeDialect) -> Reading:
    return Reading(numbers * SECONDS[dialect.epoch])


def _unreadable(array: pa.Array, text: pa.Array, readable: pa.Array) -> pa.Array | None:
    return _some(array, pc.invert(pc.or_(readable, is_missing(text))))


def _some(array: pa.Array, which: pa.Array) -> pa.Array | None:
    """Return the values of some rows that are there; None: there are none."""
    some = array.filter(which).drop_null()
    return some if len(some) else None


def _wall_time(array: pa.Array, zone: str | None) -> pa.Array:
    if array.type.tz is None:
        return array
    try:
        there = array.cast(pa.timestamp(array.type.unit, zone or "UTC"))
        return pc.local_timestamp(there)
    except pa.ArrowInvalid as error:
        raise TableError(
            f"The time zone {zone!r} is unknown on this machine: {error}."
        ) from error


def _seconds_from_text(
    array: pa.Array, zone: str | None, dialect: TimeDialect, layout: str | None
) -> Reading:
    text = clean(array)
    if layout is not None:
        found = read_by_layout(text, layout)
        values = _on_the_wall(found.seconds, found.is_instant, zone)
        return Reading(values, _unreadable(array, text, pa.array(~np.isnan(values))))
    if dialect.epoch:
        numbers = read_numerals(text, PLAIN)
        bad = _unreadable(array, text, pa.array(~np.isnan(numbers)))
        return replace(_of_epoch(numbers, dialect), unreadable=bad)
    naive = pc.fill_null(pc.match_substring_regex(text, DATE + CLOCK + "$"), False)
    aware = pc.fill_null(pc.match_substring_regex(text, DATE + CLOCK + ZONE), False)
    iso = pc.and_(pc.or_(naive, aware), not dialect.clock)
    nothing = pa.scalar(None, pa.string())
    values = _seconds(_parsed(pc.if_else(naive, text, nothing), pa.timestamp("us")))
    if pc.any(aware).as_py():
        instants = _parsed(pc.if_else(aware, text, nothing), pa.timestamp("us", "UTC"))
        local = _seconds(_wall_time(instants, zone))
        values = np.where(np.isnan(values), local, values)
    if dialect.clock:
        values = np.full(len(text), np.nan)
    elif not np.isnan(values).any():
        return Reading(values)
    impossible = iso.to_numpy(zero_copy_only=False) & np.isnan(values)
    left = ~pc.or_(iso, is_missing(text)).to_numpy(zero_copy_only=False)
    if left.any():
        found = read_moments(text.filter(pa.array(left)), dialect)
        values[left] = _on_the_wall(found.seconds, found.is_instant, zone)
        impossible[left] = found.impossible
    known = pa.array(~np.isnan(values) | impossible)
    return Reading(values, _unreadable(array, text, known), _some(array, pa.array(impossible)))


def _on_the_wall(
    seconds: NDArray[np.float64], is_instant: NDArray[np.bool_], zone: str | None
) -> NDArray[np.float64]:
    """Return seconds of wall time in a zone; those that are of UTC are marked."""
    if zone is None or not is_instant.any():
        return seconds
    there = np.where(is_instant, seconds, np.nan)
    micros = pa.array(np.round(there * 1e6), mask=np.isnan(there)).cast(pa.int64())
    local = _seconds(_wall_time(micros.cast(pa.timestamp("us", "UTC")), zone))
    return np.where(is_instant, local, seconds)


def _seconds(times: pa.Array) -> NDArray[np.float64]:
    return _floats(times.cast(pa.int64())) * 1e-6


def _parsed(text: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:  # the 30th of February: one by one
        distinct = pc.unique(text)
        times = pa.array([_one_time(value, kind) for value in distinct], kind)
        return times.take(pc.index_in(text, value_set=distinct, skip_nulls=False))


def _one_time(value: Any, kind: pa.DataType) -> Any:
    try:
        return value.cast(kind).as_py()
    except pa.ArrowInvalid:
        return None
