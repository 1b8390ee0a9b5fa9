"""``aloof bench planning`` as a user types it, in worlds that take no time."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace
from pathlib import Path
from statistics import stdev

import pytest
from typer.testing import CliRunner, Result

from aloof.bench.planning import PlanningSpecification, make_planning
from aloof.cli.app import app
from aloof.planning import default_config

pytest.importorskip("ompl")

EXPERIMENT = """
n_train = 6
n_worlds = 4
methods = ["vae", "dp"]
counts = [4, 24]
size = 8
n_walls = 1
mirror = true
max_epochs = 2
hidden = [8]
dropout = 0.1
latent_dim = 2
filters = [2]
n_states = 16
"""
FILES = {
    "curves.png",
    "figure.png",
    "manifest.json",
    "models",
    "records.jsonl",
    "summary.csv",
    "table.csv",
    "table.md",
}


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", "planning", *map(str, arguments)])


@pytest.fixture(autouse=True)
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    return path


def run(experiment: Path, out: Path, *more: object) -> Result:
    return bench(
        "--experiment", experiment, "--jobs", 1, "--device", "cpu", "--out", out, *more
    )


def test_a_record_depends_on_every_number_of_the_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = make_planning(PlanningSpecification(n_worlds=1))
    uniform, learned = study.cases[0], study.cases[-1]
    before = {case: study.identity(case).record for case in (uniform, learned)}
    place = "aloof.bench.planning.systems"
    slower = replace(default_config(200), learning_rate=1e-4)
    for name, value in (("default_config", lambda _: slower), ("_ANOMALY_SHARE", 0.1)):
        with monkeypatch.context() as patch:
            patch.setattr(f"{place}.{name}", value)
            assert not study.identity(learned).holds(before[learned])
            assert study.identity(uniform).holds(before[uniform])
    assert study.identity(learned).holds(before[learned])


def test_from_start_to_end_and_again(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    result = run(experiment, out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == FILES
    assert result.stderr == ""
    for text in (
        "uniform",
        "DP-VAE, means",
        "DP-VAE, screened",
        "in collision",
        "Success of PRM*",
    ):
        assert text in result.stdout
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["device"] == "cpu"
    assert manifest["started"].startswith("20")
    assert manifest["experiment"]["mirror"] is True
    table = (out / "table.md").read_text()
    assert "4 unseen worlds" in table
    with (out / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 * 4 * 2  # samplers, worlds, counts
    with (out / "summary.csv").open() as file:
        means = list(csv.DictReader(file))
    assert len(means) == 7 * 2
    own = [float(row["coverage"]) for row in rows if row["sampler"] == "DP-VAE"][::2]
    line = next(mean for mean in means if mean["sampler"] == "DP-VAE")
    assert line["n"] == str(len(own)) == "4"
    assert float(line["coverage_sem"]) == pytest.approx(50 * stdev(own), abs=1e-3)
    for name in ("figure.png", "curves.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    # A run that was cut off in the middle of a line does the rest, and no more.
    records = (out / "records.jsonl").read_text()
    cut = records[: len(records) // 2]
    (out / "records.jsonl").write_text(cut)
    monkeypatch.setattr("aloof.bench.planning.systems.train_generator", None)  # not again
    again = run(experiment, out, "--json")
    assert again.exit_code == 0, again.output
    kept = cut[: cut.rfind("\n") + 1]
    assert (out / "records.jsonl").read_text().startswith(kept)
    before, after = (
        [
            (r["sampler"], r["world"], r["collision"], r["coverage"])
            for r in map(json.loads, text)
        ]
        for text in (records.splitlines(), again.stdout.splitlines())
    )
    assert before == after


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "vae,dpp"], "no method 'dpp'; did you mean 'dp'"),
        (["--worlds", "0"], "n_worlds must be at least 1"),
        (["--experiment", "none.toml"], "none.toml cannot be read"),
        (["--device", "tpu"], "device must be"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], message: str, experiment: Path, tmp_path: Path
) -> None:
    result = bench("--experiment", experiment, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_mistake_in_the_file_and_in_the_records(experiment: Path, tmp_path: Path) -> None:
    experiment.write_text("wrlds = 3")
    assert "wrlds is unknown" in bench("--experiment", experiment).stderr
    experiment.write_text(EXPERIMENT)
    out = tmp_path / "out"
    out.mkdir()
    (out / "records.jsonl").write_text("{}\n")
    result = run(experiment, out)
    assert result.exit_code == 2
    assert "Line 1" in result.stderr


def test_without_ompl(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ompl", None)
    result = run(experiment, tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install 'aloof[planning]'" in result.stderr
