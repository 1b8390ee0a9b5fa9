"""Detectors of arrays as ONNX files: the same scores, p-values and decisions."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
import torch

import aloof
from aloof import VAE, Committee, DualPriorVAE, MaxMinDualPriorVAE, MaxMinVAE
from aloof.exceptions import ModelError
from aloof.networks import MLPDecoder, MLPEncoder
from aloof.scoring import AggregatePrior

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from aloof.export import export, to_onnx
from aloof.lite import load

UNITS = np.array([1.0, 10.0, 100.0, 1.0])
SMALL = {"n_members": 2, "max_epochs": 3, "hidden": (16, 8), "latent_dim": 4, "random_state": 0}


def rows(n, seed=0, spread=1.0):
    found = np.random.default_rng(seed).normal(scale=spread, size=(n, 4)) * UNITS
    found[:, 3] = np.round(found[:, 3])  # ties
    return found


@pytest.fixture(scope="module")
def fitted():
    def make(kind, **parameters):
        X = np.r_[rows(150), rows(8, 1) + 3 * UNITS]
        y = np.r_[np.zeros(150), np.ones(8)]
        detector = kind(**{**SMALL, **parameters})
        if detector.likelihood == "bernoulli":
            X = 1 / (1 + np.exp(-X / UNITS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return detector.fit(X, y)

    return make


def check(detector, path, X, *, tried=1e-5):
    done = export(detector, path, force=True)
    lite = load(path)
    found = lite.score(X)
    wanted = detector.anomaly_score(X)
    np.testing.assert_allclose(found["anomaly_score"], wanted, rtol=1e-5)
    flags = detector.decision_.flag(wanted)
    assert (found["is_anomaly"] == flags).all()
    assert 0 < flags.sum() < len(X)
    if detector.calibration_scores_ is not None:
        n = len(detector.calibration_scores_)
        steps = np.abs(found["p_value"] - detector.p_values(X)) * (n + 1)
        assert steps.max() <= 1.01
        assert (steps > 0.5).mean() < 0.02
    alone = [lite.score(X[i : i + 1])["anomaly_score"][0] for i in range(5)]
    np.testing.assert_allclose(alone, wanted[:5], rtol=1e-5)
    assert done.off < tried
    return found


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        (VAE, {}),
        (MaxMinVAE, {}),
        (DualPriorVAE, {}),
        (MaxMinDualPriorVAE, {}),
        (Committee, {"n_trees": 20}),
        (VAE, {"aggregate_prior": 0}),
        (DualPriorVAE, {"likelihood": "gaussian"}),
        (VAE, {"likelihood": "bernoulli", "standardize": False}),
        (DualPriorVAE, {"standardize": "rank"}),
        (DualPriorVAE, {"standardize": False}),
        (
            DualPriorVAE,
            {
                "encoder": partial(MLPEncoder, hidden=(16,), normalise=True, bias=False),
                "decoder": partial(MLPDecoder, hidden=(16,), normalise=True, bias=False),
                "hidden": VAE.hidden,  # says nothing about networks of one's own
            },
        ),
    ],
    ids=lambda value: (
        value.__name__ if isinstance(value, type) else "-".join(value) or "default"
    ),
)
def test_scores_and_decisions_are_those_of_the_detector(kind, parameters, fitted, tmp_path):
    detector = fitted(kind, **parameters)
    X = np.r_[rows(900, 2), rows(60, 3, 10.0), rows(40, 4, 1e6)]
    if detector.likelihood == "bernoulli":
        X = 1 / (1 + np.exp(-np.clip(X / UNITS, -30, 30)))
    # Made-up rows know nothing of the units of rows that networks take as they are.
    tried = 1e-4 if parameters.get("standardize") is False else 1e-5
    check(detector, tmp_path / "model.onnx", X, tried=tried)
    detector.calibrate(X[:300])
    found = check(detector, tmp_path / "model.onnx", X, tried=tried)
    assert list(found) == ["anomaly_score", "p_value", "is_anomaly"]


def test_codes_far_from_the_middle_lose_no_digits(fitted, tmp_path):
    """Squared distances are differences of large numbers, where float32 has no digits left."""
    detector, X = fitted(VAE, max_epochs=40), 5 * rows(256, 5)
    codes = detector._scorer.measure_prior(detector._reader(X), len(X))
    sharp = AggregatePrior(codes.mean, torch.full_like(codes.log_var, -12.0))
    detector._aggregate_prior = sharp
    detector._scorer = detector._make_scorer()
    detector.set_threshold(value=float(np.median(detector.anomaly_score(X))))
    check(detector, tmp_path / "model.onnx", X)


def test_every_rule_of_a_threshold_decides_as_the_detector_does(fitted, tmp_path):
    detector = fitted(DualPriorVAE).calibrate(rows(300, 5))
    X = np.r_[rows(500, 6), rows(100, 7, 5.0)]
    for rule in ({"share": 0.05}, {"budget": "5/100"}, {"fdr": 0.2}, {"value": 1.0}):
        detector.set_threshold(**rule)
        check(detector, tmp_path / "model.onnx", X)


def test_a_false_discovery_rate_is_over_all_rows_also_in_the_graph(fitted, tmp_path):
    detector = fitted(DualPriorVAE).calibrate(rows(300, 5)).set_threshold(fdr=0.2)
    export(detector, tmp_path / "model.onnx")
    lite = load(tmp_path / "model.onnx")
    for X in (rows(40, 8), np.r_[rows(500, 6), rows(100, 7, 5.0)], rows(1, 9)):
        inside = lite.run({"rows": X})["is_anomaly"]
        assert (inside == (detector.predict(X) == -1)).all()
    many = np.r_[rows(2000, 6), rows(300, 7, 5.0)]  # more than go through the graph at once
    assert (lite.score(many)["is_anomaly"] == (detector.predict(many) == -1)).all()


def test_rows_that_were_calibrated_with_are_decided_the_same(fitted, tmp_path):
    """The level is the score of one of them."""
    held_out = rows(400, 5)
    detector = fitted(DualPriorVAE).calibrate(held_out)
    path = tmp_path / "model.onnx"
    for share in (0.01, 0.05, 0.2, 0.5):
        detector.set_threshold(share=share)
        export(detector, path, force=True)
        flags = detector.predict(held_out) == -1
        assert (load(path).score(held_out)["is_anomaly"] == flags).all()


def test_probabilities_are_there_once_they_are_calibrated(fitted, tmp_path):
    detector = fitted(DualPriorVAE)
    X = np.r_[rows(200, 5), rows(30, 7, 5.0)]
    detector.calibrate(X, np.r_[np.zeros(200), np.ones(30)])
    found = check(detector, tmp_path / "model.onnx", X)
    np.testing.assert_allclose(found["probability"], detector.predict_proba(X)[:, 1], rtol=1e-5)


def test_no_rows_have_no_scores(fitted, tmp_path):
    export(fitted(VAE).calibrate(rows(100, 5)), tmp_path / "model.onnx")
    found = load(tmp_path / "model.onnx").score(rows(0))
    assert {name: (values.shape, values.dtype.kind) for name, values in found.items()} == {
        "anomaly_score": ((0,), "f"),
        "p_value": ((0,), "f"),
        "is_anomaly": ((0,), "b"),
    }


def test_a_saved_detector_is_exported_as_it_was(fitted, tmp_path):
    detector = fitted(MaxMinVAE)
    detector.save(tmp_path / "model")
    assert to_onnx(aloof.load(tmp_path / "model", device="cpu")) == to_onnx(detector)


def test_images_as_arrays(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 1, 12, 10))
    for shaped in (X, np.round(255 * X).astype(np.uint8)):
        small = {"filters": (2, 3), "hidden": (8,), "latent_dim": 3, "max_epochs": 2}
        detector = DualPriorVAE(n_members=2, random_state=0, **small)
        detector.fit(shaped, np.r_[np.zeros(35), np.ones(5)])
        detector.set_threshold(share=0.3)
        check(detector, tmp_path / "model.onnx", shaped)


@pytest.mark.parametrize("size", [(3, 9, 16), (1, 7, 8)])
def test_images_whose_sides_do_not_halve_evenly(size, tmp_path):
    X = np.random.default_rng(0).uniform(size=(30, *size))
    detector = VAE(
        n_members=1, max_epochs=1, filters=(2, 3), hidden=(), latent_dim=3, random_state=0
    )
    check(detector.fit(X).set_threshold(share=0.3), tmp_path / "model.onnx", X)


def test_networks_of_ones_own_are_refused(fitted):
    class Own(MLPEncoder):
        pass

    detector = fitted(
        VAE,
        encoder=partial(Own, hidden=(8,)),
        decoder=partial(MLPDecoder, hidden=(8,)),
        hidden=VAE.hidden,
    )
    with pytest.raises(ModelError, match=r"networks of your own \(Own\).*torch\.onnx\.export"):
        to_onnx(detector)


def test_what_is_no_model_is_refused():
    with pytest.raises(ModelError, match="A str cannot be exported to ONNX"):
        to_onnx("model")


@pytest.mark.parametrize("kind", [DualPriorVAE, Committee])
def test_rows_too_far_for_float32_are_computed_once_more(kind, fitted, tmp_path):
    parameters = {"n_trees": 10} if kind is Committee else {}
    detector = fitted(kind, standardize=False, **parameters)
    export(detector, tmp_path / "model.onnx")
    X = np.r_[rows(20, 2), np.outer(np.linspace(5e18, 1.25e19, 20), [1, -1, 1, 1])]
    with np.errstate(over="ignore", invalid="ignore"):
        quick = detector._scorer.perceptrons.score(lambda chunk: X[chunk], len(X))
        wanted = detector.anomaly_score(X)
    assert 0 < np.isfinite(quick).all(0).sum() < len(X)
    assert np.isfinite(wanted).all()
    found = load(tmp_path / "model.onnx").score(X)["anomaly_score"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
