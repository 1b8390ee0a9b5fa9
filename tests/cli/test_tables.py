"""The commands for tables, as a user types them."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import runpy
import shlex
import signal
import subprocess
import sys
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner, Result

import aloof as package
from aloof.cli.app import app
from aloof.models.table import TableModel, fit, open_source
from aloof.persistence import identity

ROOT = Path(__file__).parents[2]
SHORT = ["--method", "dp", "--members", "2", "--epochs", "10"]


def aloof(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's files, and a model of them that nobody may change."""
    folder = tmp_path_factory.mktemp("payments")
    write = runpy.run_path(str(ROOT / "examples" / "payments.py"))["write"]
    train, _ = write(folder, 1500)
    arguments = ["--label", "fraud", "--id", "payment", "--out", str(folder / "model")]
    done = aloof("fit", str(train), *arguments, *SHORT)
    assert done.exit_code == 0, done.stderr
    return folder


@pytest.fixture
def here(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with the same files, which the commands run in."""
    for name in ("train.csv", "new.parquet", "model"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(done: Result, *parts: str) -> None:
    """Check that a command ended with one line that says these things, and code 2."""
    assert done.exit_code == 2, done.output
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith("warning: ")] == [lines[-1]], lines
    assert lines[-1].startswith("aloof: ")
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in lines[-1], lines[-1]
    assert done.stdout == ""


def commands(document: str) -> list[str]:
    """Return the commands for tables in a document."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    block = next(block for block in blocks if "aloof fit" in block)
    return [line.partition("  #")[0] for line in block.splitlines()]


def test_the_commands_of_the_documents_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are written there, but for a shorter training."""
    monkeypatch.chdir(tmp_path)
    lines = commands("README.md")
    lines += [line for line in commands("docs/tables.md") if line not in lines]
    assert len(lines) == 8
    for line in lines:
        program, *arguments = shlex.split(line)
        if program == "python":
            assert arguments[0] == "examples/payments.py"
            runpy.run_path(str(ROOT / arguments[0]))["write"](Path(arguments[1]), 1500)
            continue
        assert program == "aloof"
        done = aloof(*arguments, *(SHORT if arguments[0] == "fit" else []))
        assert done.exit_code == 0, (line, done.stderr, done.exception)
        assert done.stderr == "", line
    scores = open_source("scores.csv").read()
    assert scores.num_rows == 750
    names = ["payment", "anomaly_score", "p_value", "is_anomaly", "reason_1"]
    assert scores.column_names[:5] == names
    table = open_source("payments/new.parquet").read()
    written = TableModel.load("model").anomaly_score(table)
    assert np.array_equal([float(v) for v in scores["anomaly_score"].to_pylist()], written)
    assert Path("report.html").read_text().rstrip().endswith("</html>")


def test_the_example_has_what_it_says(folder: Path) -> None:
    train = open_source(folder / "train.csv").read()
    labels = train["fraud"].to_pylist()
    assert labels.count("1") == 15
    assert labels.count("0") == 0
    new = open_source(folder / "new.parquet").read()
    assert set(new["fraud"].to_pylist()) == {0, 1}
    assert {"KY", "VG", "PA"} & set(new["country"].to_pylist())
    assert not {"KY", "VG", "PA"} & set(train["country"].to_pylist())
    model = TableModel.load(folder / "model")
    kinds = {column.kind for column in model.encoder.columns}
    assert kinds == {"number", "category", "boolean", "timestamp"}
    assert any(column.missing_share for column in model.encoder.columns)


def test_fit_says_what_it_did_and_leaves_the_model_alone(here: Path) -> None:
    before = sorted(os.listdir(here))
    done = aloof(
        "fit", "train.csv", "--label", "fraud", "--id", "payment", "--out", "b", *SHORT
    )
    assert done.exit_code == 0
    assert "Learned from 1,188 rows and 15 labelled anomalies in 10 columns" in done.stdout
    assert "held out 297 rows" in done.stdout
    assert "aloof score b" in done.stdout
    assert done.stderr == ""
    assert sorted(os.listdir(here)) == sorted([*before, "b"])


def test_two_fits_of_one_seed_are_the_same_bytes(here: Path) -> None:
    for out in ("one", "two"):
        assert (
            aloof("fit", "train.csv", "--label", "fraud", "--out", out, *SHORT).exit_code == 0
        )
    for name in ("manifest.json", "model.safetensors"):
        assert (here / "one" / name).read_bytes() == (here / "two" / name).read_bytes()


def test_fit_as_json(here: Path) -> None:
    done = aloof(
        *("fit", "train.csv", "--label", "fraud", "--id", "payment", "--drop", "age"),
        *("--drop", "terminal", "--kind", "payments_last_hour=category", "--method", "vae"),
        *("--calibration", "0.1", "--seed", "4", "--out", "m", "--json", *SHORT[2:]),
    )
    found = json.loads(done.stdout)
    assert found["training"]["n_calibration"] == 148
    assert found["training"]["seed"] == 4
    assert "age" not in [column["name"] for column in found["columns"]]
    assert found["dropped"]["age"] == "dropped on request"
    model = TableModel.load("m")
    assert type(model.detector).__name__ == "VAE"
    kinds = {column.name: column.kind for column in model.encoder.columns}
    assert kinds["payments_last_hour"] == "category"
    assert model.drop == ("age", "terminal")


def test_fit_from_standard_input_and_a_sample(here: Path) -> None:
    text = (here / "train.csv").read_text()
    label = ["--label", "fraud"]
    done = aloof("fit", "-", *label, "--out", "m", "--max-rows", "600", *SHORT, stdin=text)
    assert done.exit_code == 0, done.stderr
    assert "a sample of 1,500" in done.stdout
    assert TableModel.load("m").training["n_used"] == 615


def test_a_model_is_replaced_only_by_force(here: Path) -> None:
    command = ["fit", "train.csv", "--label", "fraud", "--out", "m", *SHORT]
    assert aloof(*command).exit_code == 0
    first = (here / "m" / "manifest.json").read_bytes()
    refused(aloof(*command), "m already exists", "force")
    assert (here / "m" / "manifest.json").read_bytes() == first
    assert aloof(*command, "--force", "--seed", "1").exit_code == 0
    assert (here / "m" / "manifest.json").read_bytes() != first
    (here / "docs").mkdir()
    (here / "docs" / "mine.txt").write_text("mine")
    command[command.index("m")] = "docs"
    refused(aloof(*command, "--force"), "left alone", "Save to a new folder")
    assert (here / "docs" / "mine.txt").read_text() == "mine"


def test_a_killed_fit_of_other_settings_is_no_hindrance(here: Path) -> None:
    (here / ".m.checkpoint.0").write_bytes(b"half a file")
    done = aloof("fit", "train.csv", "--label", "fraud", "--out", "m", *SHORT)
    assert done.exit_code == 0, done.stderr
    assert "Starting over" in done.stderr
    assert not list(here.glob(".m.*"))


BAD_FILES: dict[str, tuple[bytes, list[str]]] = {
    "empty": (b"", ["empty"]),
    "header only": (b"a,b,fraud\n", ["no rows"]),
    "no header": (b"1;2.5;0\n3;4.5;1\n", ["no line of column names", "--no-header"]),
    "no such label": (b"a,b,frauds\n1,2,0\n", ["'fraud'", "did you mean 'frauds'"]),
    "labels of one's own": (
        b"a,fraud\n1,chargeback\n2,ok\n",
        ["'chargeback' in line 2, 'ok' in line 3", "--anomaly-value"],
    ),
    "every row an anomaly": (b"a,fraud\n1,1\n2,1\n3,1\n", ["3 of 3 rows", "anomalies"]),
    "anomalies in the majority": (b"a,fraud\n1,1\n2,1\n3,0\n", ["2 of 3 rows"]),
    "minus one and one": (b"a,fraud\n1,-1\n2,1\n3,1\n", ["only -1 and 1"]),
    "one row": (b"a,fraud\n1,0\n", ["got 1 row."]),
    "a line too long": (b"a,fraud\n1,0\n2,0,0\n", ["bad.csv"]),
    "no column left": (b"fraud\n1\n0\n0\n", ["no columns"]),
    "twice the same name": (b"a,a,fraud\n1,2,0\n", ["more than one column named 'a'"]),
    "two encodings": ("a,fraud\nÅse,0\n".encode() + b"Bj\xf8rn,0\n", ["UTF-8", "--encoding"]),
    "a thousand or one": (b"a,fraud\n1.234,0\n2.345,0\n3.456,1\n", ["--thousands ."]),
    "day or month": (b"a,fraud\n01/02/2024,0\n02/03/2024,0\n", ["--day-first"]),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_are_one_line_and_leave_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, parts = BAD_FILES[name]
    Path("bad.csv").write_bytes(content)
    refused(aloof("fit", "bad.csv", "--label", "fraud", "--out", "m", *SHORT), *parts)
    assert os.listdir() == ["bad.csv"]


def test_a_corrupt_page_in_the_middle_is_named(here: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=40_000), "fraud": np.zeros(40_000, int)})
    path = here / "bad.parquet"
    pq.write_table(table, path, row_group_size=10_000, write_page_checksum=True)
    raw = bytearray(path.read_bytes())
    middle = pq.ParquetFile(path).metadata.row_group(2).column(0).data_page_offset + 500
    raw[middle : middle + 64] = bytes(64)
    path.write_bytes(raw)
    done = aloof("fit", "bad.parquet", "--label", "fraud", "--out", "m", *SHORT)
    refused(done, "bad.parquet is damaged", "row group 3 of 4", "Get a fresh copy")
    assert not (here / "m").exists()


def test_mixed_types_and_a_million_distinct_texts_are_warned_of(here: Path) -> None:
    n = 2_000
    rng = np.random.default_rng(0)
    lines = ["value,mixed,text,fraud"]
    for i, value in enumerate(rng.normal(size=n)):
        mixed = "oops" if i % 400 == 1 else f"{value:.3f}"
        lines.append(f"{value:.4f},{mixed},note {i},{int(i < 10)}")
    Path("odd.csv").write_text("\n".join(lines) + "\n")
    done = aloof("fit", "odd.csv", "--label", "fraud", "--out", "m", *SHORT)
    assert done.exit_code == 0, done.stderr
    said = done.stderr.splitlines()
    assert len(said) == 2
    assert all(line.startswith("warning: Column ") for line in said)
    assert any("'mixed': " in line and "'oops'" in line for line in said)
    assert any("'text' is free text (1,592" in line for line in said), said


def test_a_full_disk_leaves_nothing_under_the_final_name(here: Path) -> None:
    """A limit on the size of files is as good as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        done = aloof("fit", "train.csv", "--label", "fraud", "--out", "m", *SHORT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    refused(done, "cannot be written")
    assert sorted(os.listdir(here)) == ["model", "new.parquet", "train.csv"]


def test_evaluate(here: Path) -> None:
    done = aloof("evaluate", "model", "new.parquet", "--label", "fraud")
    assert done.exit_code == 0, done.stderr
    assert "750 rows: 15 anomalies, 735 normal" in done.stdout
    assert "swapped" not in done.stderr
    values = set(map(str, open_source("new.parquet").read()["fraud"].to_pylist()))
    (normal,) = (value for value in values if value.lower() in ("0", "0.0", "false", "no"))
    swapped = aloof("evaluate", "model", "new.parquet", "--anomaly-value", normal)
    assert "normal rows score higher than anomalies" in swapped.stderr
    found = json.loads(aloof("evaluate", "model", "new.parquet", "--json").stdout)
    expected = TableModel.load("model").evaluate(open_source("new.parquet").read())
    assert found == {
        **expected.as_dict(),
        "data": "new.parquet",
        "date": found["date"],
        "model": identity("model"),
    }
    assert found["auroc"] > 0.8
    refused(
        aloof("evaluate", "model", "new.parquet", "--label", "frod"), "did you mean 'fraud'"
    )
    refused(aloof("evaluate", "model", "train.csv"), "no rows labelled as normal")
    refused(
        aloof("evaluate", "model", "new.parquet", "--label", "country"),
        "Cannot read the labels",
        "--anomaly-value",
    )
    by_shop = ["--label", "shop", "--anomaly-value", "fuel"]
    with_shop = aloof("evaluate", "model", "new.parquet", *by_shop, "--json")
    shops = open_source("new.parquet").read()["shop"].to_pylist()
    assert json.loads(with_shop.stdout)["n_anomalies"] == shops.count("fuel")


def test_explain_shows_the_most_anomalous_rows(here: Path) -> None:
    done = aloof("explain", "model", "new.parquet", "--top", "4", "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    table = open_source("new.parquet").read()
    model = TableModel.load("model")
    scores = model.anomaly_score(table)
    best = np.argsort(-scores, kind="stable")[:4]
    assert found["n_rows"] == 750
    assert [row["row"] - 1 for row in found["rows"]] == best.tolist()
    assert [row["anomaly_score"] for row in found["rows"]] == scores[best].tolist()
    assert [row["id"] for row in found["rows"]] == table["payment"].take(best).to_pylist()
    assert [row["p_value"] for row in found["rows"]] == model.p_values(table)[best].tolist()
    assert all(row["is_anomaly"] for row in found["rows"])
    reasons = model.reasons(table.take(best), top=3)
    assert [[r["words"] for r in row["reasons"]] for row in found["rows"]] == reasons
    shown = aloof("explain", "model", "new.parquet", "--top", "4", "--reasons", "1").stdout
    assert shown.startswith("The 4 most anomalous of 750 rows:")
    assert f"row {best[0] + 1:,}  payment {found['rows'][0]['id']}" in shown
    assert reasons[0][0] in shown
    assert shown.count("`") == 8


def test_explain_holds_no_more_rows_than_it_shows_however_they_come(here: Path) -> None:
    """The rows of a file in pieces, from standard input, in any order of scores."""
    table = open_source("new.parquet").read()
    whole = json.loads(aloof("explain", "model", "new.parquet", "--top", "7", "--json").stdout)
    (here / "parts").mkdir()
    for i in range(5):
        pq.write_table(table.slice(150 * i, 150), here / "parts" / f"{i}.parquet")
    parts = json.loads(aloof("explain", "model", "parts", "--top", "7", "--json").stdout)
    assert parts == whole
    sink = io.BytesIO()
    pa_csv.write_csv(table, sink)
    text = sink.getvalue().decode()
    piped = json.loads(
        aloof("explain", "model", "-", "--top", "7", "--json", stdin=text).stdout
    )
    assert [row["id"] for row in piped["rows"]] == [row["id"] for row in whole["rows"]]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--budget", "50/10000"], {"budget": "50/10000"}),
        (["--fdr", "0.2"], {"fdr": 0.2}),
        (["--share", "0.02"], {"share": 0.02}),
        (["--value", "3.5"], {"value": 3.5}),
    ],
)
def test_threshold_changes_decisions_and_nothing_else(
    here: Path, options: list[str], rule: dict[str, Any]
) -> None:
    model = TableModel.load("model")
    (here / "model").unlink()
    model.save("model")
    before = (here / "model" / "model.safetensors").read_bytes()
    done = aloof("threshold", "model", *options, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["rule"] == rule
    assert (here / "model" / "model.safetensors").read_bytes() == before
    back = TableModel.load("model")
    assert back.threshold.as_dict() == rule
    shown = aloof("threshold", "model")
    assert str(back.threshold) in shown.stdout
    table = open_source("new.parquet").read()
    expected = model.set_threshold(**rule).is_anomaly(table)
    assert np.array_equal(back.is_anomaly(table), expected)


def test_thresholds_that_make_no_sense_are_refused(here: Path) -> None:
    before = (here / "model" / "manifest.json").read_bytes()
    for options, part in (
        (["--budget", "50"], "alerts/rows"),
        (["--share", "2"], "between 0 and 1"),
        (["--fdr", "nan"], "between 0 and 1"),
        (["--share", "0.1", "--fdr", "0.1"], "exactly one rule"),
    ):
        refused(aloof("threshold", "model", *options), part)
    assert (here / "model" / "manifest.json").read_bytes() == before


def test_too_few_calibration_rows_for_a_rate_are_warned_of(here: Path) -> None:
    model = TableModel.load("model")
    (here / "model").unlink()
    model.save("model")
    done = aloof("threshold", "model", "--share", "0.0001")
    assert done.exit_code == 0
    assert done.stderr.startswith("warning: 297 calibration rows are too few for 0.01 %")
    assert len(done.stderr.splitlines()) == 1


def test_info(here: Path) -> None:
    done = aloof("info", "model")
    assert done.exit_code == 0, done.stderr
    for part in ("DualPriorVAE", "1,500 rows", "fraud: 15 anomalies", "timestamp", "again"):
        assert part in done.stdout
    found = json.loads(aloof("info", "model", "--json").stdout)
    assert found["id"] == "payment"
    assert [c["name"] for c in found["columns"]] == list(TableModel.load("model").columns)
    assert found["training"] == TableModel.load("model").training


@pytest.mark.parametrize(
    "command",
    [
        ["info", "nothing"],
        ["threshold", "nothing", "--share", "0.1"],
        ["evaluate", "nothing", "new.parquet"],
        ["explain", "nothing", "new.parquet"],
    ],
)
def test_a_model_folder_that_is_none_is_said(here: Path, command: list[str]) -> None:
    refused(aloof(*command), "nothing is not an aloof model", "Name the folder")
    (here / "nothing").mkdir()
    refused(aloof(*command), "nothing is not an aloof model")


@pytest.mark.parametrize("command", ["explain", "evaluate"])
def test_data_that_is_not_there_or_does_not_fit_is_said(here: Path, command: str) -> None:
    refused(aloof(command, "model", "nowe.parquet"), "did you mean 'new.parquet'")
    Path("other.csv").write_text("payment,amount,fraud\nx,1,0\n")
    refused(aloof(command, "model", "other.csv"), "no columns 'time'", "trained on")
    refused(aloof(command, "model", "new.parquet", "--format", "xml"), "csv, tsv, parquet")


def test_extra_columns_are_one_warning_however_many_batches(here: Path) -> None:
    table = open_source("new.parquet").read()
    many = pa.concat_tables([table] * 100)  # more than one batch
    pq.write_table(many.append_column("extra", many["age"]), "wide.parquet")
    done = aloof("explain", "model", "wide.parquet", "--top", "1")
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        "warning: The model was not trained on these columns and ignores them: 'extra'."
    ]


def test_debug_shows_the_traceback_wherever_it_stands(here: Path) -> None:
    from aloof.exceptions import ModelError

    for command in (["--debug", "info", "nothing"], ["info", "nothing", "--debug"]):
        done = aloof(*command)
        assert isinstance(done.exception, ModelError)
    assert aloof("--debug", "info", "model").exit_code == 0


def test_the_command_itself_ends_with_the_code_it_documents(here: Path) -> None:
    source = str(Path(package.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", "from aloof.cli import main; main()", "info", "nothing"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("aloof: nothing is not an aloof model")
    assert len(done.stderr.splitlines()) == 1
    assert aloof("info").exit_code == 2


def test_what_nobody_thought_of_is_one_line_and_code_1(monkeypatch: Any, capsys: Any) -> None:
    from aloof.cli import app as module
    from aloof.cli import main

    def broken() -> None:
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr(module, "app", broken)
    monkeypatch.setattr(sys, "argv", ["aloof", "fit"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == (
        "aloof: RuntimeError: out of luck. This is a bug in aloof. "
        "Add --debug to see where it happened.\n"
    )
    monkeypatch.setattr(sys, "argv", ["aloof", "fit", "--debug"])
    with pytest.raises(RuntimeError):
        main()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory."),
            "The GPU ran out of memory. nvidia-smi",
        ),
        (MemoryError("Unable to allocate 9 TiB"), "There is not enough memory. Add --debug"),
        (RuntimeError("can't allocate memory: 9 bytes"), "There is not enough memory. Add"),
    ],
)
def test_too_little_memory_is_no_bug(
    monkeypatch: Any, capsys: Any, error: Exception, words: str
) -> None:
    from aloof.cli import app as module
    from aloof.cli import main

    def full() -> None:
        raise error

    monkeypatch.setattr(module, "app", full)
    monkeypatch.setattr(sys, "argv", ["aloof", "fit"])
    with pytest.raises(SystemExit, match="1"):
        main()
    said = capsys.readouterr().err
    assert said.startswith(f"aloof: {words}")
    assert str(error) in said
    assert "is a bug" not in said


def test_an_interruption_is_code_130(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @wraps(fit)
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("aloof.models.table.fit", interrupted)
    done = aloof("fit", "train.csv", "--label", "fraud", "--out", "m")
    assert done.exit_code == 130
    assert "Run the same command again to continue." in done.stderr


@pytest.mark.parametrize(
    "command", ["fit", "evaluate", "explain", "calibrate", "threshold", "info"]
)
def test_help_teaches_with_an_example(command: str) -> None:
    done = aloof(command, "--help")
    assert done.exit_code == 0
    assert f"aloof {command} " in done.output
    assert "Example" in done.output


def test_hidden_anomalies_are_said_where_people_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the anomalies is labelled; the others are among the rows nobody looked at."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[:40, 0] += 6
    labels = ["yes"] * 12 + [""] * 488
    pa_csv.write_csv(
        pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "bad": labels}), "x.csv"
    )
    done = aloof(*shlex.split("fit x.csv --label bad --members 3 --epochs 40 --out model"))
    assert done.exit_code == 0, done.stderr
    said = re.search(r"About (\d+) rows without a label look like the labelled", done.stdout)
    assert said
    assert 12 <= int(said[1]) <= 40
    for command in ("info", "card"):
        found = aloof(command, "model").stdout
        assert "Hidden anomalies" in found
        assert f"about {said[1]} rows without a label look like the labelled ones" in found
