"""The benchmark as a user types it, on data that takes no time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from aloof.bench import figure1 as figure
from aloof.bench.deadline import Deadline
from aloof.cli.app import app
from aloof.cli.bench import command

EXPERIMENT = """
title = "A small one"
datasets = ["tiny"]
methods = ["vae", "dp", "peer"]
gamma_l = 0.05
seeds = 2

[[variants]]
name = "short"
parameters = { n_members = 2, hidden = [8], latent_dim = 3, max_epochs = 6 }
"""
FILES = {
    "manifest.json",
    "plot.png",
    "records.jsonl",
    "splits.json",
    "table.csv",
    "table.md",
}


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)])


@pytest.fixture(autouse=True)
def experiment(tmp_path: Path, tiny: Callable[[int, int], None]) -> Path:
    """A small data set, a peer, and the file of an experiment with both."""
    tiny(100, 30)
    path = tmp_path / "small.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_run_that_finished_nothing_in_time_says_so(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Deadline", lambda seconds: Deadline(0.0))
    out = tmp_path / "out"
    typed = ("odds", "--experiment", experiment, "--jobs", 1, "--out", out)
    result = bench(*typed, "--minutes", 0.5)
    assert result.exit_code == 2
    assert "Nothing was finished in 0.5 minutes" in result.stderr
    assert "Give it more --minutes" in result.stderr
    (out / "training.ckpt").touch()
    result = bench(*typed, "--minutes", 0.5)
    assert result.exit_code == 2
    assert "Run it again: it goes on from where it was stopped." in result.stderr


def test_an_experiment_from_start_to_end(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = bench("odds", "--experiment", experiment, "--jobs", 1, "--out", out)
    assert result.exit_code == 0, result.output
    assert {path.name for path in out.iterdir()} == FILES
    for text in ("dp (ours, short)", "peer", "best peer of each set", "(p = "):
        assert text in result.stdout
    assert result.stderr == ""  # no terminal, no progress
    table = (out / "table.md").read_text()
    assert table.startswith("# A small one\n")
    assert "Made with `" in table
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["experiment"]["name"] == "small"
    assert manifest["n_run"] == 6
    assert (out / "plot.png").read_bytes().startswith(b"\x89PNG")

    again = bench("odds", "--experiment", experiment, "--jobs", 1, "--out", out, "--json")
    records = [json.loads(line) for line in again.stdout.splitlines()]
    assert len(records) == 6
    first = (out / "records.jsonl").read_text().splitlines()[0]
    assert records[0]["auroc"] == json.loads(first)["auroc"]
    assert json.loads((out / "manifest.json").read_text())["n_run"] == 0
    assert (out / "table.md").read_text() == table


def test_options_win_over_the_file(experiment: Path, tmp_path: Path) -> None:
    result = bench(
        *("odds", "--experiment", experiment, "--methods", "dp, peer", "--seeds", 1),
        *("--gamma-l", "0,0.1", "--jobs", 1, "--out", tmp_path / "out", "--json"),
    )
    assert result.exit_code == 0, result.output
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert {(r["method"], r["gamma_l"], r["seed"]) for r in records} == {
        (method, gamma, 0) for method in ("dp", "peer") for gamma in (0.0, 0.1)
    }


def test_a_part_is_printed_and_the_tables_in_the_folder_show_the_whole(
    experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    typed = ("odds", "--experiment", experiment, "--jobs", 1, "--out", out)
    part = bench(*typed, "--methods", "peer", "--seeds", 1)
    assert part.exit_code == 0, part.output
    assert "vae" not in (out / "table.md").read_text()  # there is no more than the part
    assert "all of the experiment" not in part.stdout
    assert bench(*typed).exit_code == 0
    table, lines = (out / "table.md").read_text(), (out / "table.csv").read_text()
    again = bench(*typed, "--methods", "peer", "--seeds", 1)
    assert "peer" in again.stdout
    assert "dp (ours" not in again.stdout
    assert "Its tables show all of the experiment." in again.stdout
    assert (out / "table.csv").read_text() == lines
    kept, footer = (out / "table.md").read_text().split("Made with")
    assert kept == table.split("Made with")[0]
    assert f"`aloof bench odds --experiment {experiment.as_posix()}`" in footer
    wider = bench(*typed, "--methods", "peer", "--seeds", 3)
    assert "--seeds 3`" in (out / "table.md").read_text(), wider.output


def test_tables_of_a_part_where_the_data_of_the_rest_is_not_here(
    experiment: Path, tmp_path: Path
) -> None:
    text = experiment.read_text().replace('["tiny"]', '["tiny", "cardio"]')
    experiment.write_text(text)
    typed = ("odds", "--experiment", experiment, "--jobs", 1, "--out", tmp_path / "out")
    result = bench(*typed, "--datasets", "tiny", "--methods", "peer")
    assert result.exit_code == 0, result.output
    assert "show what was run now, and nothing else" in result.stderr
    assert "cardio" in result.stderr
    assert "peer" in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "tini"], "no data set 'tini'; did you mean 'tiny'"),
        (["--methods", "dp,pear"], "no method 'pear'; did you mean 'peer'"),
        (["--setting", "papr"], "no setting 'papr'; did you mean 'paper'"),
        (["--scaling", "units"], "no scaling 'units'; did you mean 'unit'"),
        (["--gamma-l", "a"], "--gamma-l must be a number"),
        (["--gamma-l", ","], "--gamma-l is empty"),
        (["--methods", ""], "--methods is empty"),
        (["--gamma-p", "2"], "gamma_p must be a share"),
        (["--seeds", "0"], "seeds must be at least 1"),
        (["--datasets", "tiny", "--gamma-l", "0.5"], "have only 18 anomalies"),
        (["--datasets", "tiny", "--device", "tpu"], "device must be"),
        (["--datasets", "tiny", "--setting", "paper"], "no hyper-parameters for 'tiny'"),
        (["--experiment", "none.toml"], "Cannot read the experiment none.toml"),
        (["--datasets", "cardio"], "odds/cardio.mat cannot be read"),
    ],
)
def test_mistakes_of_the_user_are_one_line(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = bench("odds", *arguments, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize("what", ["images", "planning", "text"])
def test_an_empty_list_runs_nothing_and_writes_nothing(what: str, tmp_path: Path) -> None:
    result = bench(what, "--methods", ",", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "--methods is empty" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_mistake_in_the_file(experiment: Path) -> None:
    experiment.write_text("methds = ['dp']")
    result = bench("odds", "--experiment", experiment)
    assert result.exit_code == 2
    assert f"{experiment}: methds is unknown; did you mean 'methods'" in result.stderr


def test_failed_fits_are_reported_and_the_rest_is_kept(
    experiment: Path, tmp_path: Path
) -> None:
    result = bench(
        *("odds", "--experiment", experiment, "--methods", "peer,broken", "--jobs", 1),
        *("--out", tmp_path / "out"),
    )
    assert result.exit_code == 1
    assert "2 of 4 fits failed" in result.stderr
    assert "n_members" in result.stderr
    assert "tiny, broken (2 seeds)" in (tmp_path / "out" / "table.md").read_text()


def test_without_matplotlib_there_are_tables(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = bench(
        *("odds", "--experiment", experiment, "--methods", "peer", "--jobs", 1),
        *("--out", tmp_path / "out"),
    )
    assert result.exit_code == 0, result.output
    assert "pip install 'aloof[plots]'" in result.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES - {"plot.png"}


def test_interrupted_in_the_middle(
    experiment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("aloof.cli.bench.command.run_study", interrupted)
    result = bench("odds", "--experiment", experiment, "--out", tmp_path / "out")
    assert result.exit_code == 130
    assert "run the same command again" in result.stderr


def test_help_teaches() -> None:
    text = " ".join(bench("odds", "--help").output.split())
    for word in ("gamma-l", "records.jsonl", "odds-main.toml", "mml-dp", "first try"):
        assert word in text


def test_figure_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = {"n_members": 1, "hidden": [8], "latent_dim": 3, "max_epochs": 4}
    original = figure.latent_spaces

    def brief(*names: str, **keywords: object) -> figure.LatentSpaces:
        return original(*names, gamma_l=0.05, overrides=short, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr("aloof.cli.bench.figure1.latent_spaces", brief)
    out = tmp_path / "figure"
    result = bench("figure1", "--out", out, "--dataset", "tiny", "--setting", "ours")
    assert result.exit_code == 0, result.output
    assert "DP-VAE: AUROC" in result.stdout
    assert (out / "figure1.png").read_bytes().startswith(b"\x89PNG")
    record = json.loads((out / "figure1.json").read_text())
    assert record["config"]["DP-VAE"]["max_epochs"] == 4
    assert set(record["auroc"]) == {"VAE", "DP-VAE"}

    for option, value, hint in (
        ("--setting", "papr", "no setting 'papr'; did you mean 'paper'"),
        ("--setting", "default", "no setting 'default'"),
        ("--scaling", "unti", "no scaling 'unti'; did you mean 'unit'"),
        ("--dataset", "tini", "no data set 'tini'; did you mean 'tiny'"),
    ):
        wrong = bench("figure1", option, value)
        assert wrong.exit_code == 2
        assert hint in wrong.stderr


def test_other_commands_do_not_wait_for_it() -> None:
    script = """
import subprocess
import sys
sys.argv = ["aloof", "--help"]
from aloof.cli.main import main
try:
    main()
except SystemExit:
    print([name for name in sys.modules if name.startswith(("aloof.bench", "aloof.baselines"))])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
