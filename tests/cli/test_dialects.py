"""A stranger's file on the command line: understood in one attempt, or asked about."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import aloof as package
from aloof.cli.app import app
from aloof.exceptions import MissingExtraError
from aloof.models.table import TableModel, open_source, write_table

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "files"
SHORT = ["--method", "dp", "--members", "1", "--epochs", "2"]
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def aloof(*arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "bookings.py"))["write"](Path("bookings"), 600)
    return tmp_path


def test_the_export_of_the_documents_needs_one_attempt(here: Path) -> None:
    document = (ROOT / "docs" / "tables.md").read_text()
    (command,) = re.findall(r"^\$ (aloof fit bookings.*)$", document, re.MULTILINE)
    done = aloof(*shlex.split(command)[1:], *SHORT)
    assert done.exit_code == 0, done.stderr
    said = re.findall(r"^(Read .*|warning: bookings.*)$", document, re.MULTILINE)
    assert len(said) == 5
    told = f"{done.stdout}{done.stderr}"
    for line in said:  # but for counts and examples, which are of more rows there
        assert re.sub(r"\d[\d,.]*|'[\d.,/]+'|\d+ \w+ \d{4}", "N", line) in re.sub(
            r"\d[\d,.]*|'[\d.,/]+'|\d+ \w+ \d{4}", "N", told
        )
    done = aloof("score", "model", "bookings/februar.csv", "--out", "scores.xlsx")
    assert done.exit_code == 0, done.stderr
    assert "Read bookings/februar.csv: separated by semicolons, written in" in done.stderr
    scores = open_source("scores.xlsx").read()
    assert scores.num_rows == 200
    assert scores["Beleg"].to_pylist()[:2] == ["R2-00000", "R2-00001"]
    model = TableModel.load("model", device="cpu")
    expected = model.anomaly_score("bookings/februar.csv")
    np.testing.assert_allclose(scores["anomaly_score"].to_numpy(), expected, rtol=1e-14)
    shown = aloof("info", "model").stdout
    assert "Rows are identified by  column Beleg\n" in shown
    assert "'Betrag' as numbers" in shown
    found = json.loads(aloof("info", "model", "--json").stdout)
    assert [c["read_as"] is None for c in found["columns"]] == [False, True, False, False, True]
    for command in ("explain", "report"):
        out = ["--out", "r.html"] if command == "report" else []
        assert aloof(command, "model", "bookings/februar.csv", *out).exit_code == 0


def test_the_story_of_the_readme_needs_one_attempt(here: Path) -> None:
    """A file as it comes, two months later another one, the worst of it, and why."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (block,) = [block for block in blocks if "bookings.py" in block]
    first, fit, score, explain, report = map(shlex.split, block.splitlines())
    assert first == ["python", "examples/bookings.py", "bookings"]  # `here` did that
    done = aloof(*fit[1:], "--members", 2, "--epochs", 20)
    assert done.exit_code == 0, done.stderr
    assert "day first" in done.stdout
    refused = aloof(*(word for word in score[1:] if word not in ("--missing-columns", "fill")))
    assert refused.exit_code == 2
    assert "no column 'Ort'" in refused.stderr
    assert "--missing-columns fill" in refused.stderr
    done = aloof(*score[1:])
    assert done.exit_code == 0, done.stderr
    assert "`Ort`: the column is gone" in done.stderr
    assert "`Konto`: 5 % of the values were never seen in training: 'Spenden'" in done.stderr
    assert "20 flagged (the 20 highest scores)" in done.stdout
    worst = open_source("worst.xlsx").read()
    assert worst.num_rows == 20
    assert worst.column_names[:5] == ["Beleg", "Betrag", "Konto", "Menge", "Buchung"]
    scores = worst["anomaly_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    wrong = {f"R3-{i:05}" for i in wrong_of(here)}
    assert wrong <= {*worst["Beleg"].to_pylist()}  # all four that have ten times the amount
    reasons = worst["reason_1"].to_pylist() + worst["reason_2"].to_pylist()
    assert not any("`Ort`" in (words or "") for words in reasons)
    known = sorted(wrong)[0]
    done = aloof(*(known if word == "R3-00176" else word for word in explain[1:]))
    assert done.exit_code == 0, done.stderr
    assert re.search(rf"row \d+ \(line \d+\)  Beleg {known}  anomaly score", done.stdout)
    assert "`Betrag`" in done.stdout
    done = aloof(*report[1:])
    assert done.exit_code == 0, done.stderr
    page = Path("maerz.html").read_text()
    assert "<code>Konto</code>: 5 % of the values were never seen in training" in page
    assert "Ort (filled)" in page


def wrong_of(here: Path) -> list[int]:
    """Return which bookings of March have ten times the amount that goes with the quantity."""
    rows = open_source(here / "bookings" / "maerz.csv").read()
    read = [
        [float(v.replace(".", "").replace(",", ".")) for v in rows[name].to_pylist()]
        for name in ("Betrag", "Menge")
    ]
    return [i for i, (amount, n) in enumerate(zip(*read, strict=True)) if amount > 0.5 * n]


def test_what_is_asked_is_answered_once(here: Path) -> None:
    data, label = FILES / "de-integers.csv", []
    asked = aloof("fit", data, "--out", "m", *label, *SHORT)
    assert asked.exit_code == 2
    assert asked.stdout == ""
    assert "--thousands ." in asked.stderr
    assert not Path("m").exists()
    answered = aloof("fit", data, "--thousands", ".", "--out", "m", *SHORT)
    assert answered.exit_code == 0, answered.stderr
    assert "as you said" in answered.stdout
    read = TableModel.load("m", device="cpu").encoder.read(open_source(data).read())["Menge"]
    assert read.min() >= 1000
    assert aloof("score", "m", data, "--out", "s.csv").exit_code == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("de-integers-said.csv", ["--thousands", "."]),
        ("sign-by-column.csv", ["--thousands", "Alt=."]),
        ("sign-by-column.csv", ["--decimal", "Alt=,", "--decimal", "Neu=."]),
        ("days-below-13-day-first.csv", ["--day-first"]),
        ("days-below-13-month-first.csv", ["--month-first"]),
        ("short-years-with-dashes-said.csv", ["--date-format", "date=%y-%m-%d"]),
        ("no-header-said.csv", ["--no-header"]),
        ("pl-zloty.csv", ["--encoding", "cp1250"]),
        ("sap-list.txt", ["--format", "csv", "--delimiter", "|"]),
    ],
)
def test_what_was_said_is_in_the_command_that_makes_it_again(
    name: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for out in ("one", "two"):
        words: list[str] = ["fit", str(FILES / name), *options, "--out", "one", *SHORT]
        if out == "two":
            made = json.loads(aloof("info", "one", "--json").stdout)["again"][0]
            assert all(option in shlex.split(made) for option in options)
            words = ["two" if word == "MODEL" else word for word in shlex.split(made)[1:]]
        done = aloof(*words)
        assert done.exit_code == 0, done.stderr
    manifests = [Path(out, "manifest.json").read_bytes() for out in ("one", "two")]
    assert manifests[0] == manifests[1]
    # And nothing has to be said to score, but for the format that the ending does not tell.
    format = ["--format", "csv"] if name.endswith(".txt") else []
    assert aloof("score", "one", FILES / name, "--out", "s.csv", *format).exit_code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--decimal", ";"], "must be one of '.', ','"),
        (["--decimal", "Betrag=,", "--decimal", "."], "--decimal must be COLUMN=DECIMAL"),
        (["--date-format", "%d"], "--date-format must be COLUMN=FORMAT"),
        (["--date-format", "Datum=%Q"], "is not a date format"),
        (["--date-format", "Datum=%Y"], "cannot be read as times written as '%Y'"),
        (["--kind", "Region=number"], "in line 2"),
        (["--sheet", "1"], "A sheet does not apply to csv files"),
        (["--decimal", "Betrug=,"], "no column 'Betrug' (did you mean 'Betrag'?)"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    options: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = aloof("fit", FILES / "de-export.csv", "--out", "m", *options, *SHORT)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::aloof.exceptions.TableWarning")
def test_an_archive_with_one_table_is_a_table(tmp_path: Path) -> None:
    model = package.fit(FILES / "export.zip", method="vae", members=1, max_epochs=1)
    assert isinstance(model, TableModel)
    assert "Betrag" in model.columns
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("a.png", b"no image")
    with pytest.raises(package.exceptions.ImageError):
        package.fit(tmp_path / "images.zip")


def test_workbooks_are_written_the_same_each_time(tmp_path: Path) -> None:
    table = open_source(FILES / "line-ends-in-values.csv").read()
    table = table.append_column("formula", [["=1+1"] * table.num_rows])
    table = table.append_column("odd", [["a\x01b"] * table.num_rows])
    for name in ("one.xlsx", "two.xlsx"):
        write_table(tmp_path / name, table)
    assert (tmp_path / "one.xlsx").read_bytes() == (tmp_path / "two.xlsx").read_bytes()
    again = open_source(tmp_path / "one.xlsx").read()
    assert again["note"].to_pylist() == table["note"].to_pylist()
    assert set(again["formula"].to_pylist()) == {"=1+1"}
    assert set(again["odd"].to_pylist()) == {"ab"}


def test_without_openpyxl_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"openpyxl.*pip install 'aloof\[excel\]'"):
        open_source(tmp_path / "a.xlsx")
