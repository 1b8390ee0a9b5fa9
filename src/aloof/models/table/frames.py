"""Any frame in, one form inside: a `pyarrow.Table`; results go back in the caller's flavour."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from aloof.exceptions import TableError
from aloof.models.table.names import check_names

__all__ = ["like", "to_table", "without_views"]

# Units of NumPy's times and durations that Arrow does not know. Durations in months and years
# have no fixed number of seconds.
_COARSE = {"M": ("Y", "M", "W", "h", "m"), "m": ("W", "D", "h", "m")}


def to_table(frame: Any) -> pa.Table:
    """Return a frame of any flavour as a `pyarrow.Table`.

    Parameters
    ----------
    frame
        A pandas, polars, pyarrow or narwhals frame, a mapping from names to columns, or an
        array ``(n, n_columns)``, whose columns are then named x0, x1 and so on.

    Returns
    -------
    A table whose column names are strings, each there once. Columns of mixed values become
    text, integers too long for 64 bits become floats.

    Examples
    --------
    >>> to_table({"age": [31, None], "city": ["Oslo", "Bern"]}).column_names
    ['age', 'city']
    """
    if isinstance(frame, pa.Table):
        check_names(frame.column_names)
        return without_views(frame)
    if isinstance(frame, pa.RecordBatch):
        return to_table(pa.Table.from_batches([frame]))
    if isinstance(frame, np.ndarray):
        return _from_array(frame)
    if isinstance(frame, Mapping):
        return _assembled(frame.keys(), (_from_values(k, v) for k, v in frame.items()))
    return _from_frame(frame)


def like(
    frame: Any, columns: Mapping[str, ArrayLike], places: NDArray[np.intp] | None = None
) -> Any:
    """Return new columns as a frame of the flavour of `frame`.

    A pandas frame keeps its index: of the rows at `places`, or of all. For a mapping or an
    array the result is a dict of arrays, for a flavour that is neither pandas nor polars a
    `pyarrow.Table`.
    """
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return pa.table({name: _arrow(values) for name, values in columns.items()})
    if isinstance(frame, np.ndarray | Mapping):
        return {name: _numpy(values) for name, values in columns.items()}
    import narwhals as nw

    space = nw.from_native(frame).implementation
    if space.is_pandas_like():
        arrays = {name: _numpy(values) for name, values in columns.items()}
        index = nw.to_native(frame, pass_through=True).index
        index = index if places is None else index[places]
        return space.to_native_namespace().DataFrame(arrays, index=index)
    table = pa.table({name: _arrow(values) for name, values in columns.items()})
    return space.to_native_namespace().from_arrow(table) if space.is_polars() else table


def without_views(table: pa.Table) -> pa.Table:
    """Return text in Arrow's older form where it is in the newer, which not all can take."""
    for place, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            column = table[field.name].cast(pa.large_string())
            table = table.set_column(place, field.name, column)
    return table


def _from_array(array: NDArray[Any]) -> pa.Table:
    if array.dtype.names:
        return to_table({name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        raise TableError(
            f"An array must have rows and columns; got shape {array.shape}. For a single "
            "column, use array.reshape(-1, 1)."
        )
    return to_table({f"x{i}": np.ascontiguousarray(array[:, i]) for i in range(array.shape[1])})


def _from_frame(frame: Any) -> pa.Table:
    import narwhals as nw

    try:
        native = nw.from_native(frame)
        eager = native.collect() if isinstance(native, nw.LazyFrame) else native
    except nw.exceptions.DuplicateError:
        check_names(str(name) for name in frame.columns)
        raise
    except TypeError:
        if hasattr(frame, "__arrow_c_stream__"):
            with suppress(pa.ArrowInvalid):  # of a Series
                return to_table(pa.table(frame))
        raise TableError(
            f"A {type(frame).__name__} is not a table. Give a pandas, polars or pyarrow "
            "frame, a mapping from names to columns, or an array of rows and columns."
        ) from None
    series = list(eager.iter_columns())
    return _assembled(
        [one.name for one in series], (_from_series(one.name, one) for one in series)
    )


def _from_series(name: Any, series: Any) -> pa.Array | pa.ChunkedArray:
    import narwhals as nw

    native = series.to_native()
    if str(getattr(native, "dtype", "")).startswith(
        "period["
    ):  # which Arrow takes for whole numbers
        series = nw.from_native(native.dt.to_timestamp(), series_only=True)
    if series.dtype != nw.Object:
        try:
            return series.to_arrow()
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            pass
    return _from_objects(name, series.to_list())


def _from_values(name: Any, values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(
        values, Sequence | np.ndarray
    ):  # a Series, or a scalar
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        values = np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise TableError(f"Column {name!r} must have one dimension; got shape {values.shape}.")
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        values = _in_units_of_arrow(values)
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return _from_objects(name, list(values))


def _in_units_of_arrow(times: NDArray[Any]) -> NDArray[Any]:
    """Return times that NumPy counts in minutes, hours, weeks, months or years in seconds.

    Steps of several units, which Arrow takes for one, become steps of one.
    """
    kind, (unit, step) = times.dtype.kind, np.datetime_data(times.dtype)
    if unit in _COARSE[kind]:
        return times.astype(f"{kind}8[s]")
    return times if step == 1 else times.astype(f"{kind}8[{unit}]")


def _from_objects(name: Any, values: list[Any]) -> pa.Array:
    """Return values no Arrow type holds together: as floats if all are numbers, else text."""
    values = [None if _is_missing(value) else value for value in values]
    there = [value for value in values if value is not None]
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    if all(isinstance(value, numbers.Real | Decimal) for value in there):
        return pa.array([None if value is None else _float(value) for value in values])
    for value in there:
        if not isinstance(value, str | numbers.Real | Decimal) and not hasattr(
            value, "isoformat"
        ):
            raise TableError(
                f"Column {name!r} holds values of type {type(value).__name__}, which aloof "
                "cannot read. Drop the column, or turn it into numbers or text."
            )
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _assembled(names: Iterable[Any], columns: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Table:
    named = [
        "_".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in names
    ]
    check_names(named)
    arrays = list(columns)
    lengths = {name: len(array) for name, array in zip(named, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        raise TableError(f"The columns differ in length: {lengths}.")
    return without_views(pa.table(arrays, names=named))


def _arrow(values: ArrayLike) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    return pa.array(np.asarray(values))


def _numpy(values: ArrayLike) -> NDArray[Any]:
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    if isinstance(values, pa.ChunkedArray):
        return np.asarray(values.to_numpy())
    return np.asarray(values)
