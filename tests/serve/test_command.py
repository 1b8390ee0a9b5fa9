"""``aloof serve`` as people start and stop it."""

from __future__ import annotations

import http.client
import json
import logging
import re
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from serve_rows import in_types
from typer.testing import CliRunner

from aloof.cli.app import app

CODE = "from aloof.cli import command; command()"


def command(*options: object) -> list[str]:
    return [sys.executable, "-c", CODE, "serve", *map(str, options)]


@contextmanager
def started(*options: object, port: int = 0) -> Iterator[Any]:
    process = subprocess.Popen(
        command(*options, "--port", port),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"Listening on (https?)://[\w.]+:(\d+)", said)
        assert found, process.communicate()
        process.port = int(found[2])  # type: ignore[attr-defined]
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(port: int, path: str, rows: Any = None, context: Any = None, **headers: str) -> Any:
    kind = http.client.HTTPConnection if context is None else http.client.HTTPSConnection
    more = {} if context is None else {"context": context}
    connection = kind("127.0.0.1", port, timeout=60, **more)
    body = None if rows is None else json.dumps(rows)
    sent = {"Content-Type": "application/json", **headers}
    connection.request("GET" if rows is None else "POST", path, body, sent)
    answer = connection.getresponse()
    found = answer.read()
    connection.close()
    return answer.status, found


def test_accepted_requests_are_answered_before_the_end(
    folder: Path, made: Path, new: pa.Table
) -> None:
    """SIGHUP brings another model in, SIGTERM ends it: nothing that was accepted is lost."""
    records = in_types(new)
    with started(folder, "--watch", 0) as server:
        answers: list[int] = []
        resets: list[OSError] = []
        first = json.loads(ask(server.port, "/score", records[:1])[1])["results"]

        def work() -> None:
            while True:
                try:
                    answers.append(ask(server.port, "/score", records * 20)[0])
                except ConnectionRefusedError:
                    return  # the end; whoever had a connection must have had an answer
                except ConnectionResetError as error:
                    resets.append(error)  # the system had it, and the server not yet
                    return

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        shutil.rmtree(folder)
        shutil.copytree(made / "other", folder)
        server.send_signal(signal.SIGHUP)
        until = time.monotonic() + 30
        while json.loads(ask(server.port, "/score", records[:1])[1])["results"] == first:
            assert time.monotonic() < until
        server.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        _, log = server.communicate(timeout=60)
        assert len(answers) > 3
        assert set(answers) == {200}
        assert len(resets) <= 1  # all three are waiting for an answer when it ends
        lines = [json.loads(line) for line in log.splitlines()]
        events = [line["event"] for line in lines]
        assert events[:2] == ["model in use", "listening"]
        assert events.count("model in use") == 2
        assert events[-1] == "stopping"
        for record in records[:20]:
            assert record["id"] not in log
            assert str(record["amount"]) not in log


def test_a_killed_server_comes_back_with_the_same_answers(made: Path, new: pa.Table) -> None:
    """A client that asks again ends up with every answer, each of them right."""
    records = in_types(new)
    batches = [records[place : place + 5] for place in range(0, 100, 5)]
    answers: dict[int, Any] = {}
    refused = threading.Event()

    def work() -> None:
        for place, batch in enumerate(batches):
            until = time.monotonic() + 120
            while place not in answers:
                assert time.monotonic() < until
                try:
                    status, found = ask(port, "/score", batch)
                except (OSError, http.client.HTTPException):
                    refused.set()
                    time.sleep(0.05)
                    continue
                assert status == 200
                answers[place] = json.loads(found)["results"]

    with started(made / "model") as server:
        port = server.port
        expected = json.loads(ask(port, "/score", records[:100])[1])["results"]
        client = threading.Thread(target=work)
        client.start()
        while len(answers) < 3:
            time.sleep(0.01)
        server.send_signal(signal.SIGKILL)
        assert server.wait(60) == -signal.SIGKILL
        assert refused.wait(60)
        with started(made / "model", port=port):
            client.join(120)
    assert [row for place in range(20) for row in answers[place]] == expected


def test_tls_and_tokens(made: Path, new: pa.Table, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not installed")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        f"-addext subjectAltName=IP:127.0.0.1 -out {certificate} -keyout {key}".split(),
        check=True,
        capture_output=True,
    )
    tokens = tmp_path / "tokens.txt"
    tokens.write_text("eve 0123456789abcdef\n")
    options = ("--host", "0.0.0.0", "--tokens", tokens, "--certificate", certificate)
    with started(made / "model", *options, "--key", key) as server:
        trusting = ssl.create_default_context(cafile=certificate)
        rows = in_types(new)[:1]
        assert ask(server.port, "/score", rows, trusting)[0] == 401
        own = {"Authorization": "Bearer 0123456789abcdef"}
        assert ask(server.port, "/score", rows, trusting, **own)[0] == 200
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=60)
        assert "0123456789abcdef" not in log


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "needs tokens"),
        (["--key", "tls.key"], "--certificate and --key go together"),
        (["--certificate", "no.crt", "--key", "no.key"], "There is no file no.crt"),
        (["--tokens", "none.txt"], "none.txt cannot be read"),
        (["model"], "is not an aloof model"),
    ],
)
def test_what_cannot_be_started_says_why(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("aloof.serve")
    monkeypatch.setattr(logger, "propagate", logger.propagate)
    monkeypatch.setattr(logger, "handlers", [])
    done = CliRunner().invoke(app, ["serve", "nothing", *options])
    assert done.exit_code == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("aloof: ")
    assert words in said
