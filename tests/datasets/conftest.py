"""A tiny data set called "tiny", files of it, and a server on this machine to get them from."""

from __future__ import annotations

import hashlib
import io
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from aloof.datasets import DataFile, Dataset, PublicTable
from aloof.datasets.registry import DATASETS

ROWS = np.arange(36.0).reshape(12, 3) / 7
LABELS = np.array([0] * 9 + [1] * 3)


def mat(**variables: Any) -> bytes:
    """A MATLAB file, as bytes."""
    file = io.BytesIO()
    savemat(file, variables, do_compression=True)
    return file.getvalue()


@pytest.fixture
def content() -> bytes:
    return mat(X=ROWS, y=LABELS[:, None])


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes outside its own folder, or goes through a proxy."""
    monkeypatch.delenv("ALOOF_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch, content: bytes) -> Callable[..., Dataset]:
    """Make "tiny" a data set that can be had from the given addresses."""

    def tiny(*urls: str) -> Dataset:
        known = ("0" * 64, hashlib.sha256(content).hexdigest())
        entry = PublicTable(
            name="tiny",
            title="Tiny",
            home="https://example.org/tiny",
            files=(DataFile(path="odds/tiny.mat", sha256=known, urls=urls),),
            task="three rows are anomalies",
            n_rows=12,
            n_columns=3,
            n_anomalies=3,
        )
        monkeypatch.setitem(DATASETS, "tiny", entry)
        return entry

    return tiny


@pytest.fixture
def local(folders: Path, monkeypatch: pytest.MonkeyPatch, register: Callable[..., Dataset]):
    """Put bytes where ALOOF_DATA says the file of "tiny" is."""
    register("http://127.0.0.1:9/never-asked")
    monkeypatch.setenv("ALOOF_DATA", str(folders / "mine"))

    def put(content: bytes) -> Path:
        path = folders / "mine" / "odds" / "tiny.mat"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return put


class Server:
    """Answers with what `files` holds and remembers what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.promised = 0  # bytes that the header announces and that never come
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                body = outer.files.get(self.path)
                if body is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body) + outer.promised))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


@pytest.fixture
def closed_port() -> str:
    """An address of this machine where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
