"""Files as the world writes them: understood as their statements say, asked about, or refused.

What each file must be is in the ``.json`` beside it; `make.py` wrote both.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import aloof
from aloof.exceptions import TableError, TableWarning
from aloof.models.table import TableEncoder, open_source
from aloof.models.table.dialects import Wishes
from aloof.models.table.dialects.layouts import as_layout

HERE = Path(__file__).parent
STATEMENTS = {
    path.name.removesuffix(".json"): json.loads(path.read_text(encoding="utf8"))
    for path in sorted(HERE.glob("*.json"))
}
FILE_OPTIONS = {"format", "delimiter", "encoding", "sheet", "header"}


def test_there_are_enough_and_each_has_a_statement() -> None:
    named = {path.name for path in HERE.iterdir() if path.suffix not in (".py", ".json")}
    named -= {"__pycache__"}
    assert len(STATEMENTS) >= 100
    assert named == {name for name, said in STATEMENTS.items() if "cells" not in said}
    for said in STATEMENTS.values():
        assert said["says"]
        assert {"columns", "asks", "refuses"} & set(said)


def test_the_files_are_those_that_the_script_makes(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make", HERE / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {p.name: p.read_bytes() for p in HERE.iterdir() if p.is_file() and p.suffix != ".py"}
    assert sorted(made) == sorted(kept)
    packed = (".bz2", ".gz", ".xz", ".zip")  # other bytes by another library
    assert [n for n in made if made[n] != kept[n] and not n.endswith(packed)] == []


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(
                [
                    dt.datetime.fromisoformat(cell["date"]) if isinstance(cell, dict) else cell
                    for cell in row
                ]
            )
    book.save(path)


def path_of(name: str, said: dict[str, Any], folder: Path) -> Path:
    if "cells" not in said:
        return HERE / name
    workbook(folder / name, said["cells"])
    return folder / name


def encoder_of(table: pa.Table, options: dict[str, Any]) -> TableEncoder:
    layouts = {c: as_layout(f) for c, f in options.get("date_formats", {}).items()}
    wishes = Wishes(
        options.get("decimal"), options.get("thousands"), options.get("day_first"), layouts
    )
    return TableEncoder.fit(table, kinds=options.get("kinds"), wishes=wishes)


def understood(path: Path, options: dict[str, Any]) -> tuple[pa.Table, TableEncoder, str, list]:
    of_file = {name: options[name] for name in options if name in FILE_OPTIONS}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = open_source(path, **of_file)
        table = source.read()
        encoder = encoder_of(table, options)
    assert all(issubclass(one.category, TableWarning) for one in caught)
    told = [str(one.message) for one in caught] + list(encoder.warnings)
    return table, encoder, source.understood, told


@pytest.mark.parametrize("name", STATEMENTS)
def test_what_a_file_says_is_understood_asked_or_refused(name: str, tmp_path: Path) -> None:
    said = STATEMENTS[name]
    path, options = path_of(name, said, tmp_path), said.get("options", {})
    expected = said.get("asks") or said.get("refuses")
    if expected:
        # Only a fit knows the lines of values.
        reads = aloof.fit if "in line" in " ".join(expected) else understood
        with pytest.raises(TableError) as caught:
            reads(path, **({"options": options} if reads is understood else options))
        for part in expected:
            assert part in str(caught.value)
        assert "\n" not in str(caught.value)
        return
    table, encoder, words, told = understood(path, options)
    assert table.num_rows == said["rows"]
    for part in said.get("understood", ()):
        assert part in words
    read = encoder.read(table)
    kinds = {column.name: column for column in encoder.columns}
    for column, truth in said["columns"].items():
        assert kinds[column].kind == truth["kind"]
        same(read[column], truth["values"])
        assert truth.get("said", "") in encoder.readings.get(column, "")
        if "unit" in truth:
            assert kinds[column].dialect.unit == truth["unit"]
    for column, called in said.get("left_out", {}).items():
        assert called in encoder.dropped[column]
        assert any(repr(column) in line for line in told)
    for part in said.get("warns", ()):
        assert any(part in line for line in told), told
    # What goes without saying is not said, and nothing else is warned of.
    expected_about = [*said.get("left_out", {}), *said.get("warns", ())]
    constant = [c for c, truth in said["columns"].items() if truth["kind"] == "constant"]
    about = len([line for line in told if not any(repr(c) in line for c in constant)])
    assert about <= len(expected_about), told


def same(read: np.ndarray, truth: list[Any]) -> None:
    """Check that values are those that were written."""
    assert len(read) == len(truth)
    if read.dtype.kind == "f":
        wanted = np.array([math.nan if value is None else value for value in truth])
        np.testing.assert_allclose(read, wanted, rtol=1e-12)
    elif read.dtype.kind == "M":
        wanted = np.array(["NaT" if v is None else v for v in truth], "datetime64[s]")
        np.testing.assert_array_equal(read, wanted)
    elif read.dtype.kind == "m":
        assert read.astype(int).tolist() == truth
    else:
        assert read.tolist() == truth


# From the fit to scores: what was understood is applied to the next file without a word.

SHORT = {"members": 1, "max_epochs": 2, "hidden": (8,), "latent_dim": 2, "method": "vae"}


@pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")
@pytest.mark.filterwarnings("ignore::aloof.exceptions.TableWarning")
@pytest.mark.parametrize(
    "name",
    [
        "de-export.csv",
        "de-integers-said.csv",
        "days-below-13-month-first.csv",
        "no-header-said.csv",
        "short-years-with-dashes-said.csv",
        "book-second-sheet.xlsx",
        "sap-export.tsv",
    ],
)
def test_a_model_reads_the_next_file_as_it_read_the_first(name: str, tmp_path: Path) -> None:
    said = STATEMENTS[name]
    path, options = path_of(name, said, tmp_path), said.get("options", {})
    model = aloof.fit(path, **options, **SHORT)
    model.save(tmp_path / "model")
    loaded = aloof.load(tmp_path / "model", device="cpu")
    table = loaded.read(path).read()
    for column, truth in said["columns"].items():
        same(loaded.encoder.read(table)[column], truth["values"])
    np.testing.assert_array_equal(loaded.anomaly_score(path), model.anomaly_score(path))
    assert loaded.understood == model.understood


@pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")
def test_another_delimiter_and_encoding_are_found_anew(tmp_path: Path) -> None:
    path = HERE / "de-export.csv"
    model = aloof.fit(path, **SHORT)
    text = path.read_bytes().decode("cp1252")
    (tmp_path / "new.csv").write_bytes(text.replace(";", "\t").encode("utf-16"))
    np.testing.assert_array_equal(
        model.anomaly_score(tmp_path / "new.csv"), model.anomaly_score(path)
    )


@pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")
def test_values_that_do_not_fit_the_dialect_are_counted_and_said() -> None:
    model = aloof.fit(HERE / "de-export.csv", **SHORT)
    table = open_source(HERE / "de-export.csv").read().slice(0, 4)
    betrag = pa.array(["12.50", "1.234,5", "12,50 $", "7,25"])
    datum = pa.array(["31/12/2024", "12/31/2024", "31/02/2024", "2024-12-31"])
    table = table.set_column(0, "Betrag", betrag).set_column(3, "Datum", datum)
    counted: list[Any] = []
    said: list[Any] = []
    model.encoder.transform(table, warn=said.append, unreadable=counted.append)
    found = {(one.column, one.what): one for one in counted}
    assert found["Betrag", "numbers"].n_unreadable == 2
    assert found["Betrag", "numbers"].n_values == 4
    assert found["Betrag", "numbers"].examples == ("12.50", "12,50 $")
    assert found["Datum", "days of a calendar"].examples == ("12/31/2024", "31/02/2024")
    assert len(said) == 2
    assert model.encoder.read(table)["Betrag"][[1, 3]].tolist() == [1234.5, 7.25]
