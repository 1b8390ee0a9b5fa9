"""Exported files: put in place whole and tried, and refused where they are not as written."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest

from aloof import VAE
from aloof.exceptions import MissingExtraError, ModelError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import aloof.export.writing as writing  # noqa: E402
from aloof.export import export, to_onnx  # noqa: E402
from aloof.lite import load  # noqa: E402
from aloof.lite.format import DIGEST, NOTES, digest_of, stamped  # noqa: E402


@pytest.fixture(scope="module")
def detector():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return VAE(n_members=1, max_epochs=1, hidden=(4,), latent_dim=2, random_state=0).fit(X)


@pytest.fixture(scope="module")
def content(detector):
    return to_onnx(detector)


def test_a_file_that_is_there_is_not_replaced_unless_asked(detector, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"mine")
    with pytest.raises(ModelError, match=r"already exists.*force=True \(--force\)"):
        export(detector, path)
    assert path.read_bytes() == b"mine"
    done = export(detector, path, force=True)
    assert path.stat().st_size == done.n_bytes
    assert os.listdir(tmp_path) == ["model.onnx"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("model.bin", "must end in .onnx"), ("no/model.onnx", "there is no folder")],
)
def test_a_place_where_no_file_can_be_is_told_before_any_work(name, words, detector, tmp_path):
    with pytest.raises(ModelError, match=words):
        export(detector, tmp_path / name)
    (tmp_path / "folder.onnx").mkdir()
    with pytest.raises(ModelError, match="is a folder"):
        export(detector, tmp_path / "folder.onnx")


@pytest.mark.parametrize(
    ("answer", "words"),
    [("anomaly_score", "scores are off by"), ("is_anomaly", "decisions differ")],
)
def test_a_file_that_is_not_what_the_model_is_is_never_written(
    answer, words, detector, tmp_path, monkeypatch
):
    run = writing.LiteModel.run

    def wrong(self, inputs):
        found = run(self, inputs)
        if len(found[answer]) > 100:  # not the probes
            found[answer] = ~found[answer] if answer == "is_anomaly" else 1.001 * found[answer]
        return found

    monkeypatch.setattr(writing.LiteModel, "run", wrong)
    with pytest.raises(ModelError, match=rf"{words}.*nothing was written"):
        export(detector, tmp_path / "model.onnx")
    assert not os.listdir(tmp_path)


def test_a_disk_that_fails_leaves_the_file_that_was_there(detector, tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")

    def fail(*names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ModelError, match="cannot be written: No space left"):
        export(detector, path, force=True)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_any_change_to_a_file_is_noticed(content, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    assert load(path).check() < 1e-5
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 40):
        changed = bytearray(content)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ModelError, match=r"was changed|was not written by aloof"):
            load(path)
    for part in (content[:-1], content[: len(content) // 2], content + b"\0", b""):
        path.write_bytes(part)
        with pytest.raises(ModelError, match=r"was changed|was not written by aloof"):
            load(path)


def test_a_file_of_somebody_else_is_refused(tmp_path):
    from onnx import TensorProto, helper

    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", info[:1], info[1:])
    path = tmp_path / "foreign.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(ModelError, match="was not written by aloof export"):
        load(path)
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        load(tmp_path / "none.onnx")


def rewritten(content, **notes):
    """Return a file whose notes were changed by somebody who knows how to stamp it."""
    model = onnx.load_from_string(content)
    for prop in model.metadata_props:
        if prop.key == NOTES:
            prop.value = json.dumps({**json.loads(prop.value), **notes})
        if prop.key == DIGEST:
            prop.value = "0" * 64
    return stamped(model.SerializeToString(deterministic=True))


def test_a_file_of_a_newer_aloof_says_so(content, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(rewritten(content, format=99, aloof="9.9"))
    with pytest.raises(ModelError, match=r"written by aloof 9\.9, which is newer"):
        load(path)


def test_a_machine_that_computes_other_scores_is_told(content, tmp_path):
    path = tmp_path / "model.onnx"
    probes = load_notes(content)["probes"]
    probes["anomaly_score"][0] *= 1.001
    path.write_bytes(rewritten(content, probes=probes))
    with pytest.raises(ModelError, match="gives other scores here than where it was exported"):
        load(path)


def load_notes(content):
    (found,) = (
        p.value for p in onnx.load_from_string(content).metadata_props if p.key == NOTES
    )
    return json.loads(found)


def test_the_notes_say_what_the_model_is(content, detector):
    notes = load_notes(content)
    assert notes["kind"] == "arrays"
    assert notes["shape"] == [3]
    assert notes["threshold"]["anomaly_score"] == -detector.offset_
    assert notes["outputs"] == ["anomaly_score", "is_anomaly"]
    assert len(notes["model_sha256"]) == 64
    has, should = digest_of(content)
    assert has == should


def test_the_package_that_is_missing_is_named(detector, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aloof\[onnx\]'"):
        to_onnx(detector)


def test_the_scorer_names_the_package_that_it_lacks(content, tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(content)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ModelError, match="pip install onnxruntime"):
        load(tmp_path / "model.onnx")
