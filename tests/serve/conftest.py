from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
import uvicorn
from serve_rows import rows

import aloof as package
from aloof.models.table import TableModel
from aloof.serve.access import Access
from aloof.serve.app import Server
from aloof.serve.limits import Limits
from aloof.serve.running import uvicorn_options
from aloof.serve.slots import Slots
from aloof.serve.warned import keeping_quiet

QUICK = {"members": 2, "max_epochs": 4, "hidden": (16,), "latent_dim": 4}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models of a table, and rows that they do not know."""
    folder = tmp_path_factory.mktemp("serve")
    pa_csv.write_csv(rows(500, 0, strange=0), folder / "train.csv")
    pa_csv.write_csv(rows(150, 1), folder / "new.csv")
    for seed, name in ((0, "model"), (1, "other")):
        with pytest.warns(UserWarning, match="no labelled anomalies"):
            model = package.fit(
                folder / "train.csv",
                method="dp",
                id="id",
                kinds={"code": "category"},
                seed=seed,
                **QUICK,
            )
        model.save(folder / name)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A model that a test may change."""
    shutil.copytree(made / "model", tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def model(made: Path) -> TableModel:
    return TableModel.load(made / "model", device="cpu")


@pytest.fixture
def new(made: Path) -> pa.Table:
    return rows(150, 1)


class Client:
    """Asks, over one connection."""

    def __init__(self, port: int, server: Server) -> None:
        self.port, self.server = port, server
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.last: Any = None

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "", **headers: str
    ) -> Any:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if kind:
            sent["Content-Type"] = kind
        self._connection.request(method, path, body, sent)
        self.last = self._connection.getresponse()
        content = self.last.read()
        found = self.last.getheader("Content-Type") or ""
        return self.last.status, json.loads(content) if "json" in found else content

    def close(self) -> None:
        self._connection.close()

    def get(self, path: str, **headers: str) -> Any:
        return self.ask("GET", path, **headers)

    def score(self, rows: Any, path: str = "/score", **headers: str) -> Any:
        body = rows if isinstance(rows, bytes) else json.dumps(rows)
        return self.ask("POST", path, body, "application/json", **headers)

    def metric(self, start: str) -> float:
        _, text = self.get("/metrics")
        found = [line for line in text.decode().splitlines() if line.startswith(start)]
        return float(found[0].split()[-1]) if found else 0.0


@pytest.fixture
def serving() -> Callable[..., Any]:
    """Give what runs a server for some models, in a thread."""

    @contextmanager
    def run(
        *models: str | Path,
        tokens: Path | None = None,
        limits: Limits | None = None,
        watch_seconds: float = 0,
        **options: Any,
    ) -> Iterator[Client]:
        bounds = limits or Limits()
        slots = Slots([str(model) for model in models], bounds, "cpu")
        slots.load()
        access = Access("127.0.0.1", tokens)
        server = Server(slots, access, bounds, watch_seconds=watch_seconds, **options)
        config = uvicorn.Config(
            server,
            port=0,
            access_log=False,
            server_header=False,
            lifespan="on",
            **uvicorn_options(server),
        )
        runner = uvicorn.Server(config)
        with keeping_quiet():
            thread = threading.Thread(target=runner.run)
            thread.start()
            while not runner.started:
                assert thread.is_alive()
            try:
                port = runner.servers[0].sockets[0].getsockname()[1]
                client = Client(port, server)
                yield client
            finally:
                client.close()
                runner.should_exit = True
                thread.join()

    return run
