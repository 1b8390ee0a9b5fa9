"""Files in S3, by a server on this machine that speaks its protocol: `make engines`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from aloof.cli.app import app
from aloof.io import remote

moto_server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")
pytest.importorskip("s3fs")
fsspec = pytest.importorskip("fsspec")


def aloof(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "payment": np.arange(n),
            "amount": rng.lognormal(3, 1, n),
            "country": rng.choice(["NO", "SE"], n),
        }
    )


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(params=["s3fs", "Arrow"])
def bucket(
    request: pytest.FixtureRequest, address: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """A bucket called "data", reached by s3fs, or by Arrow where that is not installed."""
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "eve",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    if request.param == "Arrow":

        def absent(url: str) -> None:
            raise ImportError("Install s3fs")

        monkeypatch.setattr(fsspec.core, "url_to_fs", absent)
    remote._reached.cache_clear()
    fsspec.filesystem("s3").clear_instance_cache()
    found = boto3.resource("s3").create_bucket(Bucket="data")
    yield found
    found.objects.delete()
    found.delete()
    remote._reached.cache_clear()


def put(bucket: Any, key: str, content: bytes) -> None:
    bucket.put_object(Key=key, Body=content)


def content(bucket: Any, key: str) -> bytes:
    return bytes(bucket.Object(key).get()["Body"].read())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("s3")
    pa_csv.write_csv(rows(300, 0), folder / "train.csv")
    small = ("--method", "vae", "--members", 1, "--epochs", 2, "--id", "payment")
    done = aloof("fit", folder / "train.csv", "--out", folder / "model", *small)
    assert done.exit_code == 0, done.output
    return folder / "model"


def test_fit_and_score_a_file(bucket: Any, model: Path, tmp_path: Path) -> None:
    put(bucket, "train.csv", (model.parent / "train.csv").read_bytes())
    small = ("--method", "vae", "--members", 1, "--epochs", 2, "--id", "payment")
    done = aloof("fit", "s3://data/train.csv", "--out", tmp_path / "same", *small)
    assert done.exit_code == 0, done.output
    tensors = [folder / "model.safetensors" for folder in (tmp_path / "same", model)]
    assert tensors[0].read_bytes() == tensors[1].read_bytes()

    put(bucket, "new.parquet", parquet(rows(200, 1)))
    (tmp_path / "new.parquet").write_bytes(parquet(rows(200, 1)))
    there = ("score", model, "s3://data/new.parquet", "--out", "s3://data/out/scores.csv")
    assert aloof(*there).exit_code == 0
    aloof("score", model, tmp_path / "new.parquet", "--out", tmp_path / "scores.csv")
    assert content(bucket, "out/scores.csv") == (tmp_path / "scores.csv").read_bytes()
    again = aloof(*there)
    assert again.exit_code == 2
    assert "s3://data/out/scores.csv already exists" in again.output
    assert aloof(*there, "--force").exit_code == 0


def test_a_folder_is_continued_where_it_stopped(
    bucket: Any, model: Path, tmp_path: Path
) -> None:
    here = tmp_path / "new"
    names = ("a.parquet", "sub/b c.parquet", "day=1/c.parquet")
    for seed, name in enumerate(names):
        put(bucket, f"new/{name}", parquet(rows(100, seed)))
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(parquet(rows(100, seed)))
    command = ("score", model, "s3://data/new/", "--out", "s3://data/scores/")
    done = aloof(*command)
    assert done.exit_code == 0, done.output
    assert aloof("score", model, here, "--out", f"{tmp_path}/scores/").exit_code == 0
    for name in names:
        assert content(bucket, f"scores/{name}") == (tmp_path / "scores" / name).read_bytes()
    assert "is not empty" in aloof(*command).output

    # One is new, one was changed, and of one the note was lost.
    put(bucket, "new/d.parquet", parquet(rows(70, 5)))
    put(bucket, "new/a.parquet", parquet(rows(50, 6)))
    bucket.Object("scores/_aloof/sub/b c.parquet.done.json").delete()
    before = bucket.Object("scores/day=1/c.parquet").last_modified
    done = aloof(*command, "--resume")
    assert done.exit_code == 0, done.output
    assert "Scored 320 rows of 4 files" in done.output
    assert "100 of them by an earlier run" in done.output
    assert pq.read_table(io.BytesIO(content(bucket, "scores/a.parquet"))).num_rows == 50
    assert bucket.Object("scores/day=1/c.parquet").last_modified == before
    done = aloof("score", model, "s3://data/new/*.parquet", "--out", "s3://data/one.parquet")
    assert "Scored 120 rows" in done.output


def test_what_is_not_there_is_named_and_nothing_is_made(
    bucket: Any, model: Path, tmp_path: Path
) -> None:
    put(bucket, "new.parquet", parquet(rows(20, 1)))
    out = tmp_path / "out.csv"
    for url in ("s3://data/other.csv", "s3://nowhere/new.csv"):
        done = aloof("score", model, url, "--out", out)
        assert (done.exit_code, f"There is no file {url}" in done.output) == (2, True)
    done = aloof("score", model, "s3://data/new.parquet", "--out", "s3://nowhere/out.csv")
    assert done.exit_code == 2
    assert "s3://nowhere/out.csv cannot be written" in done.output
    assert [each.name for each in boto3.resource("s3").buckets.all()] == ["data"]


def test_what_has_to_be_here_is_said(bucket: Any, model: Path, tmp_path: Path) -> None:
    put(bucket, "new.csv", b"payment,amount,country\n1,2,NO\n")
    here, there = tmp_path / "here.csv", "s3://data/new.csv"
    for command in (
        ("score", model, there, "--follow", "--out", here),
        ("score", model, model.parent / "train.csv", "--follow", "--out", there),
        ("score", model, here, "--follow", "--out", "-", "--state", there),
        ("score", "s3://data/model", there, "--out", here),
        ("fit", there, "--out", "s3://data/model"),
    ):
        done = aloof(*command)
        assert (done.exit_code, "is elsewhere" in done.output) == (2, True), done.output
    assert [each.key for each in bucket.objects.all()] == ["new.csv"]
