"""``aloof-lite``: the answers of ``aloof score`` without torch, and nothing but them."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from table_cells import cells, odd_cells, write_csv

import aloof

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from aloof.export import export
from aloof.lite.cli import main

SMALL = {"members": 2, "max_epochs": 2, "hidden": (8,), "latent_dim": 3, "seed": 0}

# Everything that is not NumPy, ONNX Runtime or a part of Python.
WITHOUT = """
import sys
for name in ("torch", "sklearn", "scipy", "pandas", "pyarrow", "pydantic", "onnx", "typer",
             "rich", "safetensors", "narwhals", "joblib"):
    sys.modules[name] = None  # importing it now fails as if it were not installed
from aloof.lite.cli import main
code = main(sys.argv[1:])
ours = {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}
print(sorted(ours & {"torch", "sklearn", "scipy", "pyarrow", "pydantic"}), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, a model of it, and the model exported."""
    found = tmp_path_factory.mktemp("lite")
    write_csv(found / "train.csv", cells(0))
    write_csv(found / "new.csv", cells(1))
    write_csv(found / "odd.csv", odd_cells())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = aloof.fit(
            found / "train.csv",
            label="label",
            id="id",
            kinds={"clock": "timestamp"},
            method="dp",
            **SMALL,
        )
    model.save(found / "model")
    export(model, found / "model.onnx")
    model.set_threshold(fdr=0.5)
    export(model, found / "fdr.onnx")
    return found


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def score(folder, capsys, *arguments):
    code = main(["score", *map(str, arguments), "--out", "-"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return rows_of(out), err


@pytest.mark.parametrize("model", ["model", "fdr"])
@pytest.mark.parametrize("data", ["new.csv", "odd.csv"])
def test_files_have_the_answers_of_aloof_score(model, data, folder, capsys):
    found, _ = score(folder, capsys, folder / f"{model}.onnx", folder / data, "--keep", "city")
    known = aloof.load(folder / "model")
    if model == "fdr":
        known.set_threshold(fdr=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = known.score(folder / data, reasons=0, keep=["city"]).to_pylist()
    assert (
        list(found[0])
        == list(wanted[0])
        == [
            *("id", "city", "anomaly_score", "p_value", "is_anomaly"),
        ]
    )
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours["id"] == theirs["id"]
        assert ours["city"] == (theirs["city"] or "")
        assert float(ours["anomaly_score"]) == pytest.approx(theirs["anomaly_score"], rel=1e-5)
        assert float(ours["p_value"]) == pytest.approx(theirs["p_value"], abs=0.03)
        assert (ours["is_anomaly"] == "true") == theirs["is_anomaly"]


def test_nothing_but_numpy_and_onnx_runtime_is_needed(folder):
    arguments = ["score", folder / "model.onnx", folder / "odd.csv", "--out", "-"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(rows_of(done.stdout)) == 24
    assert done.stderr.rstrip().endswith("[]")
    assert "24 rows scored" in done.stderr
    assert "warning: Column 'amount': 2 values cannot be read as numbers" in done.stderr


def test_a_file_appears_whole_and_is_not_replaced_unless_asked(folder, tmp_path, capsys):
    out = tmp_path / "scores.csv"
    arguments = [
        "score",
        str(folder / "model.onnx"),
        str(folder / "new.csv"),
        "--out",
        str(out),
    ]
    assert main(arguments) == 0
    whole = out.read_text()
    assert len(rows_of(whole)) == 260
    assert main(arguments) == 2
    assert "already exists" in capsys.readouterr().err
    assert main([*arguments, "--force", "--flagged-only"]) == 0
    flagged = [row for row in rows_of(whole) if row["is_anomaly"] == "true"]
    assert rows_of(out.read_text()) == flagged
    bad = tmp_path / "bad.csv"
    bad.write_text(whole.replace("id,", "name,"))
    assert (
        main(["score", str(folder / "model.onnx"), str(bad), "--out", str(out), "--force"]) == 2
    )
    assert rows_of(out.read_text()) == flagged
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "scores.csv"]


def test_parts_of_a_file_are_scored_as_the_whole(folder, capsys, monkeypatch):
    whole, _ = score(folder, capsys, folder / "fdr.onnx", folder / "new.csv")
    monkeypatch.setattr("aloof.lite.cli._ROWS", 7)
    parts, _ = score(folder, capsys, folder / "fdr.onnx", folder / "new.csv")
    assert [row["is_anomaly"] for row in parts] == [row["is_anomaly"] for row in whole]
    scores = [[float(row["anomaly_score"]) for row in rows] for rows in (parts, whole)]
    np.testing.assert_allclose(*scores, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.onnx", "new.csv", "--out", "-"], "none.onnx cannot be read"),
        (["new.csv", "new.csv", "--out", "-"], "was not written by aloof export"),
        (["model.onnx", "none.csv", "--out", "-"], "none.csv cannot be read"),
        (["model.onnx", "new.csv", "--out", "x.xlsx"], "must end in .csv or .tsv"),
        (["model.onnx", "new.csv", "--out", "-", "--keep", "town"], "no column 'town'"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments, words, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    assert main(["score", *arguments]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert len(err.splitlines()) == 1


def test_a_table_without_rows_is_told(folder, tmp_path, capsys):
    empty = tmp_path / "empty.csv"
    empty.write_text((folder / "new.csv").read_text().splitlines()[0] + "\n")
    assert main(["score", str(folder / "model.onnx"), str(empty), "--out", "-"]) == 2
    assert "but no rows" in capsys.readouterr().err


def test_info_says_what_a_model_takes_and_gives(folder, capsys):
    assert main(["info", str(folder / "model.onnx")]) == 0
    out = capsys.readouterr().out
    assert "DP-VAE with 2 members" in out
    assert "  amount: tensor(double) (number)" in out
    assert "Gives: anomaly_score, p_value, is_anomaly." in out
    assert main(["info", str(folder / "model.onnx"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["inputs"]["city"] == "tensor(string)"
    assert told["id"] == "id"


def test_arrays_come_in_files_of_numpy(folder, tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(50, 3))
    detector = aloof.VAE(n_members=1, max_epochs=1, random_state=0).fit(X)
    export(detector, tmp_path / "array.onnx")
    np.save(tmp_path / "X.npy", X)
    found, _ = score(tmp_path, capsys, tmp_path / "array.onnx", tmp_path / "X.npy")
    scores = [float(row["anomaly_score"]) for row in found]
    np.testing.assert_allclose(scores, detector.anomaly_score(X), rtol=1e-5)
    arguments = ["score", tmp_path / "array.onnx", folder / "new.csv", "--out", "-"]
    assert main(list(map(str, arguments))) == 2
    assert "numpy.save" in capsys.readouterr().err


def test_nothing_is_reported_to_anybody(folder, tmp_path):
    """Some versions of ONNX Runtime keep a device id at home, and send it to their makers."""
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    environment.pop("XDG_CACHE_HOME", None)
    code = "import sys; from aloof.lite.cli import main; sys.exit(main(sys.argv[1:]))"
    given = ["score", str(folder / "model.onnx"), str(folder / "new.csv"), "--out", "-"]
    subprocess.run(
        [sys.executable, "-c", code, *given], check=True, capture_output=True, env=environment
    )
    assert list(tmp_path.iterdir()) == []


def test_json_is_told_from_csv(folder, tmp_path, capsys):
    (tmp_path / "new.jsonl").write_text('{"id": 1, "amount": 2}\n')
    given = ["score", str(folder / "model.onnx"), str(tmp_path / "new.jsonl"), "--out", "-"]
    assert main(given) == 2
    assert "holds JSON. Give a CSV or TSV file; aloof itself reads" in capsys.readouterr().err
