"""Drift in rows that keep coming."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import aloof as package
from aloof.exceptions import TableError
from aloof.models.table import TableModel
from aloof.models.table.watching import DriftWatch


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"a": rng.normal(50, 5, n), "b": rng.choice(["x", "y"], n)})


@pytest.fixture(scope="module")
def model() -> TableModel:
    quick = {"members": 1, "max_epochs": 2, "hidden": (4,), "latent_dim": 2}
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        found = package.fit(rows(600, 0), **quick)
    assert isinstance(found, TableModel)
    return found


def watched(model: TableModel, table: pa.Table, sizes: list[int], window: int) -> DriftWatch:
    watch, at = DriftWatch(model, window), 0
    while at < table.num_rows:
        n = sizes[at % len(sizes)]
        part = table.slice(at, n)
        names = [(part.num_rows, tuple(part.column_names))]
        watch.add(part, names, np.zeros(part.num_rows, bool))
        at += n
    return watch


@pytest.mark.parametrize("window", [300, 3000])
def test_what_is_found_does_not_depend_on_how_rows_come(model: TableModel, window: int) -> None:
    """Also where a window has more rows than are kept of it."""
    usual, far = rows(4000, 1), rows(4000, 2)
    far = far.set_column(0, "a", pa.array(far["a"].to_numpy() * 1000))
    table = pa.concat_tables([usual, far])
    found = []
    for sizes in ([1], [8000], [7, 900, 300]):
        watch = watched(model, table, sizes, window)
        watch.look()
        found.append(watch.drift)
    assert found[0]
    assert found[0] == found[1] == found[2]


def test_windows_follow_one_another(model: TableModel) -> None:
    usual, far = rows(150, 1), rows(150, 2)
    far = far.set_column(0, "a", pa.array(far["a"].to_numpy() * 1000))
    none = np.zeros(150, bool)
    watch = DriftWatch(model, 300)

    def add(table: pa.Table) -> list[str]:
        watch.add(table, [(150, tuple(table.column_names))], none)
        return watch.look()

    (begins,) = add(far)  # the first one is looked at before it is full
    assert "`a`" in begins
    add(far)
    assert add(usual) == []
    assert watch.drift, "the second one is not full"
    (ends,) = add(usual)
    assert ends.startswith("`a`: as in training again")
    assert DriftWatch(model, 300, watch.drift).look() == []
    with pytest.raises(TableError, match="at least 100 rows"):
        DriftWatch(model, 99)


def test_any_types_and_columns_may_come(model: TableModel) -> None:
    watch, none = DriftWatch(model, 200), np.zeros(100, bool)
    watch.add(rows(100, 1), [(100, ("a", "b"))], none)
    text = pa.table({"a": ["12.5"] * 100})
    watch.add(text, [(60, ("a", *map(str, range(5000)))), (40, ("more",))], none)
    watch.look()
    assert 1000 < len(watch.drift) < 6000
