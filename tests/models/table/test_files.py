from __future__ import annotations

import gzip
import io
import lzma
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from aloof.exceptions import TableError, TableWarning
from aloof.models.table import open_source, sample


def numbers(n: int, start: int = 0) -> pa.Table:
    return pa.table(
        {"i": np.arange(start, start + n), "t": [f"w{i}" for i in range(start, start + n)]}
    )


def csv(path: Path, n: int, start: int = 0) -> Path:
    lines = [f"{i},w{i}" for i in range(start, start + n)]
    path.write_text("\n".join(["i,t", *lines]) + "\n")
    return path


def column(source, name: str = "i", **options) -> list[int]:
    return [int(v.as_py()) for batch in source.batches(**options) for v in batch[name]]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The same hundred rows in every form."""
    made = {"csv": csv(tmp_path / "a.csv", 100)}
    made["tsv"] = tmp_path / "a.tsv"
    made["tsv"].write_text(made["csv"].read_text().replace(",", "\t"))
    made["csv.gz"] = tmp_path / "a.csv.gz"
    made["csv.gz"].write_bytes(gzip.compress(made["csv"].read_bytes()))
    made["csv.zst"] = tmp_path / "a.csv.zst"
    with pa.CompressedOutputStream(str(made["csv.zst"]), "zstd") as packed:
        packed.write(made["csv"].read_bytes())
    made["csv.xz"] = tmp_path / "a.csv.xz"
    made["csv.xz"].write_bytes(lzma.compress(made["csv"].read_bytes()))
    made["parquet"] = tmp_path / "a.parquet"
    pq.write_table(numbers(100), made["parquet"], row_group_size=13)
    made["arrow"] = tmp_path / "a.arrow"
    with pa.ipc.new_file(made["arrow"], numbers(1).schema) as writer:
        writer.write_table(numbers(100), max_chunksize=9)
    made["stream"] = tmp_path / "s.ipc"
    with pa.ipc.new_stream(made["stream"], numbers(1).schema) as writer:
        writer.write_table(numbers(100))
    made["folder"] = tmp_path / "folder"
    (made["folder"] / "deep").mkdir(parents=True)
    (made["folder"] / "_SUCCESS").write_text("")
    pq.write_table(numbers(60), made["folder"] / "part-0.parquet")
    pq.write_table(numbers(40, 60), made["folder"] / "part-1.parquet")
    csv(tmp_path / "g-1.csv", 30)
    csv(tmp_path / "g-2.csv", 70, 30)
    made["glob"] = tmp_path / "g-*.csv"
    return made


FORMS = [
    "csv",
    "tsv",
    "csv.gz",
    "csv.zst",
    "csv.xz",
    "parquet",
    "arrow",
    "stream",
    "folder",
    "glob",
]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows_in_the_same_batches(form: str, files) -> None:
    source = open_source(files[form])
    assert source.names == ("i", "t")
    assert [batch.num_rows for batch in source.batches(rows=32)] == [32, 32, 32, 4]
    assert column(source, rows=32) == list(range(100))
    assert column(source, rows=7, skip=50) == list(range(50, 100))
    assert [batch.schema.names for batch in source.batches(["t"])] == [["t"]]
    assert source.read().num_rows == 100
    assert source.n_rows == (100 if form in ("parquet", "folder") else None)
    assert source.n_bytes > 0


def test_skipping_all_rows_gives_none(files) -> None:
    assert list(open_source(files["csv"]).batches(skip=100)) == []


def test_standard_input_is_csv(monkeypatch, files) -> None:
    content = files["csv"].read_bytes()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    source = open_source("-")
    assert source.names == ("i", "t")
    assert column(source) == list(range(100))
    assert source.fingerprint() is None


def test_a_fingerprint_changes_with_the_file(files) -> None:
    before = open_source(files["csv"]).fingerprint()
    assert open_source(files["csv"]).fingerprint() == before
    csv(files["csv"], 101)
    assert open_source(files["csv"]).fingerprint() != before


def test_a_csv_is_text_so_a_word_far_down_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "1,2\n" * 400_000 + "oops,2\n" + "1,2\n" * 400_000)
    batches = list(open_source(path).batches())
    assert {str(batch.schema.field("x").type) for batch in batches} == {"string"}
    assert sum(batch.num_rows for batch in batches) == 800_001


def test_quotes_line_ends_marks_and_missing_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbf"a,b",c,\r\n"x\ny","say ""hi""",\r\n,NA,3\r\n')
    source = open_source(path)
    assert source.names == ("a,b", "c", "column_3")
    assert source.read().to_pylist() == [
        {"a,b": "x\ny", "c": 'say "hi"', "column_3": None},
        {"a,b": None, "c": "NA", "column_3": "3"},
    ]


@pytest.mark.parametrize(
    ("encoding", "found"),
    [
        ("utf8", "utf8"),
        ("utf-8-sig", "utf8"),
        ("latin-1", "cp1252"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16-le"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
    ],
)
@pytest.mark.parametrize("far", [0, 300_000])
def test_encodings_are_found_wherever_the_first_accent_is(
    encoding: str, found: str, far: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(("name,x\n" + "plain,2\n" * far + "Größe,1\n").encode(encoding))
    source = open_source(path)
    last = source.read().slice(far)
    assert last.to_pylist() == [{"name": "Größe", "x": "1"}]
    assert (f"written in {found}" in source.understood) == (found != "utf8")
    named = open_source(path, encoding=encoding)
    assert named.read().slice(far).to_pylist() == last.to_pylist()


def test_encodings_that_do_not_fit_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("größe,x\nä,1\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"not written in utf8.*latin-1"):
        open_source(path, encoding="utf8")
    path.write_bytes("größe,x\n".encode() + b"a,1\n" * 10**6 + "ä,1\n".encode("latin-1"))
    with pytest.raises(TableError, match="mixes UTF-8 with another encoding"):
        open_source(path).read()
    with pytest.raises(TableError, match="no encoding 'klingon'"):
        open_source(path, encoding="klingon")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n", r"has columns \(a, b\) but no rows"),
        (b"a b c\n1 2 3\n4 5 6\n", "separated by spaces"),
        (b"1;2.5;3\n4;5.5;6\n", "has no line of column names: its first row is '1;2.5;3'"),
        (b"a,b,c\n1,2\n3,4\n", "its rows have 2 values.*no line above them has as many"),
        (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
        (b"a,b\n1,2\n3,4,5\n", r"line 3 has 3 values, but the header has 2: '3,4,5'"),
        (b"PAR1\0\0", "not a text file"),
    ],
)
def test_a_bad_csv_is_named_with_the_reason(content: bytes, message: str, tmp_path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=message) as caught:
        open_source(path).read()
    if b"a,b,a" not in content:
        assert "bad.csv" in str(caught.value)


def test_a_delimiter_can_be_given(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a;b\n1;2\n")
    assert open_source(path, delimiter=";").names == ("a", "b")
    with pytest.raises(TableError, match="one character"):
        open_source(path, delimiter=";;")


def test_a_row_without_end_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,2\n1,"' + "x" * 9_000_000)
    with pytest.raises(TableError, match=r"a\.csv.*(quotation mark|cannot be read)"):
        open_source(path).read()


def test_a_cut_gz_is_named(files) -> None:
    content = files["csv.gz"].read_bytes()
    files["csv.gz"].write_bytes(content[: len(content) // 2])
    with pytest.raises(TableError, match=r"a\.csv\.gz"):
        open_source(files["csv.gz"]).read()


def test_a_damaged_parquet_page_is_named_and_rows_before_it_come(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"x": np.random.default_rng(0).normal(size=4000)})
    pq.write_table(
        table, path, row_group_size=1000, write_page_checksum=True, use_dictionary=False
    )
    group = pq.ParquetFile(path).metadata.row_group(2).column(0)
    content = bytearray(path.read_bytes())
    middle = group.data_page_offset + group.total_compressed_size // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(content)
    batches = open_source(path).batches(rows=500)
    assert [next(batches).num_rows for _ in range(4)] == [500] * 4
    with pytest.raises(TableError, match=r"a\.parquet is damaged: row group 3 of 4"):
        next(batches)


def test_a_file_that_is_no_parquet_or_arrow_is_named(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.arrow"):
        (tmp_path / name).write_text("hello, this is text")
        with pytest.raises(TableError, match=f"{name} cannot be read as"):
            open_source(tmp_path / name)
        (tmp_path / name).write_text("")
        with pytest.raises(TableError, match=f"{name} is empty"):
            open_source(tmp_path / name)


def test_parquet_without_rows_is_an_error(tmp_path: Path) -> None:
    pq.write_table(numbers(0), tmp_path / "a.parquet")
    with pytest.raises(TableError, match="no rows"):
        open_source(tmp_path / "a.parquet").read()


def test_what_is_not_there_is_said(tmp_path: Path, files) -> None:
    with pytest.raises(TableError, match=r"no file .*b\.csv \(did you mean 'a\.csv'"):
        open_source(tmp_path / "b.csv")
    with pytest.raises(TableError, match="does not exist"):
        open_source(tmp_path / "nowhere" / "a.csv")
    with pytest.raises(TableError, match="holds no tables"):
        open_source(tmp_path / "*.pq")
    with pytest.raises(TableError, match="several formats"):
        open_source(tmp_path)
    (tmp_path / "a.xyz").write_text("a")
    with pytest.raises(TableError, match="does not tell its format"):
        open_source(tmp_path / "a.xyz")
    assert open_source(files["csv"], format="csv").names == ("i", "t")


def test_json_is_not_mistaken_for_csv(tmp_path: Path) -> None:
    """Its lines are rows, and commas are in them."""
    lines = '{"a": 1, "b": {"c": 2}}\n{"a": 3}\n'
    for name, content, words in (
        ("a.csv", lines, r"a\.csv holds JSON, not CSV"),
        ("b.csv", '[\n  {"a": 1},\n  {"a": 2}\n]\n', r"b\.csv holds JSON, not CSV"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(TableError, match=words):
            open_source(tmp_path / name).read()
    (tmp_path / "c.csv").write_text('{a},"[{""b"": 1}]"\n1,2\n')
    assert open_source(tmp_path / "c.csv").names == ("{a}", '[{"b": 1}]')


def test_files_of_a_folder_may_differ_in_order_and_type_but_not_lack_a_column(tmp_path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["z"], "a": [2.5]}), tmp_path / "2.parquet")
    assert open_source(tmp_path).read()["a"].to_pylist() == [1, 2, 2.5]
    pq.write_table(pa.table({"b": ["z"], "a": ["word"]}), tmp_path / "3.parquet")
    assert open_source(tmp_path).read()["a"].to_pylist()[-1] == "word"
    pq.write_table(pa.table({"b": ["z"]}), tmp_path / "4.parquet")
    with pytest.raises(TableError, match=r"4\.parquet has no column 'a'"):
        open_source(tmp_path).read()


def test_a_sample_is_uniform_in_order_and_the_same_for_every_form(files) -> None:
    rows = sample(open_source(files["csv"]), 10, seed=3)
    assert (rows.n_rows, rows.n_kept, rows.table.num_rows) == (100, 0, 10)
    taken = [int(i) for i in rows.table["i"].to_pylist()]
    assert taken == sorted(taken)
    for form in FORMS:
        again = sample(open_source(files[form]), 10, seed=3).table["i"].to_pylist()
        assert [int(i) for i in again] == taken
    assert sample(open_source(files["csv"]), 500, seed=3).table.num_rows == 100
    counts = np.zeros(100)
    source = open_source(files["parquet"])
    for seed in range(200):
        counts[sample(source, 20, seed=seed).table["i"].to_numpy()] += 1
    # 200 draws of probability 0.2: mean 40, standard deviation 5.7
    assert counts.sum() == 4000
    assert counts.min() > 40 - 4.5 * 5.7
    assert counts.max() < 40 + 4.5 * 5.7


def test_a_sample_keeps_what_it_is_told_to(files) -> None:
    def is_third(batch: pa.RecordBatch) -> np.ndarray:
        return batch["i"].to_numpy() % 33 == 0

    rows = sample(open_source(files["parquet"]), 5, seed=0, keep=is_third)
    taken = rows.table["i"].to_pylist()
    assert {0, 33, 66, 99} <= set(taken)
    assert (rows.n_kept, len(taken)) == (4, 9)
    all_rows = sample(
        open_source(files["parquet"]), 5, seed=0, keep=lambda b: np.ones(b.num_rows, bool)
    )
    assert (all_rows.n_kept, all_rows.table.num_rows) == (100, 5)


@pytest.mark.parametrize(
    ("ending", "options", "words"),
    [
        ("parquet", {"delimiter": ";"}, "A delimiter does not apply to parquet files"),
        ("parquet", {"encoding": "utf8"}, "An encoding does not apply to parquet files"),
        ("txt", {"delimiter": ","}, "A delimiter does not apply to txt files"),
        ("csv", {"format": "xls"}, "must be one of csv, tsv, parquet, arrow, txt"),
    ],
)
def test_an_option_that_says_nothing_is_refused(
    ending: str, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = tmp_path / f"data.{ending}"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match=words):
        open_source(path, **options)
    with pytest.raises(TableError, match="CSV or TSV, not as parquet"):
        open_source("-", format="parquet")


def test_a_total_is_left_out_whatever_is_read(tmp_path: Path) -> None:
    """A row that says so, and has gaps: not the last row of any table, and in any column."""
    path = tmp_path / "a.csv"
    rows = "".join(f"r{i},{i},x\n" for i in range(30))
    path.write_text(f"key,n,city\n{rows}Total,435,\n\n")
    with pytest.warns(TableWarning, match=r"the last line is a total and left out: 'Total,435"):
        assert open_source(path).read().num_rows == 30
    with pytest.warns(TableWarning, match="total"):
        assert open_source(path).read(["n"]).num_rows == 30
    path.write_text(f"key,n,city\n{rows}Total,435,x\n")  # may well be a row
    assert open_source(path).read().num_rows == 31
    path.write_text(f"key,n,city\nTotal,435,\n{rows}")  # not the last
    assert open_source(path).read().num_rows == 31
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["key", "n", "city"], *([f"r{i}", i, "x"] for i in range(30)), ["Summe", 435]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    with pytest.warns(TableWarning, match="the last row is a total and left out: 'Summe, 435'"):
        assert open_source(tmp_path / "a.xlsx").read().num_rows == 30


def test_names_again_are_no_row_and_lines_are_still_right(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    half = [f"r{i},{i}" for i in range(60)]
    path.write_text("\n".join(["key,n", *half[:30], "key,n", *half[30:]]) + "\n")
    source = open_source(path)
    with pytest.warns(TableWarning, match="1 line with the column names again, left out"):
        table = source.read()
    assert table["key"].to_pylist() == [f"r{i}" for i in range(60)]
    assert [source.lines_at([row])[row].line for row in (30, 31)] == [31, 33]
    one = tmp_path / "one.csv"
    one.write_text("city\n" + "Oslo\ncity\n" * 10)
    assert open_source(one).read().num_rows == 20


def test_marks_in_the_middle_are_not_seen(tmp_path: Path) -> None:
    """Also where a mark lies over the end of what is read at once."""
    rows = "".join(f"r{i:05},1\n" for i in range(7000))
    for shift in range(9):
        text = "k" * shift + "ey,n\n" + rows + "\ufeffz,1\n" * 4000
        path = tmp_path / f"{shift}.csv"
        path.write_text(text, encoding="utf8")
        keys = open_source(path).read()[0].to_pylist()
        assert not any("\ufeff" in key for key in keys)
        assert keys[-4000:] == ["z"] * 4000
