from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import aloof
from aloof import VAE, DualPriorVAE, MaxMinDualPriorVAE, MaxMinVAE
from aloof.exceptions import ModelError


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(80, 4)), rng.normal(size=(5, 4)) + 3]
    return X, np.r_[np.zeros(80), np.ones(5)]


@pytest.fixture(scope="module")
def model() -> DualPriorVAE:
    X, y = rows()
    return DualPriorVAE(n_members=2, max_epochs=6, warmup_epochs=2, random_state=0).fit(X, y)


@pytest.fixture
def folder(model: DualPriorVAE, tmp_path: Path) -> Path:
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("detector", [VAE, MaxMinVAE, DualPriorVAE, MaxMinDualPriorVAE])
@pytest.mark.parametrize("likelihood", ["squared-error", "gaussian"])
def test_round_trip(detector: Any, likelihood: str, tmp_path: Path) -> None:
    X, y = rows()
    extra = {} if detector is VAE else {"warmup_epochs": 2}
    fitted = detector(
        n_members=2, max_epochs=4, likelihood=likelihood, random_state=np.int64(3), **extra
    ).fit(X, y)
    fitted.save(tmp_path / "m")
    for loaded in (detector.load(tmp_path / "m"), aloof.load(tmp_path / "m")):
        assert type(loaded) is detector
        assert np.array_equal(loaded.score_samples(X), fitted.score_samples(X))
        assert np.array_equal(loaded.predict(X), fitted.predict(X))
        assert np.array_equal(loaded.latent(X), fitted.latent(X))
        assert np.array_equal(loaded.as_pyod().labels_, fitted.as_pyod().labels_)
        assert loaded.get_params() == fitted.get_params()
        for name, curve in fitted.history_.items():
            assert np.array_equal(loaded.history_[name], curve)
    assert sorted(os.listdir(tmp_path / "m")) == ["manifest.json", "model.safetensors"]
    refitted = detector.load(tmp_path / "m").fit(X, y)
    assert np.array_equal(refitted.score_samples(X), fitted.score_samples(X))


def test_threshold_may_be_edited(folder: Path, model: DualPriorVAE) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["threshold"]["offset"] = 1e9
    (folder / "manifest.json").write_text(json.dumps(manifest))
    X, _ = rows()
    assert (DualPriorVAE.load(folder).predict(X) == -1).all()
    manifest["threshold"]["offset"] = "low"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="must be a number"):
        DualPriorVAE.load(folder)


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def flip_a_byte(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])


DAMAGES: dict[str, tuple[Any, str]] = {
    "tampered tensors": (flip_a_byte, "not the file that was saved"),
    "half a file": (truncate, "not the file that was saved"),
    "no tensors": (lambda f: (f / "model.safetensors").unlink(), "incomplete"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "not an aloof model"),
    "half a manifest": (
        lambda f: (f / "manifest.json").write_text('{"schema'),
        "cannot be read",
    ),
    "a list": (lambda f: (f / "manifest.json").write_text("[]"), "JSON object"),
    "tampered manifest": (lambda f: edit_manifest(f, method="mml"), "was changed after"),
    "newer schema": (lambda f: edit_manifest(f, schema_version=99), "newer aloof"),
    "no schema": (lambda f: edit_manifest(f, schema_version="x"), "schema_version"),
    "no folder": (shutil.rmtree, "not an aloof model"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_models_are_refused(folder: Path, damage: str) -> None:
    change, message = DAMAGES[damage]
    change(folder)
    for load in (aloof.load, DualPriorVAE.load):
        with pytest.raises(ModelError, match=message):
            load(folder)


def test_a_folder_of_another_kind_is_left_alone(model: DualPriorVAE, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="left alone"):
        model.save(tmp_path)
    assert os.listdir(tmp_path) == ["notes.txt"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelError, match="left alone"):
        model.save(tmp_path / "file")


def test_unwritable_place(model: DualPriorVAE, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be written"):
        model.save(tmp_path / "file" / "model")


def test_failed_save_keeps_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up while the tensors are written."""
    import safetensors.torch

    X, y = rows()
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}
    other = DualPriorVAE(n_members=1, max_epochs=3, warmup_epochs=1, random_state=9).fit(X, y)

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    with pytest.raises(ModelError, match="No space left"):
        other.save(folder)
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == before
    assert os.listdir(folder.parent) == ["model"]
    monkeypatch.undo()
    other.save(folder)
    assert np.array_equal(DualPriorVAE.load(folder).score_samples(X), other.score_samples(X))
    assert os.listdir(folder.parent) == ["model"]


def test_wrong_class_is_named(folder: Path) -> None:
    with pytest.raises(ModelError, match="holds a DualPriorVAE, not a VAE"):
        VAE.load(folder)


def test_unfitted_models_cannot_be_saved(tmp_path: Path) -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        VAE().save(tmp_path / "m")
    assert os.listdir(tmp_path) == []
