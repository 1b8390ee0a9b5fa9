"""Drift as tests: what changed is found, and what did not change is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from scipy import stats
from typer.testing import CliRunner

import aloof as package
from aloof.cli.app import app
from aloof.models.changes import Change, _energy_test, holm
from aloof.models.table import TableModel
from aloof.models.table.changes import _homogeneous, find_changes


def rows(n: int, seed: int, **changes: Any) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {
        "amount": np.exp(rng.normal(3, 1, n)),
        "visits": rng.poisson(1.5, n).astype(float),
        "age": rng.normal(40, 10, n).round(),
        "city": rng.choice(["Oslo", "Bern", "Rome", "Bonn"], n, p=[0.5, 0.3, 0.15, 0.05]),
        "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
    }
    columns |= {name: change(columns[name], rng) for name, change in changes.items()}
    return pa.table({name: pa.array(v, from_pandas=True) for name, v in columns.items()})


@pytest.fixture(scope="module")
def model() -> TableModel:
    quick = {"method": "vae", "members": 1, "max_epochs": 3, "hidden": (16,), "latent_dim": 3}
    found = package.fit(rows(3000, 0), **quick)
    assert isinstance(found, TableModel)
    return found


def changed(model: TableModel, table: pa.Table) -> set[str]:
    return {change.name for change in find_changes(model, table) if change.has_changed}


def test_rows_of_the_same_source_are_not_called_changed(model: TableModel) -> None:
    """At 0.01 for each table, three in 18 would be one chance in a thousand."""
    significant = 0
    for seed in range(18):
        found = find_changes(model, rows((300, 1000, 4000)[seed % 3], 100 + seed))
        significant += any(c.adjusted is not None and c.adjusted <= 0.01 for c in found)
        assert not any(change.has_changed for change in found)
    assert significant < 3


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("amount", lambda v, rng: v * 1.5),
        ("visits", lambda v, rng: v + (rng.random(len(v)) < 0.4)),
        ("age", lambda v, rng: v + 5),
        ("city", lambda v, rng: np.where(rng.random(len(v)) < 0.2, "Rome", v)),
        ("city", lambda v, rng: np.where(rng.random(len(v)) < 0.1, "Lima", v)),
        ("gaps", lambda v, rng: np.where(rng.random(len(v)) < 0.2, np.nan, v)),
    ],
)
def test_the_column_that_changed_is_found(model: TableModel, name: str, change: Any) -> None:
    found = changed(model, rows(1500, 7, **{name: change}))
    assert name in found
    assert found <= {name, "(score)", "(codes)"}


def test_a_change_that_is_small_does_not_count_however_sure_it_is(model: TableModel) -> None:
    found = find_changes(model, rows(2000, 3, age=lambda v, rng: v + 0.2))
    assert not any(change.has_changed for change in found)


def test_codes_and_scores_notice_rows_that_go_together_in_another_way() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    together = pa.table({"a": a, "b": a + 0.1 * rng.normal(size=2000)})
    model = package.fit(together, method="vae", members=1, max_epochs=20, latent_dim=2)
    apart = pa.table({"a": rng.normal(size=1000), "b": rng.normal(size=1000)})
    found = changed(model, apart)
    assert {"(score)"} <= found <= {"(score)", "(codes)"}


def test_the_tests_are_those_of_scipy_and_permutations_are_even() -> None:
    counts = np.array([[30.0, 50, 20], [100, 90, 60]])
    assert _homogeneous(counts) == stats.chi2_contingency(counts).pvalue
    rng = np.random.default_rng(1)
    p = [_energy_test(rng.normal(size=(40, 2)), rng.normal(size=(50, 2))) for _ in range(30)]
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert _energy_test(rng.normal(size=(40, 2)), rng.normal(2, 1, (40, 2))) < 0.001
    assert holm([0.5, None, 0.5]) == [1.0, None, 1.0]


def test_pictures_are_bars() -> None:
    change = Change("x", "t", 0.5, 0.0, (0.5, 0.5), (1.0, 0.0), ("low", "high"))
    assert change.picture == "█▁"
    assert change.words == "low: 100 % of the rows, 50 % in training"


def test_the_command_and_the_report_say_what_changed(model: TableModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    new = rows(1000, 9, age=lambda v, rng: v + 8)
    pa_csv.write_csv(new, tmp_path / "new.csv")

    def run(*more: str) -> Any:
        arguments = ["drift", str(tmp_path / "model"), str(tmp_path / "new.csv"), *more]
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    text = run()
    assert "age" in text.split("CHANGED")[0]
    assert "aloof calibrate" in text
    assert "aloof refit" in text
    found = json.loads(run("--json"))
    assert next(c["name"] for c in found["columns"] if c["has_changed"]) == "age"
    pa_csv.write_csv(rows(1000, 10), tmp_path / "new.csv")
    assert "Nothing has changed" in run()
    model.report(new, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert 'id="drift"' in page
    assert "1 column of" in page or "2 columns of" in page or "3 columns of" in page
