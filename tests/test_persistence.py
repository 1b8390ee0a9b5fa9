from __future__ import annotations

import copy
import json
import os
import re
import shutil
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

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
    assert manifest["threshold"]["anomaly_score"] == -model.offset_
    manifest["threshold"]["anomaly_score"] = -1e9  # every score is above
    (folder / "manifest.json").write_text(json.dumps(manifest))
    X, _ = rows()
    assert (DualPriorVAE.load(folder).predict(X) == -1).all()
    for wrong in ("low", None, True, float("nan"), float("inf"), 10**400):
        manifest["threshold"]["anomaly_score"] = wrong
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(ModelError, match=r"model/manifest.json: threshold.anomaly_score"):
            DualPriorVAE.load(folder)
    manifest["threshold"] = []
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="threshold must be a mapping"):
        DualPriorVAE.load(folder)


def resigned(folder: Path, change: Any) -> None:
    """Change the manifest as somebody would who also repairs its digest."""
    from aloof.persistence import _manifest_digest

    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest["manifest_sha256"] = _manifest_digest(manifest)
    path.write_text(json.dumps(manifest))


FORGERIES: dict[str, Any] = {
    **{
        f"no {key}": (lambda m, key=key: m.pop(key))
        for key in (
            "estimator",
            "parameters",
            "n_features_in",
            "shape",
            "feature_names_in",
            "member_seeds",
            "scoring_dtype",
            "probe",
        )
    },
    "estimator is a list": lambda m: m.update(estimator=["VAE"]),
    "unknown parameter": lambda m: m["parameters"].update(nonsense=1),
    "parameter out of bounds": lambda m: m["parameters"].update(latent_dim=0),
    "a function as a dtype": lambda m: m.update(scoring_dtype="load"),
    "shape is a word": lambda m: m.update(shape="wide"),
    "hidden is a number": lambda m: m["parameters"].update(hidden=3),
    "other networks": lambda m: m["parameters"].update(hidden=[16]),
    "other weight of the divergence": lambda m: m["parameters"].update(beta_kl=0.9),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_forged_manifests_are_refused(folder: Path, forgery: str) -> None:
    resigned(folder, FORGERIES[forgery])
    with pytest.raises(ModelError):
        aloof.load(folder)


WEIGHT = "network.encoder.body.0.weight"
PENALTY = "direction_penalty"
COST = f"{PENALTY}.cost"
FORGED_TENSORS: dict[str, tuple[Any, str]] = {
    **{
        f"no {name}": (lambda t, name=name: t.pop(name), re.escape(name))
        for name in (
            "scaling.mean",
            "history.loss",
            "best_epoch",
            "training_scores",
            "training_normal",
            "aggregate_prior.log_var",
            "direction_penalty.cost",
        )
    },
    "no weights": (lambda t: t.pop(WEIGHT), "do not fit the weights"),
    "an unknown one": (lambda t: t.update(extra=torch.zeros(1)), "extra is left over"),
    "one more of a part": (
        lambda t: t.update({"direction_penalty.x": torch.zeros(1)}),
        "direction_penalty.x",
    ),
    "another dtype": (lambda t: turn(t, "scaling.mean", torch.Tensor.float), "float64"),
    "weights of another dtype": (lambda t: turn(t, WEIGHT, torch.Tensor.double), "do not fit"),
    "another shape": (
        lambda t: turn(t, "direction_penalty.cost", torch.Tensor.squeeze),
        "direction_penalty.cost",
    ),
    "fewer members": (lambda t: turn(t, "best_epoch", lambda v: v[:1]), "best_epoch"),
    "fewer members in the networks": (lambda t: turn(t, WEIGHT, lambda v: v[:1]), "do not fit"),
    "other codes": (
        lambda t: turn(t, "aggregate_prior.mean", lambda v: v[:, :, :2]),
        "aggregate_prior.mean",
    ),
    "no scores": (lambda t: turn(t, "training_scores", lambda v: v[:0]), "training_scores"),
    "NaN": (lambda t: turn(t, "training_scores", lambda v: v * torch.nan), "not finite"),
    "an infinite cost": (
        lambda t: turn(t, COST, lambda v: v * torch.inf),
        "not finite",
    ),
    "weights that are not numbers": (
        lambda t: turn(t, WEIGHT, lambda v: v * torch.nan),
        "do not reproduce the scores",
    ),
    "a scale of 0": (lambda t: turn(t, "scaling.scale", lambda v: 0 * v), "not above 0"),
    "rows that do not exist": (
        lambda t: turn(t, "training_normal", lambda v: v + 100),
        "rows that do not exist",
    ),
    "unsorted": (lambda t: turn(t, "calibration_scores", lambda v: v.flip(0)), "not sorted"),
    "short curves": (
        lambda t: turn(t, "history.learning_rate", lambda v: v[:2]),
        "different lengths",
    ),
}


def turn(tensors: dict[str, Any], name: str, change: Any) -> None:
    tensors[name] = change(tensors[name]).clone()


@pytest.mark.parametrize("forgery", FORGED_TENSORS)
def test_forged_tensors_are_refused(model: DualPriorVAE, tmp_path: Path, forgery: str) -> None:
    from aloof.estimators import describe
    from aloof.persistence import write_model

    X, _ = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        manifest, tensors = describe(copy.deepcopy(model).calibrate(X[:40]))
    change, message = FORGED_TENSORS[forgery]
    change(tensors)
    write_model(tmp_path / "model", manifest, tensors)
    with pytest.raises(ModelError, match=message) as refused:
        aloof.load(tmp_path / "model")
    assert str(tmp_path / "model") in str(refused.value)


def test_a_manifest_that_asks_for_a_lot_of_memory_is_refused_at_once(folder: Path) -> None:
    resigned(folder, lambda m: m["parameters"].update(hidden=[10**7, 10**7]))  # 400 TB
    with pytest.raises(ModelError, match="do not fit the weights"):
        aloof.load(folder)


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
    "tampered tensors": (flip_a_byte, "not the file saved"),
    "half a file": (truncate, "not the file saved"),
    "no tensors": (lambda f: (f / "model.safetensors").unlink(), "incomplete"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "not an aloof model"),
    "half a manifest": (
        lambda f: (f / "manifest.json").write_text('{"schema'),
        "cannot be read",
    ),
    "a list": (lambda f: (f / "manifest.json").write_text("[]"), "JSON object"),
    "tampered manifest": (lambda f: edit_manifest(f, method="mml"), "was changed after"),
    "older schema": (
        lambda f: edit_manifest(f, schema_version=1),
        "older aloof .* Fit the model again",
    ),
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


def test_only_a_model_is_replaced(folder: Path, model: DualPriorVAE, tmp_path: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="left alone"):
        model.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"
    other = tmp_path / "web"
    other.mkdir()
    (other / "manifest.json").write_text('{"name": "an app"}')
    with pytest.raises(ModelError, match="left alone"):
        model.save(other)
    empty = tmp_path / "empty"
    empty.mkdir()
    model.save(empty)
    (tmp_path / "link").symlink_to(empty)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["empty", "link", "model", "web"]


def test_replacing_leaves_nothing_behind(folder: Path, model: DualPriorVAE) -> None:
    model.save(folder)
    assert os.listdir(folder.parent) == ["model"]
    assert sorted(os.listdir(folder)) == ["manifest.json", "model.safetensors"]
    assert np.array_equal(aloof.load(folder).training_scores_, model.training_scores_)


@pytest.fixture(scope="module")
def other() -> DualPriorVAE:
    X, y = rows()
    return DualPriorVAE(n_members=1, max_epochs=3, warmup_epochs=1, random_state=9).fit(X, y)


@pytest.mark.parametrize("step", range(4))
def test_a_save_killed_at_any_step_leaves_one_model_or_the_other(
    folder: Path,
    model: DualPriorVAE,
    other: DualPriorVAE,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    """The process dies at each of the moves that put the new model in place."""
    move, done = os.replace, []

    def dying(*paths: Any) -> None:
        if len(done) == step:
            raise SystemExit
        done.append(move(*paths))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dying)
        if step < 3:
            with pytest.raises(SystemExit):
                other.save(folder)
        else:
            other.save(folder)
    expected = model if step < 2 else other
    assert np.array_equal(aloof.load(folder).training_scores_, expected.training_scores_)
    model.save(folder)
    assert sorted(os.listdir(folder)) == ["manifest.json", "model.safetensors"]
    assert np.array_equal(aloof.load(folder).training_scores_, model.training_scores_)


def test_a_model_is_whole_for_whoever_reads_while_it_is_replaced(
    folder: Path, model: DualPriorVAE, other: DualPriorVAE
) -> None:
    from aloof.persistence import read_model

    stop, seen = threading.Event(), set[int]()

    def save() -> None:
        while not stop.is_set():
            for one in (other, model):
                one.save(folder)

    saver = threading.Thread(target=save)
    saver.start()
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until or len(seen) < 2:
            manifest, found = read_model(folder)
            members = len(manifest["member_seeds"])
            seen.add(members)
            assert found["best_epoch"].shape == (members,)
    finally:
        stop.set()
        saver.join()
    assert seen == {1, 2}


def test_parameters_of_every_number_type_are_saved(tmp_path: Path) -> None:
    X, y = rows()
    fitted = DualPriorVAE(
        n_members=np.int64(2),
        max_epochs=3,
        beta_kl=np.float32(0.1),
        random_state=np.int32(1),
        hidden=[8, np.int64(4)],  # type: ignore[arg-type]
    ).fit(X, y)
    fitted.offset_ = np.float32(fitted.offset_)
    fitted.save(tmp_path / "m")
    loaded = DualPriorVAE.load(tmp_path / "m")
    assert np.array_equal(loaded.score_samples(X), fitted.score_samples(X))
    fitted.set_params(beta_kl=5.0, hidden=(3,))
    fitted.save(tmp_path / "m")
    again = DualPriorVAE.load(tmp_path / "m")
    assert np.array_equal(again.score_samples(X), loaded.score_samples(X))


def test_unwritable_place(model: DualPriorVAE, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="is not a folder to write to"):
        model.save(tmp_path / "file" / "model")


def test_failed_save_keeps_the_old_model(
    folder: Path, other: DualPriorVAE, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fills up while the tensors are written."""
    import safetensors.torch

    X, _ = rows()
    before = {name: (folder / name).read_bytes() for name in os.listdir(folder)}

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
