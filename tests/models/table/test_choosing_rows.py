"""Which rows of a scored table are flagged, written and told about."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from aloof.calibration import Decision, Threshold
from aloof.cli.app import app
from aloof.exceptions import AloofWarning, TableError
from aloof.models.table import TableModel, fit
from aloof.models.table import streaming as module


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "key": [f"r{i}" for i in range(n)],
            "amount": rng.lognormal(3, 1, n),
            "age": rng.integers(18, 90, n),
            "note": [f"n{i % 7}" for i in range(n)],
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AloofWarning)
        tiny = {"members": 1, "max_epochs": 4, "hidden": (8,), "latent_dim": 2}
        return fit(rows(600, 0), id="key", drop=["note"], method="vae", **tiny)


@pytest.fixture
def home(model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_ROWS", 130)
    model.save("model")
    pa_csv.write_csv(rows(500, 1), "new.csv")
    return tmp_path


def aloof(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_highest_are_flagged_and_explained(home: Path, model: TableModel) -> None:
    plain = model.score(rows(500, 1), reasons=0)
    order = np.argsort(-plain["anomaly_score"].to_numpy(), kind="stable")[:20]
    done = aloof("score", "model", "new.csv", "--top", 20, "--out", "s.parquet")
    assert done.exit_code == 0, done.output
    assert "20 flagged (the 20 highest scores)" in done.stdout
    scored = pq.read_table("s.parquet")
    flagged = scored["is_anomaly"].to_numpy()
    assert scored.num_rows == 500
    assert set(np.flatnonzero(flagged)) == set(order)
    reasons = np.array(scored["reason_1"].to_pylist(), dtype=object)
    assert [reason is not None for reason in reasons] == flagged.tolist()
    frame = model.score(rows(500, 1), top=20)
    assert frame["is_anomaly"].to_numpy().tolist() == flagged.tolist()


def test_equal_scores_are_taken_in_the_order_of_the_rows(home: Path, model: TableModel) -> None:
    table = pa.concat_tables([rows(40, 3)] * 8)  # each score eight times, over parts
    pq.write_table(table, "same.parquet")
    model.score_file("same.parquet", "s.parquet", top=11, reasons=1)
    flagged = np.flatnonzero(pq.read_table("s.parquet")["is_anomaly"].to_numpy())
    scores = model.anomaly_score(rows(40, 3))
    first, second = np.argsort(-scores)[:2]
    expected = [first + 40 * k for k in range(8)] + [second + 40 * k for k in range(3)]
    assert sorted(expected) == flagged.tolist()


def test_more_than_there_are(model: TableModel) -> None:
    assert model.score(rows(5, 1), top=9)["is_anomaly"].to_pylist() == [True] * 5
    with pytest.raises(TableError, match="at least 1"):
        model.score(rows(5, 1), top=0)


def test_only_what_is_flagged_sorted_with_all_columns(home: Path, model: TableModel) -> None:
    options = ("--top", 7, "--flagged-only", "--sort", "--keep-all", "--reasons", 0)
    done = aloof("score", "model", "new.csv", *options, "--out", "worst.parquet")
    assert done.exit_code == 0, done.output
    assert "Scored 500 rows" in done.stdout
    worst = pq.read_table("worst.parquet")
    assert worst.column_names[:4] == ["key", "amount", "age", "note"]
    scores = worst["anomaly_score"].to_numpy()
    assert len(scores) == 7
    assert (np.diff(scores) <= 0).all()
    every = model.score(rows(500, 1), keep_all=True, sort=True, reasons=0)
    assert every["key"].to_pylist()[:7] == worst["key"].to_pylist()
    assert every.num_rows == 500
    frame = model.score(
        rows(500, 1).to_pandas(), top=7, flagged_only=True, sort=True, keep=["note"], reasons=0
    )
    assert isinstance(frame, pd.DataFrame)
    assert frame["key"].tolist() == worst["key"].to_pylist()
    assert [f"r{place}" for place in frame.index] == frame["key"].tolist()
    assert list(frame) == ["key", "note", "anomaly_score", "p_value", "is_anomaly"]


def test_a_stream_can_be_chosen_from(home: Path) -> None:
    options = ("--flagged-only", "--top", 3, "--reasons", 0, "--out", "-")
    done = aloof("score", "model", "new.csv", *options)
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 4


def test_a_frame_into_a_file(model: TableModel, tmp_path: Path) -> None:
    out = tmp_path / "s.parquet"
    done = model.score_file(rows(50, 1), out, top=4, flagged_only=True)
    assert (done.n_rows, done.n_anomalies) == (50, 4)
    assert pq.read_table(out).num_rows == 4


def test_a_budget_says_what_to_expect(home: Path) -> None:
    aloof("threshold", "model", "--budget", "10/1000")
    done = aloof("score", "model", "new.csv", "--out", "s.csv")
    expected = "10 alerts in 1,000 rows: about 5 of 500 normal rows; real anomalies come on top"
    assert expected in done.stdout
    assert Threshold(value=2.0).expectation(100) == ""
    assert Threshold(fdr=0.1).expectation(100) == ""
    assert Threshold(share=0.001).expectation(100).startswith("fewer than 1 of 100 normal")


def test_a_false_discovery_rate_that_finds_nothing_says_why(home: Path) -> None:
    aloof("threshold", "model", "--fdr", "0.02")
    done = aloof("score", "model", "new.csv", "--out", "s.csv", "--json")
    assert '"n_anomalies": 0' in done.stdout
    assert "calibration rows, no p-value can be below 0.0083" in done.stdout
    done = aloof("score", "model", "new.csv", "--out", "s.csv", "--force")
    assert "Nothing is flagged. With 120 calibration rows" in done.stdout


@pytest.mark.parametrize(
    ("n", "scores", "fdr", "words"),
    [
        (9, [99.0] * 9, 0.05, r"With 9 calibration rows, .* needs smaller ones.*\b1,999 if"),
        (99, [0.0] * 50, 0.1, r"No row scores above all 99 calibration rows.*larger rate"),
        (99, [99.0] + [0.0] * 99, 0.1, r"at least 10 of 100 rows .*; 1 row does.*least 999\)"),
        (99, [99.0] * 10 + [0.0] * 90, 0.1, r"^$"),
    ],
)
def test_why_nothing_is_discovered(n: int, scores: Any, fdr: float, words: str) -> None:
    import re

    rule = Decision(Threshold(fdr=fdr), 0.0, np.linspace(1, 2, n))
    counts = rule.counts(scores)
    why = rule.why_none(counts)
    assert re.search(words, why), why
    assert bool(why) == (not rule.flag(scores).any())


def test_one_row_is_explained(home: Path, model: TableModel) -> None:
    table = rows(500, 1)
    found = model.most_anomalous(table, ids=["r17", "r400"], rows=[3, 18])
    assert [row["id"] for row in found.rows] == ["r2", "r17", "r400"]
    assert [row["row"] for row in found.rows] == [3, 18, 401]
    scores = model.anomaly_score(table)
    assert [row["anomaly_score"] for row in found.rows] == scores[[2, 17, 400]].tolist()
    assert all(row["reasons"] for row in found.rows)
    done = aloof("explain", "model", "new.csv", "--id", "r17")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("1 of 500 rows:")
    assert "row 18 (line 19)  key r17" in done.stdout
    assert "`" in done.stdout
    for words, reason in (
        (("--id", "nobody"), "No row has 'nobody' in the column 'key'."),
        (("--row", 501), "There is no row 501; the table has 500 rows."),
    ):
        done = aloof("explain", "model", "new.csv", *words)
        assert done.exit_code == 2
        assert reason in done.stderr


def test_a_model_without_ids(home: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AloofWarning)
        tiny = {"members": 1, "max_epochs": 1, "hidden": (4,), "latent_dim": 2}
        unnamed = fit(rows(60, 0).select(["amount", "age"]), method="vae", **tiny)
    with pytest.raises(TableError, match="has no id column"):
        unnamed.most_anomalous(rows(60, 1), ids=[3])
    with pytest.raises(TableError, match="counted from 1"):
        unnamed.most_anomalous(rows(60, 1), rows=[0])


def test_commands_speak_of_options(home: Path) -> None:
    Path("s.csv").write_text("x\n")
    done = aloof("score", "model", "new.csv", "--out", "s.csv")
    assert done.exit_code == 2
    assert done.stderr.strip().endswith("or replace it with --force.")
    pa_csv.write_csv(rows(30, 1).drop_columns("age"), "less.csv")
    done = aloof("score", "model", "less.csv", "--out", "t.csv")
    assert done.exit_code == 2
    assert "To score it anyway: --missing-columns fill." in done.stderr
    done = aloof("score", "model", "less.csv", "--out", "t.csv", "--missing-columns", "fill")
    assert done.exit_code == 0, done.output
    assert "warning: `age`: the column is gone; its values count as typical" in done.stderr
    assert "The rows do not look like the training rows: 1 difference (age)." in done.stdout
    for command in ("explain", "evaluate", "calibrate", "report"):
        help_ = aloof(command, "--help").stdout
        assert "--missing-columns" in help_
