"""What is said about a row or a value of a file names the line that people see there."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from aloof.cli.app import app
from aloof.exceptions import AloofWarning, LabelError, TableError
from aloof.models.table import TableModel, fit, open_source

TINY = {"members": 1, "max_epochs": 1, "hidden": (4,), "latent_dim": 2, "method": "vae"}
N = 60


def cells(seed: int = 0) -> list[list[str]]:
    rng = np.random.default_rng(seed)
    return [
        [f"r{i}", f"{rng.normal(50, 5):.2f}", str(rng.choice(["Oslo", "Bern"])), "0"]
        for i in range(N)
    ]


def written(path: Path, rows: list[list[str]], *, note: str = '"two\nlines"') -> Path:
    """Write a title, a blank line, names, a row over two lines, and a blank line between.

    Row 1 is in line 4, over two lines; row 3 in line 7; what follows after the blank line 8 is
    two lines below: row 4 is in line 9.
    """
    lines = ["Export of March", "", "key,amount,city,bad,note"]
    for i, row in enumerate(rows):
        lines.append(",".join([*row, note if i == 0 else "-"]))
        lines += [""] if i == 2 else []
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TableModel:
    path = written(tmp_path_factory.mktemp("train") / "train.csv", cells())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AloofWarning)
        return fit(path, id="key", drop=["bad", "note"], **TINY)


def said(call, *arguments: object, **options: object) -> list[str]:  # type: ignore[no-untyped-def]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments, **options)
    return [str(one.message) for one in caught]


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", cells())
    source = open_source(path)
    spots = source.lines_at([1, 2, 3, 4, N])
    assert [spots[row].line for row in (1, 2, 3, 4, N)] == [4, 6, 7, 9, N + 5]
    text = path.read_text().split("\n")
    for row, spot in source.lines_at(range(1, N + 1)).items():
        assert text[spot.line - 1].startswith(f"r{row - 1},")
    assert source.rows_at([4, 9]) == {4: 1, 9: 4}
    assert source.rows_at([5, 8]) == {}  # within a row, and blank
    assert str(source.lines_of("key", ["r3"])["r3"]) == "line 9"


def test_sheets_folders_and_formats_without_lines(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Report"], [], ["key", "amount"], ["a", 1.5], [], ["b", 2.5]):
        book.active.append(row)
    book.save(tmp_path / "book.xlsx")
    spots = open_source(tmp_path / "book.xlsx").lines_at([1, 2])
    assert [str(spots[row]) for row in (1, 2)] == ["sheet row 4", "sheet row 6"]
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("a.csv", "b.csv"):
        (folder / name).write_text("x,y\n1,2\n3,4\n")
    source = open_source(folder)
    assert str(source.lines_at([3])[3]) == "line 2 of b.csv"
    with pytest.raises(TableError, match="more than one file"):
        source.rows_at([2])
    (tmp_path / "lines.txt").write_text("one two\n\nthree\n")
    assert open_source(tmp_path / "lines.txt").lines_at([3])[3].line == 3
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "x.parquet")
    assert open_source(tmp_path / "x.parquet").lines_at([1]) == {}


def test_values_and_labels_that_cannot_be_read(tmp_path: Path, model: TableModel) -> None:
    rows = cells(1)
    rows[4][1], rows[50][1], rows[7][3] = "oops", "n/k", "perhaps"
    path = written(tmp_path / "new.csv", rows)
    options = {"id": "key", "drop": ["note"]}
    with pytest.raises(LabelError, match=r"column 'bad': 'perhaps' in line 13\."):
        fit(path, label="bad", **options, **TINY)
    expected = "('oops' in line 10, 'n/k' in line 56)"
    dropped = {"id": "key", "drop": ["note", "bad"]}
    told = said(fit, path, **dropped, **TINY)
    assert any(expected in words and "treated as missing" in words for words in told), told
    told = said(model.score_file, path, tmp_path / "scores.csv")
    assert any(expected in words and "2 of 60 values" in words for words in told), told
    assert any(expected in words for words in said(model.most_anomalous, path))
    with (
        pytest.warns(AloofWarning, match="'oops' in line 10"),
        pytest.raises(LabelError, match="'perhaps' in line 13"),
    ):
        model.evaluate(path, label="bad")
    with pytest.raises(TableError, match=r"'city' cannot be read as numbers.*'Bern' in line"):
        fit(path, kinds={"city": "number"}, **dropped, **TINY)
    table = open_source(path).read()
    told = said(model.anomaly_score, table)
    assert any("('oops', 'n/k')" in words for words in told), told


def test_rows_are_explained_by_their_lines(tmp_path: Path, model: TableModel) -> None:
    path = written(tmp_path / "new.csv", cells(1))
    model.save(tmp_path / "model")
    run = CliRunner().invoke
    done = run(app, ["explain", f"{tmp_path}/model", str(path), "--line", "9", "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["row"], row["line"], row["id"]) == (4, 9, "r3")
    done = run(app, ["explain", f"{tmp_path}/model", str(path), "--row", "4"])
    assert "row 4 (line 9)  key r3" in done.stdout
    done = run(app, ["explain", f"{tmp_path}/model", str(path), "--line", "8"])
    assert done.exit_code == 2
    assert "No row of the table begins in line 8." in done.stderr
    with pytest.raises(TableError, match="have no lines"):
        model.most_anomalous(open_source(path).read(), lines=[4])


def test_a_report_names_lines_where_rows_have_no_id(tmp_path: Path) -> None:
    path = written(tmp_path / "train.csv", cells())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AloofWarning)
        unnamed = fit(path, drop=["key", "bad", "note"], **TINY)
        unnamed.report(path, tmp_path / "report.html", top=3)
        best = unnamed.most_anomalous(path, 3)
        unnamed.report(open_source(path).read(), tmp_path / "frame.html", top=3)
    page = (tmp_path / "report.html").read_text()
    for row in best.rows:
        assert f">line {row['line']}<" in page
    assert "without the header" not in page
    assert "without the header" in (tmp_path / "frame.html").read_text()


def test_what_cannot_be_read_on_is_after_a_line(tmp_path: Path) -> None:
    path = written(tmp_path / "open.csv", cells())
    path.write_text(path.read_text() + 'r99,1,Oslo,0,"-\nr100,2,Bern,0,-\n')
    with pytest.raises(TableError, match=r"the last row, line 66, runs over several lines"):
        open_source(path).read()
    many = [[f"r{i}", "1", "Oslo", "0"] for i in range(400_000)]
    path = written(tmp_path / "mixed.csv", many)
    path.write_bytes(path.read_bytes() + "rx,1,Zürich,0,-\nry,1,".encode() + b"Z\xfcrich,0,-\n")
    with pytest.raises(TableError, match=r"somewhere after line [\d,]+: its parts"):
        open_source(path).read()
