"""Simulated reviews: who asks finds, and records hold what the tables say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from typer.testing import CliRunner

from aloof.bench.review import ReviewSpecification
from aloof.bench.review.forest import FeedbackForest
from aloof.bench.review.simulation import halve, simulate
from aloof.bench.specification import specify
from aloof.cli.app import app
from aloof.exceptions import ExperimentError


def made(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(600, 5)), np.zeros(600, np.int64)
    X[:30, 0] += 2.5
    y[:30] = 1
    X[30:60, 1] += 3.5  # odd, and harmless
    order = rng.permutation(600)
    return X[order], y[order]


def small(**more: object) -> ReviewSpecification:
    given = {"questions": 20, "members": 2, "max_epochs": 20, "datasets": ["cardio"], **more}
    return specify(ReviewSpecification, given)


def test_halves_have_the_same_share_and_no_row_twice() -> None:
    X, y = made()
    halves = halve(X, y, max_rows=400, seed=1)
    assert len(halves.y) == len(halves.y_test) == 200
    assert halves.y.sum() == halves.y_test.sum() == 10
    again = halve(X, y, max_rows=400, seed=1)
    assert np.array_equal(halves.X, again.X)
    both = np.concatenate([halves.X, halves.X_test])
    assert len(np.unique(both.round(9), axis=0)) == 400
    assert np.allclose(halves.X.mean(0), 0)


def test_askers_find_anomalies_and_refits_help() -> None:
    halves = halve(*made(), max_rows=600, seed=0)
    askers = ("likely", "mix", "anomalous", "random", "never refitted", "isolation forest")
    found = dict(
        zip(askers, simulate(halves, askers, small(), 0, "cpu", lambda *a: None), strict=True)
    )
    for asker, outcome in found.items():
        assert len(outcome["found"]) == 20, asker
        assert (np.diff(outcome["found"]) >= 0).all()
        assert len(outcome["auroc"]) == len(outcome["average_precision"]) == 3
        assert outcome["n_anomalies"] == 15
    never = found["never refitted"]
    assert never["auroc"][0] == never["auroc"][-1] == found["likely"]["auroc"][0]
    assert found["anomalous"]["found"][:10] == never["found"][:10]
    assert found["anomalous"]["found"][-1] >= never["found"][-1]
    assert found["anomalous"]["average_precision"][-1] > never["average_precision"][-1]
    assert found["random"]["found"][-1] < never["found"][-1]
    assert 0.5 < found["likely"]["compared_refit_auroc"] <= 1
    assert found["likely"]["compared_fresh_seconds"] > 0


def test_a_forest_begins_with_its_own_ranking_and_learns() -> None:
    X, y = made()
    forest = FeedbackForest(X, seed=0)
    plain = IsolationForest(random_state=0).fit(X)
    scores = forest.anomaly_score(X)
    assert np.corrcoef(scores, -plain.score_samples(X))[0, 1] > 0.9
    harmless = int(np.argmax(np.where(X[:, 1] > 3, scores, -np.inf)))
    forest.learn(X[harmless], 0)
    assert forest.anomaly_score(X)[harmless] < scores[harmless]
    anomaly = int(np.flatnonzero(y)[0])
    before = forest.anomaly_score(X)[anomaly]
    forest.learn(X[anomaly], 1)
    assert forest.anomaly_score(X)[anomaly] > before


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(ExperimentError, match="multiples of batch"):
        small(questions=25)
    with pytest.raises(ExperimentError, match="no asker"):
        small(askers=["mixed"])


def test_the_command_writes_records_tables_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aloof.datasets import PublicTable, Table

    X, y = made()
    table = Table("cardio", X, y, Path("cardio.mat"), "0" * 64, True)
    monkeypatch.setattr(PublicTable, "load", lambda self: table)
    arguments = ["--datasets", "cardio", "--seeds", "1", "--questions", "20", "--rows", "300"]
    arguments += ["--members", "1", "--epochs", "3", "--askers", "likely,never refitted"]
    done = CliRunner().invoke(
        app, ["bench", "review", *arguments, "--device", "cpu", "--out", str(tmp_path / "r")]
    )
    assert done.exit_code == 0, done.stderr
    records = [
        json.loads(line) for line in (tmp_path / "r/records.jsonl").read_text().splitlines()
    ]
    assert [record["asker"] for record in records] == ["likely", "never refitted"]
    text = (tmp_path / "r/table.md").read_text()
    assert "Anomalies found in 20 questions" in text
    assert "times as many as 'never refitted'" in text
    assert "A refit after 20 answers" in text
    assert (tmp_path / "r/plot.png").stat().st_size > 5000
    assert len((tmp_path / "r/table.csv").read_text().splitlines()) == 1 + 2 * 3
