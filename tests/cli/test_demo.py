"""The demonstration, shortened, as a user would type it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aloof.bench import demo as module
from aloof.cli.app import app


def test_demo_prints_a_table_and_draws_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two splits and short training; labels still help, and pictures are pictures."""
    short = {
        name: partial(method, n_members=2, max_epochs=90)
        for name, method in module.OURS.items()
    }
    monkeypatch.setattr(module, "OURS", short)
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "d"), "--splits", "2"])
    assert result.exit_code == 0, result.output
    for name in ("VAE", "MML-VAE", "DP-VAE", "MML-DP-VAE"):
        assert name in result.output
    gain = re.search(r"worth ([+-][\d.]+) AUROC points", result.output)
    assert gain is not None
    assert float(gain[1]) > 0.5
    for name in ("latent.png", "scores.png", "roc.png"):
        picture = (tmp_path / "d" / name).read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert len(picture) > 10_000


def test_demo_as_json_has_a_record_for_each_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = {
        name: partial(method, n_members=1, max_epochs=3) for name, method in module.OURS.items()
    }
    monkeypatch.setattr(module, "OURS", short)
    given = ["demo", "--out", str(tmp_path), "--splits", "2", "--json"]
    records = json.loads(CliRunner().invoke(app, given).stdout)
    assert [(r["method"], r["split"], r["n_labelled"]) for r in records] == [
        (name, split, 0 if name == "VAE" else 5)
        for name in ("VAE", "MML-VAE", "DP-VAE", "MML-DP-VAE")
        for split in (0, 1)
    ]
    assert all(0 < r["average_precision"] < 1 and r["device"] == "cpu" for r in records)


def test_help_and_version() -> None:
    runner = CliRunner()
    assert "aloof demo" in runner.invoke(app, ["--help"]).output
    assert "five labelled anomalies" in runner.invoke(app, ["demo", "--help"]).output
    assert re.fullmatch(r"aloof \d+\.\d+\.\d+\n", runner.invoke(app, ["--version"]).output)


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_missing_extra_is_named(missing: str) -> None:
    script = f"import sys; sys.modules[{missing!r}] = None; from aloof.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "pip install 'aloof[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_missing_matplotlib_is_named() -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from aloof.report import plot_roc\n"
        "plot_roc({})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'aloof[plots]'" in done.stderr
