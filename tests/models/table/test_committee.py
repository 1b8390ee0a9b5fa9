"""A table learned by a committee: everything that other models of tables do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import spearmanr

import aloof
from aloof import Committee, DualPriorVAE, TableDetector
from aloof.exceptions import TableError
from aloof.feedback.refitting import refit
from aloof.models.table import TableModel, fit
from aloof.scoring import distilling

QUICK = {"members": 3, "max_epochs": 12, "hidden": (16,), "latent_dim": 4, "n_trees": 60}


def payments(n: int, n_frauds: int, seed: int, *, told: bool = True) -> pa.Table:
    rng = np.random.default_rng(seed)
    bad = np.arange(n) < n_frauds
    return pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "amount": np.exp(rng.normal(3, 0.5, n) + 3 * bad),
            "country": rng.choice(["DE", "FR", "IT"], n),
            "hour": np.where(bad, rng.integers(1, 4, n), rng.integers(6, 22, n)),
            "fraud": (bad & told).astype(int),
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    return fit(payments(700, 8, 0), label="fraud", id="id", method="committee", **QUICK)


def test_frauds_are_found_and_explained(model: TableModel) -> None:
    new = payments(300, 10, 1)
    scores = model.anomaly_score(new)
    assert scores[:10].min() > np.quantile(scores[10:], 0.95)
    assert model.is_anomaly(new)[:10].mean() > 0.8
    (first,) = model.most_anomalous(new, top=1).rows
    assert any(name in str(first["reasons"]) for name in ("amount", "hour"))


def test_it_is_read_back_and_reported(model: TableModel, tmp_path: Path) -> None:
    new = payments(60, 3, 2)
    model.save(tmp_path / "model")
    again = aloof.load(tmp_path / "model")
    assert isinstance(again, TableModel)
    assert np.array_equal(again.anomaly_score(new), model.anomaly_score(new))
    again.report(new, tmp_path / "report.html")
    assert "Committee with 3 members" in (tmp_path / "report.html").read_text()


def test_what_it_cannot_have_is_an_error_of_the_table() -> None:
    with pytest.raises(TableError, match=r"at least 2 .on the command line --epochs.; got 1"):
        fit(payments(60, 5, 0), label="fraud", method="committee", max_epochs=1)


def test_a_fast_model_ranks_alike_and_says_what_it_lost(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distilling, "_N_ROWS", 4000)
    fast = fit(
        payments(700, 8, 0), label="fraud", id="id", method="committee", fast=True, **QUICK
    )
    new = payments(300, 10, 1)
    assert fast.detector.n_members == 1
    told = fast.training["fast"]
    assert (told["method"], told["members"]) == ("committee", 3)
    calibration = fast.detector.calibration_scores_
    assert calibration is not None
    assert len(calibration) == fast.training["n_calibration"]
    assert told["rank_correlation"] > 0.8
    found = spearmanr(fast.anomaly_score(new), model.anomaly_score(new)).statistic
    assert found == pytest.approx(told["rank_correlation"], abs=0.1)
    assert fast.is_anomaly(new)[:10].mean() > 0.8
    fast.save(tmp_path / "model")
    again = aloof.load(tmp_path / "model")
    assert isinstance(again, TableModel)
    assert np.array_equal(again.anomaly_score(new), fast.anomaly_score(new))
    with pytest.raises(TableError, match="again without --fast"):
        refit(again, {}, payments(60, 5, 0))


def odd_tables() -> dict[str, dict[str, object]]:
    rng = np.random.default_rng(0)
    a, b, bad = rng.normal(size=120), rng.normal(size=120), np.arange(120) < 6
    a[:6] += 4
    twice = {"a": np.r_[a[6:12], a[6:]], "b": np.r_[b[6:12], b[6:]], "bad": bad}
    return {
        "two columns": {"a": a, "b": b, "bad": bad},
        "constant columns only": {"a": np.ones(120), "b": ["x"] * 120, "bad": bad},
        "one labelled anomaly": {"a": a, "b": b, "bad": np.arange(120) < 1},
        "labelled anomalies that equal normal rows": twice,
        "more columns than rows": {f"c{j}": a * j + b for j in range(150)} | {"bad": bad},
    }


@pytest.mark.parametrize("name", odd_tables())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_odd_tables_are_learned_and_scored(name: str) -> None:
    table = odd_tables()[name]
    model = fit(table, label="bad", method="committee", **{**QUICK, "max_epochs": 4})
    scores = model.anomaly_score(table)
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    found = model.explain(table)
    np.testing.assert_allclose(found.contributions.sum(1), scores, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_it_is_the_default_for_tables() -> None:
    table = payments(120, 6, 0)
    quick = {**QUICK, "max_epochs": 2}
    assert isinstance(fit(table, label="fraud", id="id", **quick).detector, Committee)
    assert type(fit(table, label="fraud", method="dp", members=1, max_epochs=2).detector) is (
        DualPriorVAE
    )
    y = table["fraud"].to_numpy()
    found = TableDetector().fit(table.drop_columns(["id", "fraud"]).slice(0, 30), y[:30])
    assert isinstance(found.model_.detector, Committee)
