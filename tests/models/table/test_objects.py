"""JSON as a table: lines of objects, arrays of objects, and what is neither."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aloof
from aloof.exceptions import TableError
from aloof.models.table import open_source
from aloof.models.table.objects import _CHUNK

SMALL: dict[str, Any] = {"members": 1, "max_epochs": 2, "hidden": (4,), "latent_dim": 2}
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def written(path: Path, *lines: object) -> Path:
    text = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(text) + "\n", encoding="utf8")
    return path


def payments(n: int, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "payment": i,
            "amount": round(float(rng.lognormal(3, 1)), 3),
            "card": {"country": str(rng.choice(["NO", "SE"])), "age": int(rng.integers(1, 9))},
            "online": bool(rng.random() < 0.5),
        }
        for i in range(n)
    ]


def test_lines_arrays_and_packed_files_are_the_same_table(tmp_path: Path) -> None:
    rows = payments(60)
    lines = "".join(f"{json.dumps(row)}\n\n" for row in rows)
    contents = {
        "a.jsonl": lines.encode(),
        "a.ndjson": b"\xef\xbb\xbf" + lines.encode(),
        "a.jsonl.gz": gzip.compress(lines.encode()),
        "wide.jsonl": lines.encode("utf-16"),
        "lines.json": lines.encode(),
        "array.json": json.dumps(rows).encode(),
        "pretty.json": json.dumps(rows, indent=4).encode(),
        "pretty.json.gz": gzip.compress(json.dumps(rows, indent=4).encode()),
    }
    expected = pa.table(
        {
            "payment": [row["payment"] for row in rows],
            "amount": [row["amount"] for row in rows],
            "card.country": [row["card"]["country"] for row in rows],
            "card.age": [row["card"]["age"] for row in rows],
            "online": [row["online"] for row in rows],
        }
    )
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert open_source(tmp_path / name).read().equals(expected), name


def test_fit_and_score_are_those_of_the_same_rows_in_parquet(tmp_path: Path) -> None:
    rows = payments(300)
    path = written(tmp_path / "train.jsonl", *rows)
    table = open_source(path).read()
    pq.write_table(table, tmp_path / "train.parquet")
    models = [
        aloof.fit(tmp_path / name, id="payment", method="vae", seed=0, **SMALL)
        for name in ("train.jsonl", "train.parquet")
    ]
    scores = [model.anomaly_score(path) for model in models]
    np.testing.assert_array_equal(*scores)
    done = models[0].score_file(path, tmp_path / "scores.jsonl.gz", keep=["card.country"])
    assert done.n_rows == 300
    lines = gzip.decompress((tmp_path / "scores.jsonl.gz").read_bytes()).splitlines()
    found = [json.loads(line) for line in lines]
    assert [row["payment"] for row in found] == list(range(300))
    assert [row["card.country"] for row in found] == [row["card"]["country"] for row in rows]
    np.testing.assert_allclose([row["anomaly_score"] for row in found], scores[0])


def test_a_folder_of_lines_becomes_a_folder_of_lines(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    model = aloof.fit(
        written(tmp_path / "t.jsonl", *payments(200)), id="payment", method="vae", **SMALL
    )
    for seed, name in enumerate(("a.jsonl", "b.jsonl")):
        written(tmp_path / "new" / name, *payments(30, seed))
    (tmp_path / "new" / "notes.json").write_text('{"made": "by hand"}')  # no table
    assert model.score_folder(tmp_path / "new", tmp_path / "out").n_rows == 60
    assert len((tmp_path / "out" / "b.jsonl").read_text().splitlines()) == 30
    with pytest.raises(TableError, match=r"Cannot write 'x\.json': unknown ending"):
        model.score_file(tmp_path / "t.jsonl", tmp_path / "x.json")


def test_a_column_has_one_type_wherever_another_comes(tmp_path: Path) -> None:
    """Also where the value of another type is the last one, in another batch."""
    n = 1000
    rows: list[dict[str, Any]] = [
        {"x": i, "whole": i, "flag": True, "gap": None} for i in range(n)
    ]
    rows[-1] |= {"x": "n/a", "whole": 0.5, "flag": "maybe", "late": 1}
    source = open_source(written(tmp_path / "a.jsonl", *rows))
    types = {tuple(map(str, batch.schema.types)) for batch in source.batches(rows=100)}
    assert types == {("string", "double", "string", "string", "int64")}
    table = source.read()
    assert table["x"].to_pylist()[:2] == ["0", "1"]
    assert table["flag"].to_pylist()[-2:] == ["true", "maybe"]
    assert table["late"].null_count == n - 1


def test_numbers_beside_text_keep_their_decimal_point(tmp_path: Path) -> None:
    """1.234 is no thousand, whatever the commas in texts of the column mean."""
    values = [1.234, 2.345, "1,5", 3.456] * 20
    path = written(tmp_path / "a.jsonl", *({"x": v, "k": i % 3} for i, v in enumerate(values)))
    model = aloof.fit(path, method="vae", **SMALL)
    read = model.encoder.read(model.read(path).read())["x"]
    np.testing.assert_allclose(read[:4], [1.234, 2.345, 1.5, 3.456])


def test_integers_beyond_int64_are_exact_text_and_words_python_writes_are_read(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path / "a.jsonl",
        '{"id": 123456789012345678901234567890, "x": NaN}',
        '{"id": 2, "x": Infinity}',
        '{"id": -9223372036854775808, "x": 1e3}',
    )
    table = open_source(path).read()
    assert table["id"].to_pylist() == [
        "123456789012345678901234567890",
        "2",
        "-9223372036854775808",
    ]
    assert table["x"].to_pylist() == [None, float("inf"), 1000.0]


def test_lists_are_refused_only_where_they_are_needed(tmp_path: Path) -> None:
    rows = [{**row, "tags": ["a"] if row["payment"] == 7 else None} for row in payments(200)]
    path = written(tmp_path / "a.jsonl", *rows)
    with pytest.raises(TableError, match=r"'tags' holds a list in line 8.*--drop tags"):
        aloof.fit(path, id="payment", method="vae", **SMALL)
    model = aloof.fit(path, id="payment", drop=["tags"], method="vae", **SMALL)
    assert len(model.anomaly_score(path)) == 200


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            '{"a": 1}\n{"a": 2',
            r"line 2: not JSON: Expecting ',' delimiter.*each whole in a line",
        ),
        ('{"a": 1}\n{"a": 2}}\n', "line 2: not JSON: Extra data, at '}'"),
        ('{\n  "a": 1\n}\n', "line 1: not JSON.*each whole in a line, or all in one array"),
        ('{"a": 1}\n[1, 2]\n', r"line 2: \[1, 2\] is not an object such as"),
        ('[{"a": 1},\n 3]', "line 2: 3 is not an object"),
        ('[{"a": 1},\n {"a": 2}', r"ends in line 2, before its array does\. Get a fresh copy"),
        ('[{"a": 1},\n {"a": tru}]', "line 2: not JSON: Expecting value, at 'tru}]'"),
        ('[{"a": 1}]\n[{"a": 2}]', r"behind the array that ends in line 1 there is more: '\[{"),
        ('{"a": 1, "a": 2}\n', "line 1: the key 'a' is there twice"),
        ('[{"a": 1},\n{"b": 1, "b": 2}]', "line 2: the key 'b' is there twice"),
        ('{"a.b": 1, "a": {"b": 2}}\n', "the key 'a.b' is there twice, alone and in an object"),
        ('{"a": ' * 100_000, "line 1: objects are nested too deeply"),
        ("{}\n{}\n", "holds no objects with keys"),
        ("[]", "holds no objects with keys"),
        (" \n", "is empty"),
    ],
    ids=lambda value: value[:16],
)
def test_what_is_no_table_is_refused_by_its_line(
    content: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(TableError, match=words) as caught:
        open_source(path).read()
    assert "\n" not in str(caught.value)


def test_a_cut_archive_is_damaged(tmp_path: Path) -> None:
    whole = gzip.compress("".join(json.dumps(row) + "\n" for row in payments(9000)).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TableError, match=r"a\.jsonl\.gz is damaged.*Get a fresh copy"):
        open_source(tmp_path / "a.jsonl.gz").read()


def test_rows_of_an_array_may_lie_across_what_is_read_at_a_time(tmp_path: Path) -> None:
    rows = [{"i": i, "text": "x" * (_CHUNK // 3 + 7 * i)} for i in range(12)]
    rows.append({"i": 12, "text": "y" * (5 * _CHUNK)})
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=1))
    source = open_source(tmp_path / "a.json")
    assert source.read().to_pylist() == rows
    assert {row: spot.line for row, spot in source.lines_at([1, 3]).items()} == {1: 2, 3: 10}
    assert source.understood == "an array of objects"


def test_lines_are_named_where_values_stand(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"a": {"b": 1}}, "", {"a": {"b": "no"}})
    source = open_source(path)
    assert source.understood == "objects inside objects as columns such as 'a.b'"
    assert source.lines_of("a.b", ["no"])["no"].line == 3


def test_a_file_that_changes_is_looked_at_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", {"a": 1})
    assert open_source(path).names == ("a",)
    written(path, {"a": 1, "b": 2})
    assert open_source(path).names == ("a", "b")
