"""The rows with the lowest keys are found however a stream is cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from aloof.models.table.lowest import Lowest, Rows


@pytest.mark.parametrize("n", [1, 7, 200])
@pytest.mark.parametrize("size", [1, 13, 1000])
@pytest.mark.parametrize("digits", [0, 9], ids=["many ties", "no ties"])
def test_they_are_those_of_a_stable_sort(n: int, size: int, digits: int) -> None:
    rng = np.random.default_rng(0)
    keys = rng.normal(size=150).round(digits)
    keys[rng.random(150) < 0.2] = np.inf
    table = pa.table({"place": np.arange(150)})
    lowest = Lowest(n)
    for start in range(0, 150, size):
        part = slice(start, start + size)
        lowest.add(Rows(table[part], {"keys": keys[part]}), keys[part])
    rows = lowest.rows()
    finite = np.flatnonzero(np.isfinite(keys))
    expected = finite[np.argsort(keys[finite], kind="stable")][:n]
    np.testing.assert_array_equal(rows.table["place"].to_numpy(), expected)
    np.testing.assert_array_equal(rows["keys"], keys[expected])


def test_there_may_be_none() -> None:
    lowest = Lowest(3)
    lowest.add(Rows(pa.table({"a": ["x"]}), {}), np.array([np.inf]))
    assert len(lowest.rows()) == 0
    assert lowest.rows().table.column_names == ["a"]
