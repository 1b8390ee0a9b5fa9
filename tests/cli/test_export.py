"""``aloof export``: what it writes, says and refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import aloof
from aloof.cli.app import app

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from aloof.lite import load


def run(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


@pytest.fixture
def model(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    aloof.VAE(n_members=1, max_epochs=1, random_state=0).fit(X).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_model_is_written_and_the_next_step_is_named(model, tmp_path):
    out = tmp_path / "model.onnx"
    done = run(model, "--onnx", out)
    assert done.exit_code == 0, done.output
    assert "On 1,000 made-up rows its scores are the model's to" in done.output
    assert f"aloof-lite score {out} DATA" in done.output
    assert load(out).kind == "arrays"


def test_json_says_what_it_takes_and_gives(model, tmp_path):
    done = run(model, "--onnx", tmp_path / "model.onnx", "--json")
    told = json.loads(done.output)
    assert told["inputs"] == {"rows": "tensor(double)"}
    assert told["outputs"] == ["anomaly_score", "is_anomaly"]
    assert told["largest_relative_difference"] < 1e-5
    assert told["bytes"] == (tmp_path / "model.onnx").stat().st_size


def test_a_file_that_is_there_needs_force(model, tmp_path):
    out = tmp_path / "model.onnx"
    out.write_bytes(b"mine")
    done = run(model, "--onnx", out)
    assert done.exit_code == 2
    assert "or replace it with --force" in done.output
    assert out.read_bytes() == b"mine"
    assert run(model, "--onnx", out, "--force").exit_code == 0


def test_what_is_no_model_is_told(tmp_path):
    done = run(tmp_path / "none", "--onnx", tmp_path / "model.onnx")
    assert done.exit_code == 2
    assert not (tmp_path / "model.onnx").exists()
