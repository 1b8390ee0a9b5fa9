"""Files elsewhere are read and written as those here are."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import aloof
from aloof.exceptions import TableError
from aloof.io.remote import RemotePath, path_of
from aloof.models.table import TableModel, fit, open_source

fsspec = pytest.importorskip("fsspec")
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")

TINY: dict[str, Any] = {"members": 1, "max_epochs": 2, "hidden": (4,), "latent_dim": 2}


def rows(n: int = 200, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"a": rng.normal(size=n), "b": rng.normal(size=n).round(3)})


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


@pytest.fixture(scope="module")
def model() -> TableModel:
    return fit(rows(), method="vae", **TINY)


def csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa_csv.write_csv(table, sink)
    return sink.getvalue()


def test_every_format(memory: Any, tmp_path: Path) -> None:
    table = rows(50)
    pq.write_table(table, tmp_path / "x.parquet")
    feather.write_feather(table, tmp_path / "x.arrow")
    contents = {
        "x.parquet": (tmp_path / "x.parquet").read_bytes(),
        "x.arrow": (tmp_path / "x.arrow").read_bytes(),
        "x.csv": csv(table),
        "x.csv.gz": gzip.compress(csv(table)),
    }
    for name, content in contents.items():
        memory.pipe(f"/here/{name}", content)
        found = open_source(f"memory://here/{name}")
        (tmp_path / name).write_bytes(content)
        assert found.read().equals(open_source(tmp_path / name).read()), name
        assert found.n_bytes == len(content)


def test_folders_and_globs(memory: Any) -> None:
    for name in ("f/1.csv", "f/sub/2.csv", "f/_notes.csv", "f/.hidden/3.csv"):
        memory.pipe(f"/{name}", csv(rows(10)))
    found = open_source("memory://f/")
    assert [path.name for path in found.paths] == ["1.csv", "2.csv"]
    assert found.read().num_rows == 20
    assert len(open_source("memory://f/*.csv").paths) == 2
    with pytest.raises(TableError, match=r"There is no file memory://f/4.csv"):
        open_source("memory://f/4.csv")
    with pytest.raises(TableError, match=r"Cannot reach nonsense://x.csv"):
        open_source("nonsense://x.csv")


def test_the_fingerprint_follows_the_file(memory: Any) -> None:
    memory.pipe("/x.csv", csv(rows(10)))
    before = open_source("memory://x.csv").fingerprint()
    assert open_source("memory://x.csv").fingerprint() == before
    memory.pipe("/x.csv", csv(rows(11)))
    assert open_source("memory://x.csv").fingerprint() != before


def test_from_there_to_there_is_what_it_is_here(
    memory: Any, model: TableModel, tmp_path: Path
) -> None:
    here = tmp_path / "new.csv"
    here.write_bytes(csv(rows(70, 1)))
    memory.pipe("/new.csv", here.read_bytes())
    for name in ("scores.csv", "scores.parquet"):
        model.score_file(here, tmp_path / name)
        model.score_file("memory://new.csv", f"memory://out/{name}")
        assert memory.cat(f"/out/{name}") == (tmp_path / name).read_bytes()
    with pytest.raises(TableError, match="already exists"):
        model.score_file("memory://new.csv", "memory://out/scores.csv")
    with pytest.raises(TableError, match="cannot continue later"):
        model.score_file("memory://new.csv", "memory://out/s.csv", resume=True)
    assert memory.find("/out") == ["/out/scores.csv", "/out/scores.parquet"]
    model.score_file(here.as_uri(), (tmp_path / "u.csv").as_uri())
    assert (tmp_path / "u.csv").read_bytes() == (tmp_path / "scores.csv").read_bytes()


def test_what_cannot_be_sent_leaves_nothing(
    memory: Any, model: TableModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(type(memory), "put_file", refuse)
    memory.pipe("/new.csv", csv(rows(20, 1)))
    with pytest.raises(TableError, match=r"memory://s\.csv cannot be written: not yours"):
        model.score_file("memory://new.csv", "memory://s.csv")
    assert not memory.exists("/s.csv")


def test_fit_learns_from_there(memory: Any) -> None:
    memory.pipe("/train.csv", csv(rows()))
    model = aloof.fit("memory://train.csv", method="vae", **TINY)
    assert isinstance(model, TableModel)
    assert model.training["source"] == "memory://train.csv"


def test_paths() -> None:
    path = path_of("s3://bucket/folder/x.csv.gz")
    assert isinstance(path, RemotePath)
    assert (path.name, path.suffixes) == ("x.csv.gz", [".csv", ".gz"])
    assert str(path.with_name("y")) == "s3://bucket/folder/y"
