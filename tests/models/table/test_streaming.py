from __future__ import annotations

import gzip
import io
import os
import resource
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import torch

from aloof.exceptions import TableError, TableWarning
from aloof.models.table import TableModel, fit, open_source
from aloof.models.table import streaming as module
from aloof.models.table.counting import about_rows
from aloof.models.table.parts import Parts
from aloof.models.table.streaming import score_file

N = 1130
PART = 200


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    if seed:  # the rows to learn from hold no such
        amount[::17] *= 1e6
    return pa.table(
        {
            "key": pa.array([f"r{i}" for i in range(n)]),
            "amount": amount,
            "age": pa.array(rng.integers(18, 90, n), mask=rng.random(n) < 0.1),
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
        }
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = rows(600, 0)
    labels = np.zeros(600, int)
    labels[:6] = 1
    model = fit(
        table.append_column("fraud", pa.array(labels)),
        label="fraud",
        id="key",
        method="dp",
        members=2,
        max_epochs=3,
        hidden=(8,),
        latent_dim=2,
    )
    path = tmp_path_factory.mktemp("model") / "model"
    model.save(path)
    return path


@pytest.fixture
def model(saved: Path) -> TableModel:
    return TableModel.load(saved, device="cpu").set_threshold(share=0.05)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", PART)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    pq.write_table(rows(N, 1), path, row_group_size=300)
    return path


def folder_of(out: Path) -> Path:
    return out.with_name(f".{out.name}.parts")


@contextmanager
def killed_after(n: int) -> Iterator[None]:
    """Stop a run when `n` parts are done, as if the power failed."""
    add = Parts.add

    def add_or_die(self: Parts, table: pa.Table) -> None:
        if self.n_rows >= n * PART:
            raise SystemExit("killed")
        add(self, table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Parts, "add", add_or_die)
        with pytest.raises(SystemExit):
            yield


@pytest.mark.parametrize(
    "rule", [{"share": 0.05}, {"fdr": 0.3}, {"fdr": 1e-9}, {"value": -1e9}]
)
def test_a_file_says_what_the_model_says(
    rule: dict[str, float], model: TableModel, data: Path, tmp_path: Path
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few rows for such a rate
        model.set_threshold(**rule)  # type: ignore[arg-type]
    done = score_file(model, data, tmp_path / "out.parquet", reasons=2)
    expected = model.score(rows(N, 1), reasons=2)
    got = pq.read_table(tmp_path / "out.parquet")
    assert got.column_names == expected.column_names
    assert got.equals(expected)
    assert (done.n_rows, done.n_resumed) == (N, 0)
    assert done.n_anomalies == np.sum(expected["is_anomaly"].to_numpy())
    if rule == {"fdr": 0.3}:
        assert 0 < done.n_anomalies < np.sum(expected["p_value"].to_numpy() <= 0.3)
    assert sorted(os.listdir(tmp_path)) == ["data.parquet", "out.parquet"]


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_change_nothing_and_leave_no_trace(
    workers: int, model: TableModel, data: Path, tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(workers)
    try:
        score_file(model, data, tmp_path / "out.parquet")
        assert torch.get_num_threads() == workers
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
        thread.start()
        thread.join()
        assert seen == [workers]
    finally:
        torch.set_num_threads(before)
    assert pq.read_table(tmp_path / "out.parquet").equals(model.score(rows(N, 1)))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "arrow"])
def test_every_format_in_and_out_gives_the_same_scores(
    ending: str, model: TableModel, tmp_path: Path
) -> None:
    table = rows(N, 1)
    path = tmp_path / f"data.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=123)
    else:
        sink = gzip.open(path, "wb") if ending.endswith("gz") else path.open("wb")
        with sink as file:
            options = pa_csv.WriteOptions(delimiter="\t" if ending == "tsv" else ",")
            pa_csv.write_csv(table, file, options)
    score_file(model, path, tmp_path / f"out.{ending}")
    got = open_source(tmp_path / f"out.{ending}").read()
    assert got["key"].to_pylist() == table["key"].to_pylist()
    scores = [float(score) for score in got["anomaly_score"].to_pylist()]
    np.testing.assert_array_equal(scores, model.anomaly_score(table))


def test_a_folder_of_files_is_one_table(model: TableModel, tmp_path: Path) -> None:
    table = rows(N, 1)
    (tmp_path / "in").mkdir()
    for i, start in enumerate(range(0, N, 170)):
        pq.write_table(table.slice(start, 170), tmp_path / "in" / f"{i}.parquet")
    score_file(
        model, tmp_path / "in", tmp_path / "in" / "out.parquet"
    )  # hidden work is not read
    assert pq.read_table(tmp_path / "in" / "out.parquet").equals(model.score(table))


@pytest.mark.parametrize("rule", [{"share": 0.05}, {"fdr": 0.3}])
@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
@pytest.mark.parametrize("parts", [1, 4])
def test_a_killed_run_continues_to_the_same_bytes(
    rule: dict[str, float],
    ending: str,
    parts: int,
    model: TableModel,
    data: Path,
    tmp_path: Path,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_threshold(**rule)  # type: ignore[arg-type]
    whole, out = tmp_path / f"whole.{ending}", tmp_path / f"out.{ending}"
    score_file(model, data, whole)
    with killed_after(parts):
        score_file(model, data, out)
    assert not out.exists()
    (folder_of(out) / ".000009.arrow.12345678").write_bytes(b"half")
    done = score_file(model, data, out, resume=True)
    assert (done.n_rows, done.n_resumed) == (N, parts * PART)
    assert out.read_bytes() == whole.read_bytes()
    assert not folder_of(out).exists()


def test_a_run_killed_while_joining_continues(
    model: TableModel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
    score_file(model, data, whole)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _dying_for(out))
        with pytest.raises(SystemExit):
            score_file(model, data, out)
    assert not out.exists()
    assert len(list(folder_of(out).glob("0*.arrow"))) == 6
    (folder_of(out) / ".out.csv.12345678").write_text("half")
    done = score_file(model, data, out, resume=True)
    assert done.n_resumed == N
    assert out.read_bytes() == whole.read_bytes()
    assert not folder_of(out).exists()


def _dying_for(target: Path) -> Any:
    replace = os.replace

    def replace_or_die(one: Any, other: Any) -> None:
        if Path(other) == target:
            raise SystemExit("killed")
        replace(one, other)

    return replace_or_die


def test_a_damaged_part_is_done_again(model: TableModel, data: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
    score_file(model, data, whole)
    with killed_after(4):
        score_file(model, data, out)
    part = folder_of(out) / "000002.arrow"
    part.write_bytes(part.read_bytes()[:100])
    assert score_file(model, data, out, resume=True).n_resumed == 2 * PART
    assert out.read_bytes() == whole.read_bytes()


def test_resume_starts_where_nothing_was(model: TableModel, data: Path, tmp_path: Path) -> None:
    assert score_file(model, data, tmp_path / "out.csv", resume=True).n_resumed == 0


def test_a_run_that_was_not_finished_is_not_forgotten(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    with killed_after(2):
        score_file(model, data, out)
    with pytest.raises(TableError, match=r"unfinished.*resume.*force"):
        score_file(model, data, out)
    assert len(list(folder_of(out).glob("0*.arrow"))) == 2
    assert score_file(model, data, out, force=True).n_resumed == 0
    assert not folder_of(out).exists()


def test_another_run_is_not_continued(model: TableModel, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    with killed_after(2):
        score_file(model, data, out)
    other = tmp_path / "other.parquet"
    pq.write_table(rows(N, 2), other)
    for options, word in [
        ({"data": other}, "input"),
        ({"reasons": 1}, "number of reasons"),
        ({"keep": ["city"]}, "choice of columns"),
    ]:
        with pytest.raises(TableError, match=f"another {word}.*force"):
            score_file(model, **{"data": data, **options}, out=out, resume=True)
    model.set_threshold(share=0.1)
    with pytest.raises(TableError, match="another threshold"):
        score_file(model, data, out, resume=True)
    model.set_threshold(share=0.05)
    os.utime(data, (1, 1))
    with pytest.raises(TableError, match="another input"):
        score_file(model, data, out, resume=True)
    assert len(list(folder_of(out).glob("0*.arrow"))) == 2
    assert not out.exists()


def test_somebody_elses_folder_is_left_alone(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    folder_of(out).mkdir()
    (folder_of(out) / "precious").write_text("mine")
    with pytest.raises(TableError, match="holds something else"):
        score_file(model, data, out, force=True)
    assert (folder_of(out) / "precious").read_text() == "mine"


def test_an_existing_output_is_refused_unless_forced(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    for resume in (False, True):
        with pytest.raises(TableError, match=r"out\.csv already exists.*force"):
            score_file(model, data, out, resume=resume)
    assert out.read_text() == "precious"
    score_file(model, data, out, force=True)
    assert out.read_text().startswith('"key","anomaly_score"')


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_keeps_what_is_done(
    model: TableModel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole.csv", tmp_path / "out.csv"
    score_file(model, data, whole)
    largest = 24_000
    assert whole.stat().st_size > largest
    with no_file_above(largest):  # enough for a part, too little for the whole
        with pytest.raises(TableError, match=r"too large.*1,130 rows are kept.*resume"):
            score_file(model, data, out)
    assert not out.exists()
    assert score_file(model, data, out, resume=True).n_resumed == N
    assert out.read_bytes() == whole.read_bytes()


def test_a_disk_that_is_full_at_once_leaves_nothing(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    with no_file_above(10):  # not even for notes
        with pytest.raises(TableError, match="too large"):
            score_file(model, data, tmp_path / "out.csv")
    with no_file_above(2000):
        with pytest.raises(
            TableError, match=r"too large\. Free some space, or write elsewhere\.$"
        ):
            score_file(model, data, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["data.parquet"]


def test_a_damaged_page_leaves_nothing(model: TableModel, data: Path, tmp_path: Path) -> None:
    with pq.ParquetFile(data) as file:
        chunk = file.metadata.row_group(2).column(1)
    content = bytearray(data.read_bytes())
    start = chunk.data_page_offset
    content[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    data.write_bytes(content)
    with pytest.raises(TableError, match="row group 3 of 4"):
        score_file(model, data, tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["data.parquet"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda table: table.drop_columns("age").append_column("Age", table["age"]),
            "mean 'Age'",
        ),
        (lambda table: table.drop_columns("key"), "no column 'key' for the id"),
        (lambda table: table.slice(0, 0), "no rows"),
        (
            lambda table: table.set_column(1, "amount", pa.array(["lots"] * table.num_rows)),
            "'amount' was read as numbers",
        ),
    ],
)
def test_a_table_that_does_not_fit_leaves_nothing(
    change: Any, message: str, model: TableModel, tmp_path: Path
) -> None:
    pq.write_table(change(rows(N, 1)), tmp_path / "data.parquet")
    with pytest.raises(TableError, match=message):
        score_file(model, tmp_path / "data.parquet", tmp_path / "out.csv")
    assert os.listdir(tmp_path) == ["data.parquet"]


def test_a_column_that_cannot_be_read_is_told_once(model: TableModel, tmp_path: Path) -> None:
    table = rows(N, 1)
    values = [str(value) for value in table["amount"].to_pylist()]
    for bad in (250, 260, 900):
        values[bad] = "n/a?"
    table = table.set_column(1, "amount", pa.array(values)).append_column("new", table["age"])
    pq.write_table(table, tmp_path / "data.parquet")
    warned: list[TableWarning] = []
    score_file(model, tmp_path / "data.parquet", tmp_path / "out.csv", warn=warned.append)
    said = list(map(str, warned))
    assert len(said) == 2
    assert "ignores them: 'new'" in said[0]
    assert said[1].startswith(
        "Rows 201 to 400: Column 'amount': 2 of 200 values cannot be read"
    )
    with pytest.warns(TableWarning) as issued:
        score_file(model, tmp_path / "data.parquet", tmp_path / "again.csv")
    assert [str(warning.message) for warning in issued] == said
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "out.csv").read_bytes()


def test_columns_are_kept_as_they_are(model: TableModel, tmp_path: Path) -> None:
    table = rows(N, 1)
    kept = {
        "number": pa.array(range(N), pa.int32()),
        "code": pa.array([f"{i % 3}" for i in range(N)]).dictionary_encode(),
        "day": pa.array(range(N), pa.date32()),
        "time": pa.array(range(N), pa.time32("s")),
        "span": pa.array(range(N), pa.duration("s")),
        "none": pa.nulls(N),
    }
    for name, column in kept.items():
        table = table.append_column(name, column)
    pq.write_table(table, tmp_path / "data.parquet")
    for ending in ("parquet", "csv", "arrow"):
        out = tmp_path / f"out.{ending}"
        score_file(model, tmp_path / "data.parquet", out, keep=["age", *kept], warn=pytest.fail)
        got = open_source(out).read()
        assert got.column_names[:8] == ["key", "age", *kept]
        assert [int(v) for v in got["number"].to_pylist()] == list(range(N))
        assert got["none"].null_count == N
    with pytest.raises(TableError, match=r"no column 'ag' for the output \(did you mean 'age'"):
        score_file(model, tmp_path / "data.parquet", tmp_path / "o.csv", keep=["ag"])
    pq.write_table(table.append_column("p_value", table["age"]), tmp_path / "data.parquet")
    with pytest.raises(TableError, match="Cannot keep column 'p_value'"):
        score_file(model, tmp_path / "data.parquet", tmp_path / "o.csv", keep=["p_value"])


def test_ids_of_two_types_become_text(model: TableModel, tmp_path: Path) -> None:
    table = rows(N, 1)
    (tmp_path / "in").mkdir()
    first = table.slice(0, 500).set_column(0, "key", pa.array(range(500)))
    pq.write_table(first, tmp_path / "in" / "0.parquet")
    pq.write_table(table.slice(500), tmp_path / "in" / "1.parquet")
    score_file(model, tmp_path / "in", tmp_path / "out.parquet")
    keys = pq.read_table(tmp_path / "out.parquet")["key"].to_pylist()
    assert keys == [*map(str, range(500)), *table["key"].to_pylist()[500:]]


@pytest.mark.parametrize("rule", [{"share": 0.05}, {"fdr": 0.3}])
def test_standard_input_and_output(
    rule: dict[str, float],
    model: TableModel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_threshold(**rule)  # type: ignore[arg-type]
    data, out = tmp_path / "data.csv", tmp_path / "out.csv"
    pa_csv.write_csv(rows(N, 1), data)
    score_file(model, data, out)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for source, target in [(data, "-"), ("-", "-"), ("-", tmp_path / "in.csv")]:
        with data.open("rb") as file:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(file))
            done = score_file(model, source, target)
        assert done.n_rows == N
        written = capfdbinary.readouterr().out if target == "-" else target.read_bytes()
        assert written == out.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["data.csv", "in.csv", "out.csv"]
    with pytest.raises(TableError, match="cannot continue"):
        score_file(model, data, "-", resume=True)


def test_progress_counts_all_rows(model: TableModel, data: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def progress(done: int, total: int | None) -> None:
        assert total == N
        seen.append(done)

    with killed_after(2):
        score_file(model, data, tmp_path / "out.csv", progress=progress)
    assert seen == [0, 200, 400]
    seen.clear()
    score_file(model, data, tmp_path / "out.csv", progress=progress, resume=True)
    assert seen == [400, 600, 800, 1000, N]


@pytest.mark.parametrize("workers", [1, 2])
def test_few_parts_are_in_memory_at_once(workers: int) -> None:
    taken: list[int] = []
    items = (taken.append(i) or i for i in range(9))  # type: ignore[func-returns-value]
    for given, result in enumerate(module._in_order(lambda i: i * i, items, workers)):
        assert result == given * given
        assert len(taken) <= given + 1 + workers
    assert given == 8


def test_an_error_of_a_part_stops_the_rest() -> None:
    done: list[int] = []

    def work(item: int) -> int:
        if item == 2:
            raise TableError("no")
        done.append(item)
        return item

    results = module._in_order(work, iter(range(100)), 2)
    with pytest.raises(TableError, match="no"):
        list(results)
    assert set(done) <= {0, 1, 3, 4}


def test_how_many_rows_there_are_about(data: Path, tmp_path: Path) -> None:
    assert about_rows(open_source(data)) == N
    lines = ["key,value", *(f"row {i:06},{i % 7}" for i in range(200_000))]
    text = "\n".join(lines).encode()
    (tmp_path / "a.csv").write_bytes(text)
    with gzip.open(tmp_path / "a.csv.gz", "wb") as file:
        file.write(text)
    assert about_rows(open_source(tmp_path / "a.csv")) == pytest.approx(200_000, rel=0.01)
    assert about_rows(open_source(tmp_path / "a.csv.gz")) == pytest.approx(200_000, rel=0.3)
