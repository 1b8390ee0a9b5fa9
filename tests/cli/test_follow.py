from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from aloof.cli.app import app
from aloof.models.loading import load
from aloof.models.table import TableModel, fit, following

pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("follow")
    rng = np.random.default_rng(0)
    tiny = {"members": 1, "max_epochs": 2, "hidden": (8,), "latent_dim": 2}
    frame = {"n": np.arange(300), "a": rng.normal(size=300), "b": rng.normal(size=300)}
    fit(frame, method="vae", id="n", **tiny).save(folder / "model")
    return folder


def started(home: Path, *words: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from aloof.cli import main; main()", "score"]
    return subprocess.Popen(
        [*command, str(home / "model"), *map(str, words), "--follow"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def row(n: int) -> bytes:
    return f"{n},{n % 7},{n % 5}\n".encode()


def stopped() -> threading.Event:
    stop = threading.Event()
    stop.set()
    return stop


def wait_for(out: Path, n: int) -> None:
    deadline = time.monotonic() + 60
    while not out.exists() or out.read_bytes().count(b"\n") < n:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_kill_9_and_signals_lose_and_double_no_row(home: Path, tmp_path: Path) -> None:
    source, out, state = tmp_path / "in.csv", tmp_path / "out.jsonl", tmp_path / "state"
    options = (source, "--state", state, "--out", out)
    source.write_bytes(b"n,a,b\n")
    done = 0
    for number in (signal.SIGKILL, signal.SIGTERM):
        process = started(home, *options)
        try:
            with source.open("ab") as file:
                for n in range(done, done + 300):
                    file.write(row(n)[: 3 if n == done + 299 else None])
            wait_for(out, done + 299)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
        if number == signal.SIGKILL:
            assert process.returncode == -signal.SIGKILL
        else:
            assert process.returncode == 0, said
            assert f"Scored {done + 299:,} rows" in said.decode()
        done += 300
        with source.open("ab") as file:  # the rest of the line that was half there
            file.write(row(done - 1)[3:])
        if number == signal.SIGTERM:
            os.rename(source, tmp_path / "in.csv.1")
            source.write_bytes(b"n,a,b\n")
    model = load(home / "model")
    assert isinstance(model, TableModel)
    for _ in range(3):  # the old file, the new one, and nothing
        following.follow(model, source, out, state=state, stop=stopped())
    found = [json.loads(line) for line in out.read_text().splitlines()]
    assert [int(each["n"]) for each in found] == list(range(done))


def test_options_that_need_all_rows_are_refused(home: Path) -> None:
    words = ["score", home / "model", "in", "--out", "-", "--top", "3", "--follow"]
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 2
    assert "--top cannot be used with --follow." in done.stderr
