"""The guide to the server says what is so."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import aloof as package
from aloof.serve.limits import Limits

GUIDE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


def test_what_is_sent_by_curl_is_answered(
    tmp_path: Path, serving: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pa.table(
        {"amount": rng.normal(12, 3, 600), "city": rng.choice(["Oslo", "Bern"], 600)}
    )
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        model = package.fit(table, members=1, max_epochs=2, hidden=(8,), latent_dim=2)
    model.save("model")
    pa_csv.write_csv(table.slice(0, 20), "new.csv")
    Path("new.csv.gz").write_bytes(gzip.compress(Path("new.csv").read_bytes()))
    blocks = re.findall(r"<!-- curl: tested -->\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    lines = [line for block in blocks for line in block.strip().splitlines()]
    assert len(lines) == 3
    with serving("model") as client:
        for line in lines:
            words = shlex.split(line.replace("localhost:8000", f"127.0.0.1:{client.port}"))
            done = subprocess.run([*words, "-sS", "--fail-with-body"], capture_output=True)
            assert done.returncode == 0, done.stdout + done.stderr
            assert b'"anomaly_score"' in done.stdout


def test_limits_are_those_of_the_code() -> None:
    limits = Limits()
    for number in (
        f"{limits.body // 2**20} MiB (`--max-body`)",
        f"{limits.unpacked // 2**20} MiB",
        f"{limits.memory // 2**20} MiB",
        f"{limits.rows:,} (`--max-rows`)",
        f"{limits.requests}; {limits.queue:,} (`--max-queue`)",
        f"{limits.columns:,}; {limits.text:,}; {limits.pixels // 10**6} million",
        f"{limits.header_seconds:g} s; {limits.body_seconds:g} s",
        f"| {limits.send_seconds:g} s |",
        f"| {limits.connections:,} |",
    ):
        assert number in GUIDE, number


def test_all_figures_for_prometheus_that_it_names_exist(
    made: Path, serving: Callable[..., Any]
) -> None:
    named = set(re.findall(r"\baloof_\w+", GUIDE))
    assert len(named) >= 5
    with serving(made / "model") as client:
        client.server.keeper._look_for_drift()
        text = client.get("/metrics")[1].decode()
        for name in named:
            family = name.removesuffix("_total")
            assert re.search(rf"^# TYPE {family}(_total)? ", text, re.MULTILINE), name


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    (unit,) = re.findall(r"```ini\n(.*?)```", GUIDE, re.DOTALL)
    path = tmp_path / "aloof.service"
    path.write_text(unit.replace("/opt/aloof/bin/aloof", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, str(path) in done.stderr) == (0, False), done.stderr


def test_the_command_of_the_container_and_the_unit_has_these_options() -> None:
    from typer.testing import CliRunner

    from aloof.cli.app import app

    told = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    (entry,) = re.findall(r"ENTRYPOINT (.*)", GUIDE)
    (start,) = re.findall(r"ExecStart=(.*)", GUIDE)
    options = {*re.findall(r"--[a-z-]+", entry + start)}
    assert {option for option in options if option not in told} == set()
    assert options >= {"--host", "--tokens"}
