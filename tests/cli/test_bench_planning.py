"""``aloof bench planning`` as a user types it, in worlds that take no time."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from shutil import rmtree
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aloof.bench import specify
from aloof.bench.planning import PlanningCase, PlanningSpecification, make_planning
from aloof.cli.app import app
from aloof.exceptions import ExperimentError
from aloof.planning import (
    NetworkConfig,
    default_config,
    default_objective,
    make_trajectories,
    train_generators,
)

pytest.importorskip("ompl")

EXPERIMENT = """
setting = ["ours", "paper"]
seeds = 2
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
    "manifest.json",
    "models",
    "records.jsonl",
    "states-ours.png",
    "states-paper.png",
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


def test_a_record_depends_on_every_number_of_the_training() -> None:
    study = make_planning(PlanningSpecification(n_worlds=1))
    uniform, learned = study.cases[0], study.cases[-1]
    before = {case: study.identity(case).record for case in (uniform, learned)}
    changes: list[dict[str, Any]] = [
        {"learning_rate": 1e-4},
        {"anomaly_share": 0.1},
        {"warmup_epochs": 0},
        {"beta_cubo": 0.3},
        {"dropout": 0.1},
    ]
    for change in changes:
        other = make_planning(PlanningSpecification(n_worlds=1, **change))
        assert not other.identity(learned).holds(before[learned]), change
        assert other.identity(uniform).holds(before[uniform])
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
        "DP-VAE, means (ours)",
        "DP-VAE, screened (paper)",
        "in collision",
        "Like with like",
        "Success of PRM*",
    ):
        assert text in result.stdout
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["device"] == "cpu"
    assert manifest["started"].startswith("20")
    assert manifest["experiment"]["mirror"] is True
    table = (out / "table.md").read_text()
    assert "States, 4 unseen worlds" in table
    assert "| DP-VAE, means (ours) | 2 |" in table
    assert (
        "Not the paper's, in rows of the setting paper: hidden = (8,), dropout = 0.1" in table
    )
    with (out / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == (1 + 6 + 6) * 2 * 4 * 2  # samplers, seeds, worlds, counts
    with (out / "summary.csv").open() as file:
        means = list(csv.DictReader(file))
    assert len(means) == (1 + 6 + 6) * 2 * 2

    def coverage(sampler: str, seed: int, setting: str) -> list[float]:
        return [
            float(row["coverage"])
            for row in rows
            if (row["sampler"], row["seed"], row["setting"]) == (sampler, str(seed), setting)
        ][::2]

    own = coverage("DP-VAE", 1, "paper")
    [line] = [
        row
        for row in means
        if (row["sampler"], row["seed"], row["setting"]) == ("DP-VAE", "1", "paper")
        and row["states"] == "24"
    ]
    assert line["n"] == str(len(own)) == "4"
    assert float(line["coverage_sem"]) == pytest.approx(50 * stdev(own), abs=1e-3)
    assert own != coverage("DP-VAE", 0, "paper") != coverage("DP-VAE", 0, "ours")
    # The difference of a method to the VAE: of seeds, of the same kind of states.
    by_seed = [
        mean(coverage("DP-VAE", seed, "paper")) - mean(coverage("VAE", seed, "paper"))
        for seed in (0, 1)
    ]
    [cells] = [
        line.split(" | ")
        for line in table.splitlines()
        if line.startswith("| DP-VAE, draws (paper)")
    ]
    assert cells[2].startswith(f"{100 * mean(by_seed):+.1f}")
    for name in ("states-ours.png", "states-paper.png", "curves.png"):
        assert (out / name).read_bytes().startswith(b"\x89PNG")

    # A run that was cut off in the middle of a line does the rest, and no more.
    records = (out / "records.jsonl").read_text()
    cut = records[: len(records) // 2]
    (out / "records.jsonl").write_text(cut)
    monkeypatch.setattr("aloof.bench.planning.systems.train_generators", None)  # not again
    again = run(experiment, out, "--json")
    assert again.exit_code == 0, again.output
    kept = cut[: cut.rfind("\n") + 1]
    assert (out / "records.jsonl").read_text().startswith(kept)
    names = ("setting", "sampler", "seed", "world", "collision", "coverage")
    before, after = (
        [tuple(r[name] for name in names) for r in map(json.loads, text)]
        for text in (records.splitlines(), again.stdout.splitlines())
    )
    assert before == after


def test_a_picture_stays_when_the_networks_are_gone(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    more = ("--seeds", 1, "--setting", "ours", "--worlds", 1, "--methods", "vae")
    assert run(experiment, out, *more).exit_code == 0
    rmtree(out / "models")
    (out / "states-ours.png").write_bytes(b"as it was")
    monkeypatch.setattr("aloof.bench.planning.systems.train_generators", None)  # not again
    assert run(experiment, out, *more).exit_code == 0
    assert (out / "states-ours.png").read_bytes() == b"as it was"


def test_records_from_before_there_were_settings_are_ours() -> None:
    study = make_planning(PlanningSpecification(setting=("ours", "paper"), n_worlds=1))
    assert study.case_of({"sampler": "VAE", "world": 3}) == PlanningCase("VAE", 3, 0, "ours")
    assert study.case_of({"sampler": "uniform", "world": 3}).setting == ""


def test_the_paper_setting_is_what_the_paper_says() -> None:
    recipe = PlanningSpecification(setting="paper", size=10, n_walls=1).recipe("paper", "dp")
    networks, objective = recipe.networks, recipe.objective
    assert (networks.hidden, networks.latent_dim) == ((512, 512), 256)
    assert (networks.dropout, networks.filters) == (0.5, ())
    assert recipe.anomaly_share == 0.05
    # The weight that the KL divergence has beside errors in a square of side 1.
    assert objective.beta_kl == pytest.approx(4e-4 * 10**2)
    assert recipe.training.learning_rate == 1e-4


def test_networks_of_a_stack_are_those_trained_alone() -> None:
    known = make_trajectories(6, size=8, n_walls=1, n_states=8, seed=1)
    how: dict[str, Any] = {
        "config": default_config(2),
        "networks": NetworkConfig(hidden=(8,), dropout=0.3, latent_dim=2),
        "device": "cpu",
    }
    together = train_generators(known, default_objective("dp"), seeds=[0, 5], **how)
    [alone] = train_generators(known, default_objective("dp"), seeds=[5], **how)
    assert together[1].threshold == pytest.approx(alone.threshold, rel=1e-4)
    states = [model.draw(known.worlds[0], 5, seed=1) for model in (*together, alone)]
    np.testing.assert_allclose(states[1], states[2], atol=1e-4)
    assert not np.allclose(states[0], states[1], atol=1e-2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "vae,dpp"], "no method 'dpp'; did you mean 'dp'"),
        (["--worlds", "0"], "n_worlds must be at least 1"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--setting", "papper"], "no setting 'papper'; did you mean 'paper'"),
        (["--experiment", "none.toml"], "Cannot read the experiment none.toml"),
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


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"learning_rate": -1.0}, "learning_rate must be more than 0"),
        ({"gamma": -1}, "gamma must be at least 0"),
        ({"dropout": 1.0}, "dropout must be a share"),
        ({"anomaly_share": 2.0}, "anomaly_share must be a share"),
        ({"warmup_epochs": -1}, "warmup_epochs must be at least 0"),
        ({"hidden": [0]}, "must be at least 1"),
        ({"lr_schedule": "linear"}, "lr_schedule must be"),
        ({"size": 4}, "size must be at least 8"),
        ({"n_walls": 9}, "n_walls must be 1 to 2"),
        ({"warmup_epochs": 6}, "warmup_epochs must be less than max_epochs, which is 6"),
    ],
)
def test_numbers_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        specify(PlanningSpecification, options)


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
