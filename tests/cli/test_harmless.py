"""Rules of reviewers in `aloof score`: rows that they cover are not flagged."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from typer.testing import CliRunner

import aloof as package
from aloof.cli.app import app
from aloof.feedback.store import AnswerStore, Rule


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    a, host = rng.normal(size=n), rng.choice(["web01", "web02", "backup01"], n)
    a[: n // 10] += 8
    return pa.table({"id": np.arange(n), "a": a, "b": rng.normal(size=n), "host": host})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harmless")
    pa_csv.write_csv(rows(800, 0).slice(80), folder / "train.csv")
    pa_csv.write_csv(rows(200, 1), folder / "new.csv")
    quick = {"members": 1, "max_epochs": 8, "hidden": (8,), "latent_dim": 2}
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        model = package.fit(str(folder / "train.csv"), id="id", **quick)
    model.save(folder / "model")
    return folder


def scored(made: Path, tmp_path: Path, *options: str) -> tuple[dict[str, int], pa.Table]:
    out = tmp_path / "scores.csv"
    given = ["score", str(made / "model"), str(made / "new.csv"), "--out", str(out), "--force"]
    done = CliRunner().invoke(app, [*given, "--json", "--keep-all", *options])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), pa_csv.read_csv(out)


def test_rows_known_to_be_harmless_are_not_flagged(made: Path, tmp_path: Path) -> None:
    before, plain = scored(made, tmp_path)
    assert before["n_suppressed"] == 0
    assert "suppressed_by" not in plain.column_names
    url = str(tmp_path / "rules.sqlite")
    with AnswerStore.of(made / "model", url) as store:
        store.add_rule(Rule(column="host", value="backup01", by="eve"))
        past = datetime.now(UTC) - timedelta(days=1)
        store.add_rule(Rule(column="host", value="web01", by="eve", until=past))
    after, told = scored(made, tmp_path, "--store", url)
    backup = np.array(told["host"].to_pylist()) == "backup01"
    flagged = plain["is_anomaly"].to_numpy(zero_copy_only=False)
    assert (flagged & backup).any()
    assert np.array_equal(told["is_anomaly"].to_numpy(zero_copy_only=False), flagged & ~backup)
    assert after["n_suppressed"] == int((flagged & backup).sum())
    assert after["n_anomalies"] + after["n_suppressed"] == before["n_anomalies"]
    names = [name or "" for name in told["suppressed_by"].to_pylist()]
    assert names == ["host = backup01" if each else "" for each in backup]
    again, same = scored(made, tmp_path, "--store", url, "--ignore-rules")
    assert again["n_anomalies"] == before["n_anomalies"]
    assert same.equals(plain)
    _, highest = scored(made, tmp_path, "--store", url, "--top", "5", "--sort")
    first = np.flatnonzero(highest["is_anomaly"].to_numpy(zero_copy_only=False))
    assert len(first) == 5
    assert "backup01" not in highest["host"].take(pa.array(first)).to_pylist()


def test_the_command_says_what_is_hidden_and_what_to_do(made: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "rules.sqlite")
    with AnswerStore.of(made / "model", url) as store:
        store.add_rule(Rule(column="host", value="backup01", by="eve"))
    given = ["score", str(made / "model"), str(made / "new.csv"), "--store", url]
    done = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "s.csv")])
    assert "known to be harmless" in done.stdout
    assert "--ignore-rules" in done.stdout
    Path(url).write_text("no database")
    done = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "t.csv")])
    assert done.exit_code != 0
    assert "--ignore-rules scores without" in " ".join(done.stderr.split())
