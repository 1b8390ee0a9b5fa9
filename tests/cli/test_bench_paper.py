"""The queue as a user types it: a paper of three cells, on data that takes no time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

from aloof import VAE
from aloof.bench.paper.cells import PEER, Cell, Source
from aloof.cli.app import app
from aloof.datasets.registry import DATASETS

EXPERIMENT = """
title = "A small one"
datasets = ["tiny"]
methods = ["vae", "dp", "peer"]
gamma_l = 0.01
seeds = 2

[[variants]]
name = "short"
parameters = { n_members = 2, hidden = [8], latent_dim = 3, max_epochs = 6 }
"""


def cell(method: str, variant: str = "short", setting: str = "ours") -> Cell:
    settings = (setting,) if variant else ("paper", "ours", "")
    sources = tuple(
        Source(f"{method} ({s})", (("tiny", method, 0.01, 0.0, variant, s, "standard"),))
        for s in settings
    )
    label = setting if variant else PEER
    return Cell("odds", method, "tiny", "", label, 90.0, 1.0, "odds", sources, 1, 2, 2)


CELLS = (cell("vae"), cell("dp"), cell("peer", ""))


def bench(*arguments: object) -> Result:
    here = ("--jobs", 1) if "next" in arguments and "--help" not in arguments else ()
    return CliRunner().invoke(app, ["bench", *map(str, (*arguments, *here))])


@pytest.fixture(autouse=True)
def paper(
    tmp_path: Path, tiny: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A paper with few cells, an experiment for them, and no results."""
    tiny(200, 40)
    monkeypatch.setattr("aloof.bench.paper.status.paper_cells", lambda: CELLS)
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "odds-tiny.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def states() -> dict[str, str]:
    found = json.loads(bench("status", "--json").stdout)
    (table,) = found["tables"]
    return {c["row"]: c["state"] for c in table["each_cell"]}


def test_the_queue_fills_the_paper_and_then_says_so(paper: Path) -> None:
    assert states() == {"vae": "missing", "dp": "missing", "peer": "missing"}
    result = bench("next", "--minutes", 10, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "--experiment experiments/odds-tiny.toml" in result.stdout
    assert "Ran 6 cases. To see what is missing: aloof bench status" in result.stdout
    assert set(states().values()) == {"filled"}
    folder = paper / "results" / "odds-tiny"
    assert {path.name for path in folder.iterdir()} >= {"table.md", "table.csv", "plot.png"}
    assert "peer" in (folder / "table.md").read_text()
    found = json.loads(bench("status", "--json").stdout)
    assert (found["filled"], found["missing"], found["work"]) == (3, 0, [])
    again = bench("next", "--minutes", 10, "--device", "cpu")
    assert again.exit_code == 2
    assert again.stderr == ("aloof: Nothing is left to run. See aloof bench status.\n")


def test_the_commands_of_the_status_fill_the_cells_they_name(paper: Path) -> None:
    tasks = json.loads(bench("status", "--json", "--device", "cpu").stdout)["work"]
    assert [(task["cases"], task["how"]) for task in tasks] == [(4, "guessed"), (2, "guessed")]
    text = bench("status").stdout
    assert "0 of 3 cells are filled" in text
    for task in tasks:
        assert task["command"] in text
        _, _, *arguments = task["command"].split()
        result = bench(*arguments, "--device", "cpu", "--jobs", 1)
        assert result.exit_code == 0, result.output
    assert set(states().values()) == {"filled"}
    named = bench("status", "--missing").stdout
    assert "3 of 3 cells are filled" in named
    assert "odds: ODDS" not in named  # no table of tables


def test_two_machines_fill_the_paper_together(paper: Path) -> None:
    odds = ("odds", "--experiment", "experiments/odds-tiny.toml", "--device", "cpu")
    for machine, methods in (("results", "vae,dp"), ("elsewhere", "dp,peer")):
        out = f"{machine}/odds-tiny"
        result = bench(*odds, "--jobs", 1, "--methods", methods, "--out", out)
        assert result.exit_code == 0, result.output
    assert states() == {"vae": "filled", "dp": "filled", "peer": "missing"}
    result = bench("merge", "elsewhere")
    assert result.exit_code == 0, result.output
    assert set(states().values()) == {"filled"}
    again = bench("merge", "elsewhere").stdout
    assert again == "odds-tiny: added 0 records; 4 were here already.\n"
    missing = bench("merge", "experiments")
    assert missing.exit_code == 2
    assert "experiments has no results" in missing.stderr


def test_a_dry_run_runs_nothing(paper: Path) -> None:
    result = bench("next", "--minutes", 10, "--device", "cpu", "--dry-run", "--json")
    assert sum(json.loads(line)["cases"] for line in result.stdout.splitlines()) == 6
    text = bench("next", "--minutes", 10, "--device", "cpu", "--dry-run").stdout
    assert "2 cells, 4 cases, about" in text
    assert not (paper / "results").exists()


def test_only_some_kinds_or_tables(paper: Path) -> None:
    result = bench("next", "--minutes", 10, "--only", "images", "--device", "cpu")
    assert "Nothing is left to run" in result.stderr
    result = bench("next", "--minutes", 10, "--only", "imagse", "--device", "cpu")
    assert "no kind of study 'imagse'; did you mean 'images'" in result.stderr
    result = bench("next", "--minutes", 10, "--table", "image", "--device", "cpu")
    assert "no table 'image'; did you mean 'images'" in result.stderr


def test_a_limit_shorter_than_one_case(paper: Path) -> None:
    result = bench("next", "--minutes", 0.1, "--device", "cpu")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("aloof: Nothing fits into 0.1 minutes. Ask for ")
    least = re.search(r"Ask for ([\d.]+) or more: .*, 1 case, takes about", line)
    assert least
    enough = bench("next", "--minutes", least[1], "--device", "cpu", "--dry-run")
    assert enough.exit_code == 0, enough.stderr
    assert line.endswith("about 0.1 minutes (guessed); the rest is a margin.")
    assert not (paper / "results").exists()
    result = bench("next", "--minutes", 0, "--device", "cpu")
    assert "--minutes must be more than 0" in result.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(paper: Path) -> None:
    result = bench("next", "--minutes", 10, "--device", "cuda")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "This machine has no device" in line
    assert not (paper / "results").exists()
    found = json.loads(bench("status", "--device", "cuda", "--json").stdout)
    assert found["device"] == "gpu"  # estimates need none
    assert "--device must be auto, cpu or cuda" in bench("status", "--device", "tpu").stderr


def test_the_end_of_time_stops_what_is_running_and_loses_nothing(
    paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bench("next", "--minutes", 10, "--device", "cpu").exit_code == 0
    path = paper / "results" / "odds-tiny" / "records.jsonl"
    before = path.read_bytes()
    long = EXPERIMENT.replace("max_epochs = 6", "max_epochs = 1000000")
    (paper / "experiments" / "odds-tiny.toml").write_text(long)
    monkeypatch.setattr("aloof.bench.paper.speeds._START", 0.0)
    monkeypatch.setattr("aloof.bench.paper.speeds.count_epochs", lambda _: None)
    started = time.monotonic()
    result = bench("next", "--minutes", 0.15, "--device", "cpu", "--json")
    assert time.monotonic() - started < 60
    assert result.exit_code == 0, result.output
    outcomes = [json.loads(line) for line in result.stdout.splitlines()]
    assert sum(outcome["run"] for outcome in outcomes) == 0
    assert outcomes[0]["left"] == 4  # a stack of both methods
    assert path.read_bytes() == before


def test_a_system_that_fails_is_tried_once(
    paper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = partial(VAE, n_members=0)
    monkeypatch.setattr("aloof.baselines.BASELINES", {"peer": broken})
    result = bench("next", "--minutes", 10, "--device", "cpu")
    assert result.exit_code == 1
    assert "2 failed. The first error: ValueError: The 'n_members'" in result.stderr
    assert states() == {"vae": "filled", "dp": "filled", "peer": "missing"}


def test_an_experiment_that_cannot_run_stops_no_other(paper: Path) -> None:
    other = EXPERIMENT.replace('["vae", "dp", "peer"]', '"peer"')
    (paper / "experiments" / "odds-tiny.toml").write_text(
        EXPERIMENT.replace('["vae", "dp", "peer"]', '["vae", "dp"]')
    )
    (paper / "experiments" / "odds-zero.toml").write_text(other)
    (paper / "results").mkdir()
    (paper / "results" / "odds-zero").write_text("in the way")
    result = bench("next", "--minutes", 10, "--device", "cpu")
    assert result.exit_code == 1
    assert "odds-zero did not run: ExperimentError: " in result.stderr
    assert "Ran 4 cases, 2 of the planned ones left." in result.stdout
    assert states() == {"vae": "filled", "dp": "filled", "peer": "missing"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"revision": 99}, "holds 1 record from a newer version of aloof. Update aloof."),
        ({"seed": ...}, "is not a record of this experiment: it lacks seed."),
    ],
)
def test_records_of_another_version_stop_the_queue_and_the_page(
    paper: Path, change: dict[str, Any], message: str
) -> None:
    assert bench("next", "--minutes", 10, "--device", "cpu").exit_code == 0
    path = paper / "results" / "odds-tiny" / "records.jsonl"
    first, *rest = path.read_text().splitlines()
    changed = {k: v for k, v in {**json.loads(first), **change}.items() if v is not ...}
    path.write_text("\n".join([json.dumps(changed), *rest]) + "\n")
    before = path.read_bytes()
    result = bench("next", "--minutes", 10, "--device", "cpu")
    assert result.exit_code == 2
    assert message in result.stderr
    result = bench("page")
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (paper / "docs").exists()
    assert path.read_bytes() == before
    result = bench("status")  # the rest can still be seen
    assert result.exit_code == 0
    assert message in result.stderr


def test_half_a_record_is_said_and_made_again(paper: Path) -> None:
    assert bench("next", "--minutes", 10, "--device", "cpu").exit_code == 0
    path = paper / "results" / "odds-tiny" / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-200])
    result = bench("next", "--minutes", 10, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "is cut off" in result.stderr
    assert "Ran 1 case." in result.stdout
    assert len(path.read_bytes().splitlines()) == 6
    assert set(states().values()) == {"filled"}


def test_folders_that_are_not_there(paper: Path) -> None:
    assert "There is no folder results, so every cell is missing." in bench("status").stdout
    result = bench("page")
    assert result.exit_code == 2
    assert "results holds no records of the paper's tables" in result.stderr
    result = bench("status", "--experiments", "nowhere")
    assert result.exit_code == 2
    assert "There are no experiments in nowhere." in result.stderr


def test_the_page_is_made_from_records(paper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench("next", "--minutes", 10, "--device", "cpu").exit_code == 0
    worse = replace(CELLS[0], mean=10.0, table="odds-complete")
    monkeypatch.setattr("aloof.bench.paper.status.paper_cells", lambda: (*CELLS, worse))
    result = bench("page", "--out", "docs/page.md")
    assert result.exit_code == 0, result.output
    assert result.stdout == "docs/page.md: 4 of 4 cells are filled.\n"
    page = (paper / "docs" / "page.md").read_text()
    records = (paper / "results" / "odds-tiny" / "records.jsonl").read_text().splitlines()
    aurocs = [100 * r["auroc"] for r in map(json.loads, records) if r["method"] == "vae"]
    shown = f"{np.mean(aurocs):.1f} ± {np.std(aurocs, ddof=1):.1f} [2]"
    error = (np.var(aurocs, ddof=1) / 2 + 1.0**2 / 2) ** 0.5
    assert f"| vae | tiny | 90.0 ± 1.0 | {shown} | " in page
    assert f"{np.mean(aurocs) - 90:+.1f} ± {error:.1f} |" in page
    assert f"| vae | tiny | 10.0 ± 1.0 | {shown} | " in page  # in the complete table


LITTLE = """
import sys
from importlib.abc import MetaPathFinder

MISSING = ("pyarrow", "matplotlib", "pandas", "jinja2", "safetensors", "PIL", "pyod", "xgboost")

class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from aloof.bench.paper import status
from aloof.bench.paper.cells import Cell, Source
from aloof.cli.app import app
from aloof.datasets import DataFile, PublicTable
from aloof.datasets.registry import register

register(ENTRY)
status.paper_cells = lambda: (CELL,)
app(["bench", "next", "--minutes", "10", "--device", "cpu", "--jobs", "1"])
"""


def test_it_runs_where_little_is_installed(paper: Path) -> None:
    """On a machine that trains there are torch, scikit-learn and the packages of the CLI."""
    path = paper / "experiments" / "odds-tiny.toml"
    path.write_text(EXPERIMENT.replace('["vae", "dp", "peer"]', '"vae"'))
    code = LITTLE.replace("ENTRY", repr(DATASETS["tiny"])).replace("CELL", repr(CELLS[0]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Ran 2 cases." in done.stdout
    assert "Could not draw the pictures: Drawing pictures needs matplotlib" in done.stderr
    assert (paper / "results" / "odds-tiny" / "table.md").is_file()


@pytest.mark.parametrize("command", ["status", "next", "merge", "page"])
def test_help_teaches(command: str) -> None:
    result = bench(command, "--help")
    assert result.exit_code == 0
    assert "--results" in result.stdout
