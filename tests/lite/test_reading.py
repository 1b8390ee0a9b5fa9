"""Cells and files as the torch-free scorer reads them: as `aloof.models.table` does."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aloof.exceptions import TableError
from aloof.export.writing import described
from aloof.lite.columns import Unread, column_of
from aloof.lite.delimited import open_rows
from aloof.models.table import TableEncoder, open_source
from aloof.models.table.columns.reading import read_numbers, read_seconds
from aloof.models.table.dialects import NumberDialect, TimeDialect, Wishes
from aloof.models.table.dialects.layouts import as_layout
from aloof.written.numbers import read_number
from aloof.written.times import read_time

FILES = Path(__file__).parents[1] / "files"
STATEMENTS = {
    path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf8"))
    for path in sorted(FILES.glob("*.json"))
}
READ = [
    name
    for name, said in STATEMENTS.items()
    if "columns" in said and name.endswith((".csv", ".tsv", ".gz", ".bz2", ".xz"))
]

NUMBERS = [
    NumberDialect(),
    NumberDialect(",", "."),
    NumberDialect("", ""),
    NumberDialect(".", ","),
    NumberDialect(",", ".", "EUR"),
    NumberDialect(".", "", "%", False),
]
TIMES = [
    TimeDialect(),
    TimeDialect("dmy"),
    TimeDialect("mdy"),
    TimeDialect("ymd"),
    TimeDialect(compact=True),
    TimeDialect(clock=True),
    TimeDialect(epoch="ms"),
]
PIECES = [
    *"0123456789.,' -+()%e",
    "€",
    "EUR",
    " kg",
    "inf",
    "nan",
    "n/a",
    "\u2212",
    "\xa0",
    '="',
]
HOURS = ["", " 07:05", "T23:59:59", " 5 pm", " 25:00", " 12:30:15.25", " 9:30 am"]
ZONES = ["", "Z", "+02:00", " -0530", " CET", "+02"]
DAYS = ["2024-02-29", "2023-02-29", "31.12.1999", "3/4/24", "13/04/2024", "4/13/2024", "5.6.7"]
DAYS += ["1. März 2024", "Mar 5, 2024", "20240131", "Mon, 4 Mar 2024", "", "soon", "1700000000"]


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read_as_the_models_of_tables_read_it(name):
    options = STATEMENTS[name].get("options", {})
    reading = {k: v for k, v in options.items() if k in ("delimiter", "encoding", "header")}
    wishes = {k: v for k, v in options.items() if k in ("decimal", "thousands", "day_first")}
    layouts = {k: as_layout(v) for k, v in options.get("date_formats", {}).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = open_source(FILES / name, format=options.get("format"), **reading)
        table = source.read()
        encoder = TableEncoder.fit(
            table, kinds=options.get("kinds"), wishes=Wishes(layouts=layouts, **wishes)
        )
    rows = open_rows(str(FILES / name), **reading)
    cells = [row for batch in rows.batches(100) for row in batch]
    assert rows.names == tuple(table.column_names)
    assert len(cells) == table.num_rows
    understood = encoder.read(table)
    for column in encoder.columns:
        place = rows.names.index(column.name)
        found = column_of(described(column)).read(
            [row[place] for row in cells], Unread(column.name, "")
        )
        wanted = understood[column.name]
        if wanted.dtype.kind in "mM":
            wanted = np.where(np.isnat(wanted), np.nan, wanted.astype(np.int64).astype(float))
            found = np.floor(found)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(found, wanted, rtol=1e-12, err_msg=column.name)
        elif column.kind != "boolean":  # whose words the graph knows
            assert found.tolist() == [value or "" for value in wanted]


def test_enough_files_are_read():
    assert len(READ) > 80


def same(found, wanted, is_read):
    if not is_read:
        return found is None
    return found is not None and (
        math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-6)
        or (math.isnan(found) and math.isnan(wanted))
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.sampled_from(NUMBERS))
def test_a_number_is_read_as_in_an_array(text, dialect):
    array = read_numbers("x", pa.array([text]), dialect)
    assert same(read_number(text, dialect), array.values[0], not array.n_unread)


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(*map(st.sampled_from, (DAYS, HOURS, ZONES))).map("".join),
    st.sampled_from(TIMES),
    st.sampled_from([None, "Europe/Berlin", "+05:30"]),
)
def test_a_time_is_read_as_in_an_array(text, dialect, zone):
    array = read_seconds("x", pa.array([text]), zone, dialect)
    assert same(read_time(text, dialect, zone), array.values[0], not array.n_unread)


@pytest.mark.parametrize("pattern", ["%d.%m.%Y", "%d %b %Y %H:%M%z"])
def test_a_time_in_a_pattern_is_read_as_in_an_array(pattern):
    for text in ("31.12.2023", "31.02.2023", "", "5 Mar 2024 07:30+0530", "x", " 01.02.2024 "):
        array = read_seconds("x", pa.array([text]), "Europe/Berlin", TimeDialect(), pattern)
        found = read_time(text, TimeDialect(), "Europe/Berlin", pattern)
        assert same(found, array.values[0], not array.n_unread)


def test_an_unknown_zone_says_what_to_install():
    with pytest.raises(TableError, match=r"'Nowhere/Land' is unknown.*tzdata"):
        read_time("2024-01-01T00:00:00Z", TimeDialect(), "Nowhere/Land")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n1,2,3\n4,5\n", "near row 2 a line has 3 values, but the header has 2"),
        ("a,b\n1,2\n3\n4,5\n", "near row 2 a line has 1 value, but the header has 2"),
        ("7,2\n3,4\n5,6\n", "has no line of column names"),
        ('a,b\n1,2\n3,"4\n5,6\n', "a quotation mark is never closed|1 value"),
        ("a\0b\0\x01\0\0\0\n", "is not a text file"),
    ],
)
def test_what_is_no_table_is_told(text, words, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(TableError, match=words):
        list(open_rows(str(path)).batches(10))


def test_lines_around_a_table_are_left_out_and_told(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b,c\n1,2,x\na,b,c\n3,4,y\nTotal,6,\n")
    rows = open_rows(str(path))
    assert list(rows.batches(10)) == [[["1", "2", "x"], ["3", "4", "y"]]]
    assert len(rows.warnings) == 2
    path.write_text("a,b\n1,2\n3,4\nprinted on Monday\n")
    rows = open_rows(str(path))
    assert list(rows.batches(1)) == [[["1", "2"]], [["3", "4"]]]
    assert "ignored 1 line at the end" in rows.warnings[0]
