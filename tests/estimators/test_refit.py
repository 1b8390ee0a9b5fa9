"""Going on from a fitted detector, and rows that somebody confirmed to be normal."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from aloof import VAE, Committee, DualPriorVAE

QUICK = {"n_members": 2, "max_epochs": 12, "hidden": (16,), "latent_dim": 4, "random_state": 0}


@pytest.fixture(scope="module")
def X() -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6))
    rows[:6] += 8 * rng.normal(size=6)  # alike, and far out
    return np.asarray(rows)


def test_confirmed_rows_are_seen_as_if_they_were_there_so_often(
    X: NDArray[np.float64],
) -> None:
    y = np.full(len(X), np.nan)
    y[:6] = 0
    alike = {**QUICK, "standardize": False, "aggregate_prior": 0}
    weighted = VAE(**alike, confirmed_weight=3).fit(X, y)
    repeated = VAE(**alike).fit(np.concatenate([X, np.repeat(X[:6], 2, axis=0)]))
    assert np.array_equal(weighted.anomaly_score(X), repeated.anomaly_score(X))


def test_with_a_weight_of_1_a_confirmed_row_is_like_any_other(X: NDArray[np.float64]) -> None:
    y = np.full(len(X), np.nan)
    y[:6] = 0
    known, unknown = VAE(**QUICK).fit(X, y), VAE(**QUICK).fit(X)
    assert np.array_equal(known.anomaly_score(X), unknown.anomaly_score(X))


def test_confirmed_rows_sink_in_the_ranking(X: NDArray[np.float64]) -> None:
    y = np.full(len(X), np.nan)
    first = VAE(**QUICK).fit(X)
    y[:3] = 0
    ranks = {}
    for weight in (1, 10):
        again = copy.deepcopy(first).set_params(confirmed_weight=weight)
        scores = again.refit(X, y, max_epochs=20).anomaly_score(X)
        ranks[weight] = np.argsort(np.argsort(-scores))[:6]
    assert (ranks[10] > ranks[1]).all()  # also those that are like them
    assert np.median(ranks[10]) > 15 > ranks[1].max()


def test_a_refit_begins_where_the_members_are(X: NDArray[np.float64]) -> None:
    detector = VAE(**QUICK, learning_rate=3e-3).fit(X)
    before = detector.anomaly_score(X)
    still = copy.deepcopy(detector).set_params(learning_rate=1e-12).refit(X, max_epochs=1)
    assert np.allclose(still.anomaly_score(X), before, rtol=1e-4)
    assert not np.allclose(detector.refit(X).anomaly_score(X), before, rtol=1e-4)


def test_a_refit_learns_from_new_labels(X: NDArray[np.float64]) -> None:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(340, 6))
    data[-40:, :2] += 1.5
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        detector = DualPriorVAE(**{**QUICK, "hidden": (64,)}).fit(data)
    y = np.full(len(data), np.nan)
    y[-40:-20] = 1

    def rank(model: DualPriorVAE) -> float:
        scores = model.anomaly_score(data)
        return float((scores[:300, None] < scores[None, -20:]).mean())

    before = rank(detector)
    detector.refit(data, y, max_epochs=40)
    assert rank(detector) > before + 0.1
    assert detector.history_["loss"].shape == (52, 2)
    assert detector.n_iter_ == 52
    assert (detector.best_epoch_ == 52).all()


def test_the_same_refit_gives_the_same_bits_and_a_copy_is_left_alone(
    X: NDArray[np.float64],
) -> None:
    detector = VAE(**QUICK).fit(X)
    before = detector.anomaly_score(X)
    one, two = (copy.deepcopy(detector).refit(X, max_epochs=2) for _ in range(2))
    assert np.array_equal(one.anomaly_score(X), two.anomaly_score(X))
    assert np.array_equal(detector.anomaly_score(X), before)


def test_a_refit_keeps_the_scale_of_the_first_fit(X: NDArray[np.float64]) -> None:
    detector = VAE(**QUICK).fit(X)
    mean = detector.scaling_.mean.copy()
    detector.refit(X + 5, max_epochs=1)
    assert np.array_equal(detector.scaling_.mean, mean)


def test_what_cannot_be_refitted_is_refused_and_left_as_it_was(X: NDArray[np.float64]) -> None:
    with pytest.raises(NotFittedError):
        VAE(**QUICK).refit(X)
    detector = VAE(**QUICK).fit(X)
    before = detector.anomaly_score(X)
    with pytest.raises(ValueError, match="features"):
        detector.refit(X[:, :3])
    detector.n_members = 3
    with pytest.raises(ValueError, match="goes on with the 2 members"):
        detector.refit(X)
    detector.n_members = 2
    assert np.array_equal(detector.anomaly_score(X), before)


def test_a_refitted_detector_is_saved_and_loaded(X: NDArray[np.float64], tmp_path) -> None:
    detector = VAE(**QUICK, confirmed_weight=4).fit(X).refit(X, max_epochs=2)
    detector.save(tmp_path / "model")
    loaded = VAE.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.anomaly_score(X), detector.anomaly_score(X))
    assert loaded.confirmed_weight == 4
    loaded.refit(X, max_epochs=1)


def test_a_committee_is_refitted_by_a_fit_and_knows_confirmed_rows(
    X: NDArray[np.float64],
) -> None:
    y = np.full(len(X), np.nan)
    y[290:] = 1
    committee = Committee(**{**QUICK, "max_epochs": 6}, n_trees=4).fit(X, y)
    before = committee.anomaly_score(X)
    y[:3] = 0
    committee.set_params(confirmed_weight=10).refit(X, y)
    after = committee.anomaly_score(X)
    assert not np.array_equal(before, after)
    fresh = Committee(**{**QUICK, "max_epochs": 6}, n_trees=4, confirmed_weight=10).fit(X, y)
    assert np.array_equal(fresh.anomaly_score(X), after)
