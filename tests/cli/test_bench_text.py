"""``aloof bench text`` as a user types it, on reviews that take no time."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aloof.cli.app import app

pytest.importorskip("sentencex")
pytest.importorskip("tokenizers")

EXPERIMENT = """
runs = 1
gamma_l = 0.1
methods = ["dp"]
epochs = 1
anomaly_epochs = 1
annealing_epochs = 1
batch_size = 32
hidden = 4
latent_dim = 2
"""
WORDS = ("film", "plot", "scene", "actor", "music", "story")


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", "text", *map(str, arguments)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    (tmp_path / "imdb").mkdir()
    (tmp_path / "glove").mkdir()
    with (tmp_path / "reviews.csv").open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        for row in range(120):
            good = row % 2 == 0
            text = f"The {' '.join(rng.choice(WORDS, 4))} is {'great' if good else 'awful'}."
            writer.writerow([text, "positive" if good else "negative"])
    lines = [f"{word} {' '.join(map(str, rng.normal(size=3).round(2)))}" for word in WORDS]
    (tmp_path / "vectors.txt").write_text("\n".join(lines), encoding="utf8")
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALOOF_DATA", raising=False)
    return tmp_path


FILES = ("--reviews", "reviews.csv", "--vectors", "vectors.txt", "--experiment", "small.toml")


def test_from_start_to_end_and_again(here: Path) -> None:
    arguments = (*FILES, "--features", "words", "--device", "cpu", "--out", "out")
    done = bench(*arguments)
    assert done.exit_code == 0, done.output
    table = (here / "out" / "table.md").read_text()
    assert "DP-VAE" in table
    assert "56.6 ± 5.0" in table
    assert {path.name for path in (here / "out").iterdir()} == {
        "manifest.json",
        "records.jsonl",
        "summary.csv",
        "table.csv",
        "table.md",
    }
    before = (here / "out" / "records.jsonl").read_bytes()
    again = bench(*arguments, "--json")
    assert (here / "out" / "records.jsonl").read_bytes() == before
    records = [json.loads(line) for line in again.stdout.splitlines()]
    assert [(r["direction"], r["method"]) for r in records] == [
        ("positive", "vae"),
        ("positive", "dp"),
        ("negative", "vae"),
        ("negative", "dp"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--features", "letters"), "no kind of features 'letters'"),
        (("--methods", "dpp"), "There is no method 'dpp'"),
        (("--reviews", "none.csv"), "Cannot read reviews from none.csv"),
    ],
)
def test_what_cannot_be_run_is_told(here: Path, arguments: tuple[str, ...], words: str) -> None:
    done = bench(*FILES, *arguments)
    assert done.exit_code == 2
    assert words in done.stderr


def test_where_the_data_is_must_be_said(here: Path) -> None:
    done = bench("--experiment", "small.toml")
    assert done.exit_code == 2
    assert "ALOOF_DATA" in done.stderr
