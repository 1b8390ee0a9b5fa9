"""Frames of every mix of types: whatever can be fitted encodes to finite rows, row by row."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from aloof.exceptions import TableError
from aloof.models.table import TableEncoder, to_table

QUICK = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],  # shrinking a table takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TYPES: dict[str, tuple[pa.DataType | None, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), st.floats()),
    "bool": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(max_size=5)),
    "number in text": (pa.string(), st.floats().map(str) | st.sampled_from(["", "NA", "x"])),
    "large text": (pa.large_string(), st.sampled_from(["a", "b", ""])),
    "text view": (pa.string_view(), st.sampled_from(["a", "b", ""])),
    "date": (pa.date32(), st.dates()),
    "date in text": (pa.string(), st.dates().map(str) | st.just("2024-02-30")),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "zoned": (
        pa.timestamp("us", "America/New_York"),
        st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2200, 1, 1)).map(
            lambda t: t.replace(tzinfo=dt.UTC)
        ),
    ),
    "time": (pa.time64("us"), st.times()),
    "duration": (pa.duration("us"), st.timedeltas(-dt.timedelta(10**5), dt.timedelta(10**5))),
    "decimal": (
        pa.decimal128(38, 4),
        st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=4),
    ),
    "category": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["x", "y", "z"])),
    "numbers as categories": (pa.dictionary(pa.int8(), pa.int64()), st.integers(0, 3)),
    "nothing": (pa.null(), st.none()),
    "one value": (pa.int64(), st.just(7)),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    n = draw(st.integers(1, 8))
    columns = {}
    for i, kind in enumerate(
        draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4))
    ):
        arrow, values = TYPES[kind]
        rows = draw(st.lists(values | st.none(), min_size=n, max_size=n))
        columns[f"{kind} {i}"] = pa.array(rows, arrow)
    return pa.table(columns)


def fitted(table: pa.Table) -> TableEncoder | None:
    try:
        return TableEncoder.fit(table)
    except TableError as error:  # nothing but ids, text and single times
        assert "No column is left" in str(error)  # noqa: PT017
        return None


@QUICK
@given(tables())
def test_rows_are_finite_and_bounded_and_survive_json(table: pa.Table) -> None:
    encoder = fitted(table)
    if encoder is None:
        return
    encoded = encoder.transform(table, warn=lambda words: None)
    assert encoded.dtype == np.float32
    assert encoded.shape == (table.num_rows, encoder.n_features)
    assert np.isfinite(encoded).all()
    assert np.abs(encoded).max() <= 30.001 * encoder.gain
    text = json.dumps(encoder.state(), allow_nan=False)
    restored = TableEncoder.from_state(json.loads(text))
    assert restored == encoder
    np.testing.assert_array_equal(restored.transform(table, warn=lambda words: None), encoded)


@QUICK
@given(tables(), st.data())
def test_a_row_is_encoded_by_itself(table: pa.Table, data: st.DataObject) -> None:
    encoder = fitted(table)
    if encoder is None:
        return
    encoded = encoder.transform(table, warn=lambda words: None)
    order = data.draw(st.permutations(range(table.num_rows)))
    names = data.draw(st.permutations(table.column_names))
    shuffled = to_table(table).take(pa.array(order)).select(names)
    np.testing.assert_array_equal(
        encoder.transform(shuffled, warn=lambda words: None), encoded[order]
    )
    row = data.draw(st.integers(0, table.num_rows - 1))
    alone = encoder.transform(table.slice(row, 1), warn=lambda words: None)
    np.testing.assert_array_equal(alone, encoded[row : row + 1])


@QUICK
@given(tables(), tables())
def test_other_rows_are_encoded_or_refused_by_name(first: pa.Table, other: pa.Table) -> None:
    """Fit on one table, score another of other types under the same names."""
    encoder = fitted(first)
    if encoder is None or other.num_columns < first.num_columns:
        return
    renamed = other.select(range(first.num_columns)).rename_columns(first.column_names)
    try:
        encoded = encoder.transform(renamed, warn=lambda words: None)
    except TableError as error:
        assert any(repr(name) in str(error) for name in first.column_names)  # noqa: PT017
        return
    assert np.isfinite(encoded).all()


@QUICK
@given(tables())
def test_what_was_expected_of_a_row_as_it_is_is_the_row(table: pa.Table) -> None:
    encoder = fitted(table)
    if encoder is None:
        return
    read = encoder.read(table)
    decoded = encoder.decode(encoder.transform(table, warn=lambda words: None))
    assert list(read) == list(decoded) == list(encoder.names)
    for column in encoder.columns:
        assert len(read[column.name]) == len(decoded[column.name]) == table.num_rows
        assert read[column.name].dtype == decoded[column.name].dtype
        if column.kind in ("category", "boolean"):
            known = set(column.categories)
            for was, expected in zip(read[column.name], decoded[column.name], strict=True):
                assert was == expected or was not in known


@QUICK
@given(
    st.lists(
        st.one_of(
            st.none(),
            st.integers(),
            st.floats(),
            st.text(max_size=3),
            st.booleans(),
            st.dates(),
            st.decimals(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_any_mix_in_one_column_of_objects(values: list[Any]) -> None:
    frames = [pd.DataFrame({"x": pd.Series(values, dtype=object)}), {"x": values}]
    for frame in frames:
        encoder = fitted(to_table(frame))
        if encoder is not None:
            assert np.isfinite(encoder.transform(frame, warn=lambda words: None)).all()


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_polars_and_pandas_say_the_same_as_arrow(kind: str) -> None:
    if kind in ("large text", "text view", "numbers as categories"):
        pytest.skip("is text, or does not exist in polars")
    values = {
        "int8": [1, -5, 100],
        "int64": [1, 2**62, -5],
        "uint64": [1, 2**64 - 1, 5],
        "float32": [0.5, float("inf"), -1.5],
        "float64": [1e300, -1e-300, 4.0],
        "bool": [True, False, True],
        "text": ["a", "b", "a"],
        "number in text": ["1", "2.5", "-3"],
        "date": [dt.date(2024, 1, i) for i in (1, 2, 9)],
        "date in text": ["2024-01-01", "2024-01-05", "2024-02-01"],
        "timestamp": [dt.datetime(2024, 1, i, i) for i in (1, 2, 9)],
        "zoned": [dt.datetime(2024, 1, i, i, tzinfo=dt.UTC) for i in (1, 2, 9)],
        "time": [dt.time(i) for i in (1, 2, 9)],
        "duration": [dt.timedelta(hours=i) for i in (1, 2, 9)],
        "decimal": [Decimal("1.5"), Decimal("2.25"), Decimal("-4")],
        "category": ["x", "y", "x"],
        "nothing": [None, None, None],
        "one value": [7, 7, 7],
    }[kind]
    table = pa.table({"x": pa.array([*values, None], TYPES[kind][0])})
    encoder = TableEncoder.fit(table)
    encoded = encoder.transform(table)
    for frame in (pl.from_arrow(table), table.to_pandas()):
        assert TableEncoder.fit(frame).features == encoder.features
        np.testing.assert_array_equal(encoder.transform(frame), encoded)
