from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from aloof.baselines import TabICL, TabPFN
from aloof.baselines.weights import find_weights
from aloof.bench.methods import peers, resolve_methods
from aloof.exceptions import MissingExtraError, ModelError


class Classifier:
    """Stands for the classifier of either package, and keeps what it is given."""

    def __init__(self, **options):
        self.options = options

    def fit(self, X, y):
        self.X, self.y = X, y
        return self

    def predict_proba(self, X):
        return np.stack([1 - X[:, 0], X[:, 0]], 1)


@pytest.fixture
def packages(monkeypatch):
    for package, name in (("tabpfn", "TabPFNClassifier"), ("tabicl", "TabICLClassifier")):
        module = ModuleType(package)
        setattr(module, name, Classifier)
        monkeypatch.setitem(sys.modules, package, module)


@pytest.mark.parametrize("baseline", [TabPFN, TabICL])
def test_a_missing_package_is_named(baseline, hidden, monkeypatch):
    name = baseline.__name__.lower()
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=rf"needs {name}.*aloof\[in-context\]"):
        baseline().fit(hidden.X, hidden.y)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("baseline", [TabPFN, TabICL])
def test_missing_weights_are_asked_for_and_not_downloaded(
    baseline, hidden, monkeypatch, tmp_path
):
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path))
    with pytest.raises(ModelError, match=r"downloads none.*Hugging Face.*Put the file into"):
        baseline().fit(hidden.X, hidden.y)
    with pytest.raises(ModelError, match="there is no such file"):
        baseline(weights=tmp_path / "gone.ckpt").fit(hidden.X, hidden.y)


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("baseline", [TabPFN, TabICL])
def test_what_a_package_is_given(baseline, hidden, monkeypatch, tmp_path):
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path))
    path = tmp_path / baseline.__name__.lower() / "weights.ckpt"
    path.parent.mkdir()
    path.touch()
    fitted = baseline(random_state=0, max_rows=50, device="cpu").fit(hidden.X, hidden.y)
    model = fitted._model
    assert model.options["model_path"] == str(path)
    assert model.options["device"] == "cpu"
    assert baseline is TabPFN or model.options["allow_auto_download"] is False
    assert np.bincount(model.y).tolist() == [50, hidden.y.sum()]
    np.testing.assert_array_equal(model.X[model.y == 1], hidden.X[hidden.y == 1])
    np.testing.assert_array_equal(fitted.anomaly_score(hidden.X_test), hidden.X_test[:, 0])


def test_several_files_are_not_chosen_from(monkeypatch, tmp_path):
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path))
    (tmp_path / "own").mkdir()
    for name in ("b.ckpt", "a.ckpt"):
        (tmp_path / "own" / name).touch()
    with pytest.raises(ModelError, match=r"several files .*: a\.ckpt, b\.ckpt\. Name one"):
        find_weights(None, "Own", "own", ("*.ckpt",), "")
    best = tmp_path / "own" / "c.safetensors"
    best.touch()
    assert find_weights(None, "Own", "own", ("*.safetensors", "*.ckpt"), "") == best


def test_no_group_has_what_needs_weights():
    needing = {"tabicl", "tabpfn", "tabpfn-v1"}
    assert needing <= peers().keys()
    assert not needing & {*resolve_methods(["all"]), *resolve_methods(["peers"])}
    assert set(resolve_methods(sorted(needing))) == needing
