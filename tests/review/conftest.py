from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
import uvicorn
from servers import postgresql

import aloof as package
from aloof.feedback.store import AnswerStore
from aloof.review.access import Access
from aloof.review.server import make_app
from aloof.review.session import Review

__all__ = ["postgresql"]

SCRIPT = (
    "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">"
)


def rows(n: int, seed: int, prefix: str) -> pa.Table:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=n), rng.normal(size=n)
    c = a + b + 0.1 * rng.normal(size=n)
    c[: n // 20] += 4
    host = rng.choice(["web01", "web02", "backup01"], n)
    names = [f"{prefix}{k}" for k in range(n)]
    note = ["fine"] * n
    note[0], names[1] = SCRIPT, f"{prefix}1{SCRIPT}"
    return pa.table({"id": names, "a": a, "b": b, "c": c, "host": host, "note": note})


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("review")
    pa_csv.write_csv(rows(600, 0, "t"), folder / "train.csv")
    pa_csv.write_csv(rows(400, 1, "n"), folder / "new.csv")
    quick = {"method": "dp", "members": 2, "max_epochs": 10, "hidden": (16,), "latent_dim": 4}
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        model = package.fit(str(folder / "train.csv"), id="id", drop=("note",), **quick)
    model.save(folder / "model")
    return folder


@dataclass
class Running:
    url: str
    access: Access
    review: Review
    store: AnswerStore
    folder: Path

    @property
    def address(self) -> str:
        return f"{self.url}/?token={self.access.token}"


@contextmanager
def running(app: Any) -> Iterator[int]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def _of_its_own(url: str) -> AnswerStore:
    return AnswerStore(url, model=uuid.uuid4().hex)  # tests share the database


@pytest.fixture
def open_page(made: Path, tmp_path: Path) -> Callable[..., Any]:
    """Give what serves the page for a model of one's own, with other access if asked for."""
    shutil.copytree(made / "model", tmp_path / "model")

    @contextmanager
    def opened(
        access: Access | None = None, url: str | None = None, **options: Any
    ) -> Iterator[Running]:
        gate = Access() if access is None else access
        data = str(made / "new.csv")
        own = AnswerStore.of(tmp_path / "model") if url is None else _of_its_own(url)
        with own as store:
            review = Review(tmp_path / "model", data, store, size=60, device="cpu")
            with running(make_app(review, gate, **options)) as port:
                yield Running(f"http://127.0.0.1:{port}", gate, review, store, tmp_path)
            review.wait()

    return opened
