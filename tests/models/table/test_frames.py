from __future__ import annotations

from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aloof.exceptions import TableError
from aloof.models.table import like, to_table

COLUMNS = {"a": [1.5, None, 3.0], "b": ["x", None, "z"]}


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS),
        pl.LazyFrame(COLUMNS),
        pa.table(COLUMNS),
        pa.RecordBatch.from_pydict(COLUMNS),
        nw.from_native(pl.DataFrame(COLUMNS)),
        COLUMNS,
        {"a": np.array([1.5, np.nan, 3.0]), "b": pd.Series(["x", None, "z"])},
        {"a": pl.Series([1.5, None, 3.0]), "b": pa.array(["x", None, "z"])},
    ],
    ids=lambda frame: type(frame).__module__.split(".")[0] + type(frame).__name__,
)
def test_every_flavour_is_the_same_table(frame) -> None:
    assert to_table(frame).to_pydict() == COLUMNS


def test_arrays_have_numbered_columns() -> None:
    table = to_table(np.arange(6).reshape(3, 2))
    assert table.to_pydict() == {"x0": [0, 2, 4], "x1": [1, 3, 5]}
    records = np.array([(1, "a"), (2, "b")], dtype=[("n", int), ("t", "U1")])
    assert to_table(records).to_pydict() == {"n": [1, 2], "t": ["a", "b"]}
    with pytest.raises(TableError, match=r"shape \(3,\)"):
        to_table(np.arange(3))


def test_names_of_several_parts_are_joined() -> None:
    names = pd.MultiIndex.from_tuples([("a", "x"), ("a", 1)])
    assert to_table(pd.DataFrame([[1, 2]], columns=names)).column_names == ["a_x", "a_1"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2**70, 1, None], [2.0**70, 1.0, None]),
        ([10**400, -(10**400), 1], [float("inf"), float("-inf"), 1.0]),
        ([1, "a", None, 2.5, True], ["1", "a", None, "2.5", "True"]),
        ([1, Decimal("2.5")], [1, Decimal("2.5")]),
        ([None, float("nan"), pd.NA, pd.NaT], [None] * 4),
    ],
)
def test_mixed_objects_become_floats_or_text(values, expected) -> None:
    for frame in (pd.DataFrame({"x": pd.Series(values, dtype=object)}), {"x": values}):
        assert to_table(frame)["x"].to_pylist() == expected


def test_what_is_no_table_is_said() -> None:
    with pytest.raises(TableError, match="A list is not a table"):
        to_table([1, 2])
    with pytest.raises(TableError, match="A Series is not a table"):
        to_table(pd.Series([1, 2]))
    with pytest.raises(TableError, match="A str is not a table"):
        to_table("file.csv")
    with pytest.raises(TableError, match=r"'x' holds values of type (complex|object)"):
        to_table(pd.DataFrame({"x": pd.Series([1j, object()], dtype=object)}))
    with pytest.raises(TableError, match="differ in length"):
        to_table({"a": [1], "b": [1, 2]})


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=[1, "1"]),
        pa.table([[1], [2]], names=["a", "a"]),
    ],
)
def test_names_that_are_there_twice_are_an_error(frame) -> None:
    with pytest.raises(TableError, match=r"more than one column named '(a|1)'"):
        to_table(frame)


def test_results_come_in_the_flavour_of_the_caller() -> None:
    new = {"score": np.array([0.5, 1.5, 2.5]), "why": ["a", None, "c"]}
    frame = pd.DataFrame(COLUMNS, index=[7, 8, 9])
    result = like(frame, new)
    assert isinstance(result, pd.DataFrame)
    assert list(result.index) == [7, 8, 9]
    assert list(result["score"]) == [0.5, 1.5, 2.5]
    for made in (pl.DataFrame(COLUMNS), pl.LazyFrame(COLUMNS)):
        result = like(made, new)
        assert isinstance(result, pl.DataFrame)
        assert result["why"].to_list() == ["a", None, "c"]
    assert like(pa.table(COLUMNS), new).to_pydict()["why"] == ["a", None, "c"]
    for made in (COLUMNS, np.zeros((3, 2))):
        assert list(like(made, new)["score"]) == [0.5, 1.5, 2.5]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "7D", "h", "15m", "10s", "ms", "us", "100ns"])
def test_times_of_numpy_are_read_in_coarse_units_and_steps(unit: str) -> None:
    times = np.array(["1999", "2026", "NaT"], f"datetime64[{unit}]")
    (found,) = to_table({"at": times}).columns
    assert found.to_numpy().astype("datetime64[s]").tolist() == (
        times.astype("datetime64[s]").tolist()
    )


@pytest.mark.parametrize("unit", ["W", "D", "h", "m", "10s", "ns"])
def test_durations_of_numpy_are_read_in_coarse_units_and_steps(unit: str) -> None:
    lasted = np.array([1, 3, "NaT"], f"timedelta64[{unit}]")
    (found,) = to_table({"lasted": lasted}).columns
    assert found.to_numpy().astype("m8[s]").tolist() == lasted.astype("m8[s]").tolist()
