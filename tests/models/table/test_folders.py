"""Folders of files, scored file by file: once, by whoever does it, and the same bytes."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from aloof.cli.app import app
from aloof.exceptions import TableError
from aloof.models.table import TableModel, fit, folders, open_source
from aloof.models.table.folders import FileTask, FolderWork, score_folder
from aloof.models.table.harmless import Harmless

pytestmark = [
    pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning"),
    pytest.mark.filterwarnings("ignore::aloof.exceptions.DriftWarning"),
]


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    if seed:
        amount[::17] *= 1e6
    cities = [*"ABC"] if seed != 1 else [*"XYZ"]
    return pa.table({"key": np.arange(n), "amount": amount, "city": rng.choice(cities, n)})


@pytest.fixture(scope="module")
def model() -> TableModel:
    tiny = {"members": 1, "max_epochs": 3, "hidden": (8,), "latent_dim": 2}
    return fit(rows(600, 0), method="vae", id="key", **tiny).set_threshold(share=0.05)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for seed, name in enumerate(("a.parquet", "day=1/b.parquet", "day=2/b.parquet"), start=1):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(100 * seed, seed), folder / name, row_group_size=40)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*.parquet"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def scored(model: TableModel, data: Path, out: Path, **options: Any) -> Any:
    return score_folder(model, open_source(data), out, **options)


class Recording:
    """Does the work as a cluster would: pickled, in another order; may die."""

    def __init__(self, most: int | None = None) -> None:
        self.names: list[str] = []
        self._most = most

    def __call__(self, work: FolderWork, tasks: Sequence[FileTask]) -> Iterator[Any]:
        score = pickle.loads(pickle.dumps(work)).start()
        for place in reversed(range(len(tasks))):
            if self._most is not None and len(self.names) >= self._most:
                raise SystemExit("killed")
            task = pickle.loads(pickle.dumps(tasks[place]))
            self.names.append(task.name)
            yield place, score(task)


def test_each_file_is_what_the_model_says_of_it(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    done = scored(model, data, tmp_path / "out", reasons=2)
    assert (done.n_files, done.n_rows) == (3, 600)
    assert done.n_anomalies > 20
    for name in files(data):
        expected = model.score(pq.read_table(data / name, partitioning=None), reasons=2)
        assert pq.read_table(tmp_path / "out" / name, partitioning=None).equals(expected)
    assert open_source(tmp_path / "out").read().num_rows == 600  # notes are no data
    assert "city" in [each.column for each in done.drift["a.parquet"]]
    others = [drift for name, drift in done.drift.items() if name != "a.parquet"]
    assert "city" not in [each.column for drift in others for each in drift]


@pytest.mark.parametrize("rule", [{"share": 0.05}, {"fdr": 0.5}])
def test_whoever_does_it_writes_the_same_bytes_also_after_a_kill(
    model: TableModel, data: Path, tmp_path: Path, rule: dict[str, float]
) -> None:
    import copy

    model = copy.deepcopy(model).set_threshold(**rule)  # type: ignore[arg-type]
    here = scored(model, data, tmp_path / "here")
    dying, out = Recording(1), tmp_path / "there"
    with pytest.raises(SystemExit):
        scored(model, data, out, pool=dying)
    with pytest.raises(TableError, match="is not empty"):
        scored(model, data, out)
    pool = Recording()
    there = scored(model, data, out, pool=pool, resume=True)
    assert files(out) == files(tmp_path / "here")
    passes = 2 if "fdr" in rule else 1
    assert len(dying.names) + len(pool.names) == 3 * passes
    assert (there.n_rows, there.n_anomalies) == (here.n_rows, here.n_anomalies)
    assert there.drift == here.drift
    if "fdr" in rule:
        together = model.score(open_source(data).read())
        assert there.n_anomalies == sum(together["is_anomaly"].to_pylist()) > 10


def test_rows_known_to_be_harmless_are_not_flagged(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    rules = [Harmless("city", "A"), Harmless("key", "17")]
    plain = scored(model, data, tmp_path / "plain")
    done = scored(model, data, tmp_path / "out", harmless=rules, pool=Recording())
    assert done.n_anomalies + done.n_suppressed == plain.n_anomalies
    assert done.n_suppressed > 0
    for name in files(tmp_path / "out"):
        before, after, read = (
            pq.read_table(folder / name, partitioning=None)
            for folder in (tmp_path / "plain", tmp_path / "out", data)
        )
        harmless = [row["city"] == "A" or row["key"] == 17 for row in read.to_pylist()]
        flags = zip(before["is_anomaly"].to_pylist(), harmless, strict=True)
        expected = [flag and not known for flag, known in flags]
        assert after["is_anomaly"].to_pylist() == expected
        said = [words is not None for words in after["suppressed_by"].to_pylist()]
        assert said == harmless
    with pytest.raises(TableError, match="another choice of options"):
        scored(model, data, tmp_path / "out", resume=True)


def test_files_that_are_added_or_changed_are_done_and_no_others(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    out, pool = tmp_path / "out", Recording()
    scored(model, data, out)
    pq.write_table(rows(50, 9), data / "new.parquet")
    pq.write_table(rows(60, 9), data / "a.parquet")
    (out / "day=1" / "b.parquet").unlink()
    done = scored(model, data, out, resume=True, pool=pool)
    assert sorted(pool.names) == ["a.parquet", "day=1/b.parquet", "new.parquet"]
    assert (done.n_files, done.n_resumed) == (4, 300)
    scored(model, data, tmp_path / "fresh")
    assert files(out) == files(tmp_path / "fresh")


def test_another_run_is_not_continued(model: TableModel, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    scored(model, data, out)
    with pytest.raises(TableError, match="another choice of options"):
        scored(model, data, out, resume=True, reasons=1)
    before = files(out)
    scored(model, data, out, force=True, reasons=1)
    assert files(out) != before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.txt").write_text("mine")
    with pytest.raises(TableError, match="no run to continue"):
        scored(model, data, tmp_path / "other", resume=True)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["x.txt"]


def test_a_damaged_file_does_not_keep_the_others_from_being_done(
    model: TableModel, data: Path, tmp_path: Path
) -> None:
    whole = (data / "day=1" / "b.parquet").read_bytes()
    (data / "day=1" / "b.parquet").write_bytes(whole[:-20])
    with pytest.raises(TableError, match=r"1 of 3 files could not be scored: day=1/b\.parquet"):
        scored(model, data, tmp_path / "out")
    assert sorted(files(tmp_path / "out")) == ["a.parquet", "day=2/b.parquet"]
    (data / "day=1" / "b.parquet").write_bytes(whole)
    done = scored(model, data, tmp_path / "out", resume=True)
    assert (done.n_rows, done.n_resumed) == (600, 400)


def test_large_files_are_done_in_pieces(
    model: TableModel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored(model, data, tmp_path / "whole")
    monkeypatch.setattr(folders, "_LARGE", 100)
    monkeypatch.setattr(folders, "_PIECE", 90)
    done = scored(model, data, tmp_path / "out")
    names = sorted(files(tmp_path / "out"))
    assert names[0] == "a.parquet"  # small enough
    assert done.n_rows == 600
    for name in ("day=1/b", "day=2/b"):
        parts = [n for n in names if n.startswith(name)]
        assert len(parts) > 1
        read = [pq.read_table(tmp_path / "out" / n, partitioning=None) for n in parts]
        expected = pq.read_table(tmp_path / "whole" / f"{name}.parquet", partitioning=None)
        assert pa.concat_tables(read).equals(expected)


def test_empty_parts_and_other_formats(model: TableModel, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    pq.write_table(rows(0, 1), tmp_path / "p" / "empty.parquet")
    pq.write_table(rows(9, 1), tmp_path / "p" / "some.parquet")
    done = scored(model, tmp_path / "p", tmp_path / "out", keep=["city"])
    assert (done.n_files, done.n_rows) == (2, 9)
    empty, some = (pq.read_table(path) for path in sorted((tmp_path / "out").glob("*.parquet")))
    assert empty.schema.equals(some.schema)
    (tmp_path / "c").mkdir()
    pa_csv.write_csv(rows(9, 1), tmp_path / "c" / "x.csv")
    scored(model, tmp_path / "c", tmp_path / "out2")
    header = (tmp_path / "out2" / "x.csv").read_text().splitlines()[0]
    assert header.startswith('"key","anomaly_score"')


def test_the_command(model: TableModel, data: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "model")

    def run(*words: object) -> Any:
        return CliRunner().invoke(app, [*map(str, words)])

    score = ("score", tmp_path / "model", data, "--out", f"{tmp_path / 'out'}{os.sep}")
    done = run(*score, "--json")
    assert done.exit_code == 0, done.output
    assert '"n_files": 3, "n_rows": 600' in done.stdout
    again = run(*score, "--resume")
    assert "600 rows of 3 files" in again.stdout
    assert "600 of them by an earlier run" in again.stdout
    assert "a.parquet: `city`: " in again.stderr  # drift is said of each file
    for words, reason in (
        ((), "is not empty"),
        (("--top", 3), "--top cannot be used with a folder to write to."),
        (("--workers", 2), "--workers needs --ray."),
    ):
        refused = run(*score, *words)
        assert refused.exit_code == 2
        assert reason in refused.stderr
