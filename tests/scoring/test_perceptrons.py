"""The fast way of perceptrons: the scores of float64, and a row's own to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from aloof import VAE, DualPriorVAE, MaxMinVAE
from aloof.networks import MLPDecoder, MLPEncoder
from aloof.scoring import (
    AggregatePrior,
    Perceptrons,
    Scorer,
    attribution,
    errors,
    feature_errors,
    perceptrons,
)


def rows(n: int, d: int = 7, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d))


def fitted(detector: type, **changes: Any) -> Any:
    X = rows(400)
    y = np.zeros(400)
    X[:20] += 4
    y[:20] = 1
    if changes.get("likelihood") == "bernoulli":
        X = 1 / (1 + np.exp(-X))
    settings = {"n_members": 3, "max_epochs": 4, "random_state": 0, "device": "cpu", **changes}
    return detector(**settings).fit(X, y)


NORMALISED: dict[str, Any] = {
    "encoder": partial(MLPEncoder, hidden=(24, 12), normalise=True, bias=False),
    "decoder": partial(MLPDecoder, hidden=(24, 12), normalise=True),
}
KINDS: dict[str, tuple[type, dict[str, Any]]] = {
    "dp": (DualPriorVAE, {}),
    "mml": (MaxMinVAE, {}),
    "without codes": (DualPriorVAE, {"aggregate_prior": 0}),
    "one member": (VAE, {"n_members": 1, "hidden": (20,), "latent_dim": 5}),
    "no hidden layer": (VAE, {"hidden": ()}),
    "learned variance": (VAE, {"likelihood": "gaussian"}),
    "bernoulli": (VAE, {"likelihood": "bernoulli", "standardize": False}),
    "batch norm": (DualPriorVAE, NORMALISED),
}


@pytest.fixture(scope="module", params=KINDS)
def detector(request: pytest.FixtureRequest) -> Any:
    kind, changes = KINDS[request.param]
    return fitted(kind, **changes)


@pytest.fixture
def restored_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def seen(detector: Any, n: int) -> np.ndarray:
    X = 2 * rows(n, seed=1)
    return 1 / (1 + np.exp(-X)) if detector.likelihood == "bernoulli" else X


def test_scores_are_those_of_float64(detector: Any) -> None:
    scorer, X = detector._scorer, seen(detector, 700)
    assert isinstance(scorer.perceptrons, Perceptrons)
    wide = scorer._wide_scores(detector._reader(X), len(X))
    fast = scorer.member_scores(detector._reader(X), len(X))
    np.testing.assert_allclose(fast, wide, rtol=1e-5, atol=1e-6)


def test_codes_far_from_the_middle_lose_no_digits() -> None:
    """Squared distances are differences of large numbers, where float32 has no digits left."""
    detector, X = fitted(VAE, max_epochs=40), 5 * rows(256, seed=1)
    reader = detector._reader(X)
    codes = detector._scorer.measure_prior(reader, len(X))
    sharp = AggregatePrior(codes.mean, torch.full_like(codes.log_var, -12.0))
    scorer = Scorer(
        detector._ensemble,
        detector._fitted_objective,
        device=torch.device("cpu"),
        dtype=torch.float64,
        aggregate_prior=sharp,
    )
    assert scorer.perceptrons is not None
    fast, wide = scorer.member_scores(reader, len(X)), scorer._wide_scores(reader, len(X))
    np.testing.assert_allclose(fast, wide, rtol=1e-5)
    for n in (1, 33, 200):  # in any company
        order = np.random.default_rng(n).permutation(len(X))[:n]
        some = scorer.member_scores(detector._reader(X[order]), n)
        assert np.array_equal(some, fast[:, order])


def test_contributions_are_those_of_float64(detector: Any) -> None:
    scorer, X = detector._scorer, seen(detector, 600)
    reader = detector._reader(X)
    wide = attribution._explained(scorer, reader, len(X))
    found = scorer.perceptrons.explain(reader, len(X))
    fast = found.score, found.errors, found.reconstruction, found.latent, found.expected
    assert np.array_equal(found.score, scorer.perceptrons.score(reader, len(X)))
    for one, other in zip(fast, wide, strict=True):
        # A value within rounding of a bend of the leaky ReLU may lie on either side of it.
        near = np.isclose(one, other, rtol=1e-3, atol=1e-5)
        assert near.mean() > 0.999


def test_errors_of_features_are_those_of_float64(detector: Any) -> None:
    scorer, X = detector._scorer, seen(detector, 600)
    reader = detector._reader(X)
    wide = errors._wide_errors(scorer, reader, len(X))
    found, scores = feature_errors(scorer, reader, len(X))
    np.testing.assert_allclose(found, wide[0], rtol=1e-4, atol=1e-5)
    assert np.array_equal(scores, -scorer.score(reader, len(X)))
    part, _ = feature_errors(scorer, detector._reader(X[:37]), 37)
    assert np.array_equal(part, found[:37])
    assert np.array_equal(attribution.explain_errors(scorer, reader, len(X))[1], found)


def test_bits_do_not_depend_on_company(detector: Any, restored_threads: None) -> None:
    X = seen(detector, 2100)
    torch.set_num_threads(1)
    whole = detector.anomaly_score(X)
    why = detector.explain(X).contributions
    order = np.random.default_rng(0).permutation(len(X))
    parts = [slice(0, n) for n in (1, 2, 31, 32, 33, 256, 257, 511, 1023, 1024, 1025)]
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for part in (order, slice(700, 701), slice(100, 2090), *parts):
            assert np.array_equal(detector.anomaly_score(X[part]), whole[part])
        assert torch.get_num_threads() == threads
        for part in (order, slice(0, 1), slice(37, 90), slice(0, 1300)):
            assert np.array_equal(detector.explain(X[part]).contributions, why[part])


def test_both_input_dtypes_and_layouts_are_fine(detector: Any) -> None:
    X = seen(detector, 100).astype(np.float32)
    X.setflags(write=False)
    one = detector.anomaly_score(X)
    assert np.array_equal(one, detector.anomaly_score(np.asfortranarray(X)))
    assert np.array_equal(one, detector.anomaly_score(X.astype(np.float64)))


def test_rows_too_far_away_for_float32_have_scores_of_float64() -> None:
    detector = fitted(VAE, standardize=False)
    X = rows(600, seed=1)
    X[37] *= 1e25
    X[500] *= 3e37
    reader = detector._reader(X)
    assert not np.isfinite(detector._scorer.perceptrons.score(reader, 600)[:, 500]).all()
    far = detector._scorer.member_scores(reader, 600)[:, [37, 500]]
    assert np.isfinite(far).all()
    wide = detector._scorer._wide_scores(reader, 600)
    np.testing.assert_allclose(far, wide[:, [37, 500]], rtol=1e-12)


def test_own_networks_are_scored_in_float64() -> None:
    class Own(MLPEncoder):
        pass

    detector = fitted(VAE, encoder=Own, decoder=MLPDecoder)
    assert detector._scorer.perceptrons is None
    assert np.isfinite(detector.anomaly_score(rows(5))).all()


def test_products_that_do_not_treat_rows_alike_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A library whose results depend on a row's place: scores come from float64 then."""
    detector = fitted(VAE)
    X = rows(300, seed=1)
    exact = -detector._scorer._wide_scores(detector._reader(X), 300).mean(0)
    true = perceptrons._through

    def uneven(*arguments: Any) -> torch.Tensor:
        found = true(*arguments)
        found[::3] *= 1 + 1e-6
        return found

    monkeypatch.setattr(perceptrons, "_STEADY", {})
    monkeypatch.setattr(perceptrons, "_through", uneven)
    scorer = detector._make_scorer()
    assert scorer.perceptrons is None
    found = -scorer.score(detector._reader(X), 300)
    assert np.array_equal(found, exact.astype(np.float32).astype(np.float64))
