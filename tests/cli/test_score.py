from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from aloof.cli.app import app
from aloof.models.table import streaming as module

N, PART = 3000, 100

# As the command itself, with parts so small that there are many of them.
SCRIPT = f"""
import aloof.models.table.streaming
from aloof.cli import main
aloof.models.table.streaming._ROWS = {PART}
main()
"""


def aloof(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    labels = np.zeros(n, int)
    labels[::50] = 1
    amount[::50] *= 1e4
    return pa.table(
        {
            "payment": np.arange(n),
            "amount": amount,
            "age": pa.array(rng.integers(18, 90, n), mask=rng.random(n) < 0.1),
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
            "fraud": labels,
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and rows to score."""
    folder = tmp_path_factory.mktemp("score")
    pa_csv.write_csv(rows(800, 0), folder / "train.csv")
    pq.write_table(rows(N, 1), folder / "new.parquet", row_group_size=500)
    pa_csv.write_csv(rows(300, 2), folder / "new.csv")
    done = aloof(*FIT, "--out", folder / "model", folder / "train.csv")
    assert done.exit_code == 0, done.output
    return folder


FIT = ("fit", "--label", "fraud", "--id", "payment", "--method", "dp", "--members", 2)
FIT = (*FIT, "--epochs", 30)


@pytest.fixture
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", PART)


def killed(arguments: list[object], is_time: Callable[[], bool], script: str = SCRIPT) -> None:
    """Start a command, and kill it when it is time."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        while not is_time():
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_scores_say_who_how_much_and_why(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.parquet"
    done = aloof("score", home / "model", home / "new.parquet", "--out", out)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Scored 3,000 rows in ")
    assert "1 % of normal rows" in done.stdout
    assert done.stderr == ""
    scores = pq.read_table(out)
    assert scores.column_names == [
        "payment",
        "anomaly_score",
        "p_value",
        "is_anomaly",
        "reason_1",
        "reason_2",
        "reason_3",
    ]
    assert scores["payment"].to_pylist() == list(range(N))
    flagged = scores["is_anomaly"].to_numpy()
    labels = rows(N, 1)["fraud"].to_numpy() == 1
    assert (flagged & labels).sum() > 0.9 * labels.sum()
    reasons = np.array(scores["reason_1"].to_pylist(), dtype=object)
    assert all(reason is None for reason in reasons[~flagged])
    assert sum(reason.startswith("`amount`") for reason in reasons[flagged & labels]) > 50


def test_json_for_programs(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    options = ("--json", "--reasons", 0, "--keep", "city")
    done = aloof("score", home / "model", home / "new.csv", "--out", out, *options)
    found = json.loads(done.stdout)
    assert (found["n_rows"], found["n_resumed"], found["out"]) == (300, 0, str(out))
    assert found["threshold"] == {"share": 0.01}
    first, *lines = out.read_text().splitlines()
    assert first == '"payment","city","anomaly_score","p_value","is_anomaly"'
    assert len(lines) == 300
    assert sum(line.endswith(",true") for line in lines) == found["n_anomalies"] > 0


def test_a_pipe(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "scores.csv"
    aloof("score", home / "model", home / "new.csv", "--out", out)
    command = [sys.executable, "-m", "aloof", "score", str(home / "model"), "-", "--out", "-"]
    command[1:3] = ["-c", SCRIPT]
    done = subprocess.run(
        command, input=(home / "new.csv").read_bytes(), capture_output=True, check=True
    )
    assert done.stdout == out.read_bytes()
    assert done.stderr == b""


@pytest.mark.usefixtures("_small_parts")
def test_a_run_killed_with_force_continues_to_the_same_bytes(
    home: Path, tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole.csv", tmp_path / "scores.csv"
    score = ("score", home / "model", home / "new.parquet", "--out")
    assert aloof(*score, whole).exit_code == 0
    parts = tmp_path / ".scores.csv.parts"
    killed([*score, out], lambda: len(list(parts.glob("*.arrow"))) >= 3)
    assert not out.exists()
    again = aloof(*score, out)
    assert again.exit_code == 2
    assert "unfinished" in again.stderr
    done = aloof(*score, out, "--resume", "--json")
    assert done.exit_code == 0, done.output
    assert 3 * PART <= json.loads(done.stdout)["n_resumed"] < N
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["scores.csv", "whole.csv"]


def test_a_fit_killed_with_force_continues_to_the_same_bytes(
    home: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / ".model.checkpoint.0"
    command = [*FIT, "--out", tmp_path / "model", home / "train.csv"]
    killed(command, checkpoint.exists)
    assert not (tmp_path / "model").exists()
    assert checkpoint.exists()
    done = aloof(*command)
    assert done.exit_code == 0, done.output
    assert sorted(os.listdir(tmp_path)) == ["model"]
    for name in ("manifest.json", "model.safetensors"):
        whole, continued = ((folder / "model" / name) for folder in (home, tmp_path))
        assert continued.read_bytes() == whole.read_bytes()


@pytest.mark.usefixtures("_small_parts")
def test_interrupted_by_the_user(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = module.Parts.add

    def add_or_stop(self: module.Parts, table: pa.Table) -> None:
        if self.n_rows:
            raise KeyboardInterrupt
        add(self, table)

    score = ("score", home / "model", home / "new.csv", "--out", tmp_path / "scores.csv")
    with monkeypatch.context() as patch:
        patch.setattr(module.Parts, "add", add_or_stop)
        stopped = aloof(*score)
    assert stopped.exit_code == 130
    assert "--resume to continue" in stopped.stderr
    assert json.loads(aloof(*score, "--resume", "--json").stdout)["n_resumed"] == PART


def corrupt(path: Path) -> None:
    with pq.ParquetFile(path) as file:
        chunk = file.metadata.row_group(3).column(1)
    content = bytearray(path.read_bytes())
    start, size = chunk.data_page_offset, chunk.total_compressed_size
    content[start : start + size] = b"\xff" * size
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing", "new.csv", "--out", "o.csv"), "an aloof model: there is no such folder"),
        (("train.csv", "new.csv", "--out", "o.csv"), "train.csv is not an aloof model: it has"),
        (("model", "gone.csv", "--out", "o.csv"), "There is no file gone.csv"),
        (("model", "empty.csv", "--out", "o.csv"), "empty.csv is empty"),
        (("model", "header.csv", "--out", "o.csv"), "but no rows"),
        (("model", "bare.csv", "--out", "o.csv"), "no line of column names"),
        (("model", "short.csv", "--out", "o.csv"), "no column 'age'"),
        (("model", "corrupt.parquet", "--out", "o.csv"), "row group 4 of 6"),
        (("model", "new.csv", "--out", "there.csv"), "there.csv already exists"),
        (("model", "new.csv", "--out", "o.xyz"), "'o.xyz': unknown ending"),
        (("model", "new.csv", "--out", "no/o.csv"), "no folder no"),
        (("model", "new.csv", "--out", "-", "--json"), "cannot both go"),
        (("model", "new.csv", "--out", "-", "--resume"), "cannot continue"),
        (("model", "new.csv", "--out", "o.csv", "--keep", "citty"), "did you mean 'city'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: tuple[str, ...],
    words: str,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("model", "new.csv", "train.csv"):
        (tmp_path / name).symlink_to(home / name)
    (tmp_path / "corrupt.parquet").write_bytes((home / "new.parquet").read_bytes())
    corrupt(tmp_path / "corrupt.parquet")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("payment,amount,age,city\n")
    (tmp_path / "bare.csv").write_text("1;2.5;3;Oslo\n2;3.5;4;Oslo\n")
    (tmp_path / "short.csv").write_text("payment,amount,city\n1,2,Oslo\n")
    (tmp_path / "there.csv").write_text("precious")
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    done = aloof("score", *arguments)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("aloof: ")
    assert done.stdout == ""
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "there.csv").read_text() == "precious"


def test_help_teaches_with_an_example() -> None:
    shown = aloof("score", "--help")
    assert shown.exit_code == 0
    assert "aloof score model new.parquet --out scores.csv" in " ".join(shown.output.split())
