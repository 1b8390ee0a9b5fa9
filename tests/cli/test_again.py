"""How to make a model again: what ``info`` and a report say makes the same bytes."""

from __future__ import annotations

import html
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import parts
from typer.testing import CliRunner

import aloof
from aloof.cli.app import app
from aloof.models.table import TableModel

pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.AloofWarning")
SHORT = ["--members", "1", "--epochs", "2"]
FILES = ("manifest.json", "model.safetensors")


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return done.stdout


def run_lines(lines: list[str], model: str) -> None:
    """Run printed commands with another model folder; reports are left out."""
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "aloof"
        if words[0] != "report":
            run(*(model if word == "MODEL" else word for word in words))


def same_bytes(one: str, two: str) -> None:
    for name in FILES:
        assert (Path(one) / name).read_bytes() == (Path(two) / name).read_bytes(), name


def again(model: str) -> list[str]:
    return list(json.loads(run("info", model, "--json"))["again"])


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that has to be read with care, in the present folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["number;code;größe;note;verdict;extra;-odd"]
    for i in range(120):
        verdict = "bad" if i < 6 else "fine" if i % 3 else ""
        cells = [i, rng.integers(5), f"{rng.normal():.3f}", f"a note of {i % 7} words", verdict]
        lines.append(";".join(map(str, [*cells, rng.integers(9), f"{rng.normal():.3f}"])))
    Path("train data.txt").write_text("\n".join(lines), encoding="latin-1")


FIT = [
    *("fit", "train data.txt", "--format", "csv", "--delimiter", ";", "--encoding", "latin-1"),
    *("--label", "verdict", "--anomaly-value", "bad", "--id", "number", "--drop", "extra"),
    *("--drop=-odd", "--kind", "code=category", "--text", "note", "--embedder", "hashing"),
    *("--calibration", "0.3", "--max-rows", "100", "--method", "mml-dp", "--seed", "7"),
]


def test_the_command_of_info_makes_a_table_model_again(table: None) -> None:
    run(*FIT, *SHORT, "--out", "one")
    run("threshold", "one", "--budget", "3/100")
    lines = again("one")
    assert lines[0].endswith("--out MODEL")
    run_lines(lines, "two")
    same_bytes("one", "two")


def test_the_command_of_a_report_makes_a_table_model_again(table: None) -> None:
    run(*FIT, *SHORT, "--out", "one")
    rest = ["--format", "csv", "--delimiter", ";", "--encoding", "latin-1"]
    run("report", "one", "train data.txt", *rest, "--out", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    (commands,) = re.findall(r"<pre>(.*?)</pre>", page, re.DOTALL)
    lines = html.unescape(commands).splitlines()
    run_lines(lines, "two")
    same_bytes("one", "two")
    # The report itself, too: the line names how to read what it is about.
    words = shlex.split(lines[-1].replace("MODEL", "two").replace("report.html", "again.html"))
    run(*words[1:])
    assert Path("again.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize(
    "options",
    [
        ["--normal", "parts/good", "--anomaly", "parts/bad", "--size", "8", "--channels", "1"],
        ["parts", "--anomaly", "bad"],
        [
            *("parts", "--labels", "y.tab", "--id", "name", "--label", "state"),
            *("--anomaly-value", "broken", "--encoding", "latin-1", "--calibration", "0.4"),
        ],
    ],
    ids=["two folders", "one folder", "a table of labels"],
)
def test_the_command_of_info_makes_an_image_model_again(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    parts(Path("parts"), good=20, bad=3)
    lines = ["name\tstate\tother", "bad/000.png\tbroken\tü", "good/001.png\tfine\tü"]
    Path("y.tab").write_text("\n".join(lines), encoding="latin-1")
    run("fit", *options, *SHORT, "--seed", "3", "--out", "one")
    run_lines(again("one"), "two")
    same_bytes("one", "two")


def test_calibrations_are_made_again(table: None) -> None:
    lines = Path("train data.txt").read_text(encoding="latin-1").replace(";", ",")
    Path("train.csv").write_text(lines, encoding="utf-8")
    common = ["--label", "verdict", "--anomaly-value", "bad", "--drop", "note"]
    run("fit", "train.csv", *common, *SHORT, "--out", "one")
    before = (Path("one") / FILES[0]).read_bytes()
    run("calibrate", "one", "train.csv")
    assert (Path("one") / FILES[0]).read_bytes() != before
    assert any(line.startswith("aloof calibrate MODEL train.csv") for line in again("one"))
    run_lines(again("one"), "two")
    same_bytes("one", "two")


def test_what_a_command_cannot_say_is_said_in_python(table: None) -> None:
    """Parameters of the networks; run as it is printed, with the frame at hand."""
    rng = np.random.default_rng(0)
    frame = {"a": rng.normal(size=80), "b": rng.choice(["x", "y"], 80)}
    model = aloof.fit(
        frame, kinds={"b": "category"}, members=1, max_epochs=2, hidden=(4,), calibration=0.3
    )
    model.set_threshold(share=0.2)
    model.save("one")
    scope: dict[str, Any] = {"frame": frame}
    exec("\n".join(again("one")), scope)
    scope["model"].save("two")
    same_bytes("one", "two")


@pytest.mark.parametrize("kind", ["table", "images"])
def test_the_function_and_the_command_make_the_same_model(table: None, kind: str) -> None:
    if kind == "table":
        run(*FIT, *SHORT, "--out", "one")
        aloof.fit(
            "train data.txt",
            format="csv",
            delimiter=";",
            encoding="latin-1",
            label="verdict",
            anomaly_value="bad",
            id="number",
            drop=["extra", "-odd"],
            kinds={"code": "category"},
            text=["note"],
            embedder="hashing",
            calibration=0.3,
            max_rows=100,
            method="mml-dp",
            seed=7,
            members=1,
            max_epochs=2,
        ).save("two")
    else:
        parts(Path("parts"), good=20, bad=3)
        run("fit", "parts", "--normal", "good", "--anomaly", "bad", *SHORT, "--out", "one")
        options: dict[str, Any] = {"members": 1, "max_epochs": 2}
        aloof.fit("parts", normal="good", anomaly="bad", **options).save("two")
    same_bytes("one", "two")


def test_a_model_that_does_not_know_how_it_was_made(table: None) -> None:
    """Those of before are read, and say so."""
    model = aloof.fit({"a": np.arange(30.0)}, method="vae", members=1, max_epochs=1)
    training = {name: value for name, value in model.training.items() if name != "made"}
    replace(model, training=training).save("old")
    assert isinstance(aloof.load("old"), TableModel)
    assert "did not record how it was made" in run("info", "old")
    Path("new.csv").write_text("a\n1\n2\n3\n")
    run("report", "old", "new.csv", "--out", "r.html")
