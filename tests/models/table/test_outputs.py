from __future__ import annotations

import os
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from aloof.exceptions import TableError
from aloof.models.table import check_output, open_output, open_source, write_table

TABLE = pa.table({"id": ["a", 'b "x", y', None], "score": [1.5, 2.25, -3.0]})


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "parquet", "arrow", "feather"])
def test_what_is_written_is_read_again(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    with open_output(path, TABLE.schema) as output:
        assert not path.exists()
        for batch in TABLE.to_batches(max_chunksize=2):
            output.write(batch)
    read = open_source(path).read()
    assert read["id"].to_pylist() == TABLE["id"].to_pylist()
    assert [float(v) for v in read["score"].to_pylist()] == TABLE["score"].to_pylist()
    assert os.listdir(tmp_path) == [path.name]
    first = path.read_bytes()
    write_table(path, TABLE.slice(0, 3), force=True)
    if "csv" in ending or ending == "tsv":
        assert path.read_bytes() == first


def test_columns_are_put_in_the_order_of_the_schema(tmp_path: Path) -> None:
    with open_output(tmp_path / "a.csv", TABLE.schema) as output:
        output.write(TABLE.select(["score", "id"]))
    assert open_source(tmp_path / "a.csv").names == ("id", "score")


def test_an_existing_file_is_refused_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("precious")
    with pytest.raises(TableError, match=r"out\.csv already exists.*force"):
        write_table(path, TABLE)
    assert path.read_text() == "precious"
    write_table(path, TABLE, force=True)
    assert path.read_text().startswith('"id","score"')


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("out.xyz", "'out.xyz': unknown ending"),
        ("out", "'out': unknown ending"),
        ("nowhere/out.csv", "no folder"),
        ("folder.csv", r"is a folder. Name a file in it: .*folder\.csv/scores\.csv"),
        ("new/", "is a folder"),
    ],
)
def test_what_cannot_be_written_is_said_before(name: str, message: str, tmp_path) -> None:
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match=message):
        check_output(f"{tmp_path}/{name}", force=True)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow"])
def test_a_failure_leaves_nothing_and_the_old_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    path.write_text("old")
    rows = open_output(path, TABLE.schema, force=True)
    rows.__enter__().write(TABLE)
    with pytest.raises(KeyboardInterrupt):
        rows.gen.throw(KeyboardInterrupt())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == [path.name]


def test_an_error_of_the_caller_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), open_output(tmp_path / "o.csv", TABLE.schema):
        raise FileNotFoundError("something else")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow"])
def test_a_full_disk_is_said_and_leaves_nothing(ending: str, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=100_000)
    table = pa.table({"x": values})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))  # SIGXFSZ is ignored
    try:
        with pytest.raises(TableError, match=r"cannot be written: .*Free some space"):
            write_table(tmp_path / f"out.{ending}", table)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only on Linux")
def test_devices_are_written_directly() -> None:
    write_table("/dev/null", TABLE)
    assert not Path("/dev/null").is_file()
    with pytest.raises(TableError, match="No space left"):
        write_table("/dev/full", TABLE)
    assert not Path("/dev/full").is_file()


def test_standard_output_is_csv(capfdbinary) -> None:
    write_table("-", TABLE)
    assert capfdbinary.readouterr().out.splitlines()[:2] == [b'"id","score"', b'"a",1.5']
