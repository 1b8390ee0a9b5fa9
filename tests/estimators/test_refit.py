"""Going on from a fitted detector, and rows that somebody confirmed to be normal."""

from __future__ import annotations

import copy
from pathlib import Path

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


def committee_of(**parameters: object) -> Committee:
    quick = {**QUICK, "n_members": 3, "n_trees": 30, **parameters}
    return Committee(**quick)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def y(X: NDArray[np.float64]) -> NDArray[np.float64]:
    labels = np.full(len(X), np.nan)
    labels[290:] = 1
    return labels


@pytest.fixture(scope="module")
def committee(X: NDArray[np.float64], y: NDArray[np.float64]) -> Committee:
    return committee_of().fit(X, y)


def test_the_views_of_a_committee_go_on_from_where_they_are(
    committee: Committee, X: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    before = committee._see(X).scores
    still = copy.deepcopy(committee).set_params(learning_rate=1e-12)
    still.refit(X, y, max_epochs=1)
    for name, scores in still._see(X).scores.items():
        np.testing.assert_allclose(scores, before[name], rtol=1e-4, err_msg=name)
    moved = copy.deepcopy(committee).refit(X, y, max_epochs=2)
    assert moved.history_["loss"].shape == (14, 3)
    for name, view in moved._others.items():
        assert view.n_iter_ == committee._others[name].n_iter_ + 2
        assert not np.array_equal(
            view.anomaly_score(X), committee._others[name].anomaly_score(X)
        )


def test_the_members_of_a_committee_go_on_leaving_out_the_same_rows(
    committee: Committee, X: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    """Whatever the order of the rows, and whatever is added or answered."""
    folds = committee._prepare(X, y).folds
    assert folds is not None
    rng = np.random.default_rng(5)
    order = rng.permutation(len(X))
    rows, labels = np.r_[X[order], rng.normal(size=(30, 6))], np.r_[y[order], [np.nan] * 30]
    labels[order.argsort()[:4]] = 1, 1, 0, 0
    again = copy.deepcopy(committee)._prepare(rows, labels, again=True).folds
    assert again is not None
    assert np.array_equal(again[: len(X)], folds[order])
    assert np.array_equal(np.bincount(again[len(X) :]), [10, 10, 10])


def test_what_all_members_have_seen_as_an_anomaly_none_leaves_out(
    X: NDArray[np.float64],
) -> None:
    y = np.full(len(X), np.nan)
    y[298:] = 1  # fewer than members: all see them
    committee = committee_of(max_epochs=3).fit(X, y)
    y[280:] = 1
    task = committee._prepare(X, y, again=True)
    assert task.folds is not None
    assert (task.folds[298:] == -1).all()
    assert np.array_equal(task.left_out, np.arange(280, 298))
    for member, problem in enumerate(task.problems):
        left = np.flatnonzero(task.folds == member)
        assert not np.intersect1d(left, np.r_[problem.normal, problem.anomaly]).size
    y[280:] = np.nan
    y[[0, 299]] = 1  # one to leave out is too few
    assert not len(committee._prepare(X, y, again=True).left_out)


def test_a_refit_of_a_committee_is_the_same_after_saving(
    committee: Committee, X: NDArray[np.float64], y: NDArray[np.float64], tmp_path: Path
) -> None:
    committee.save(tmp_path / "model")
    loaded = Committee.load(tmp_path / "model", device="cpu")
    before = committee.anomaly_score(X)
    answers = y.copy()
    answers[:3], answers[3:5] = 0, 1
    one = copy.deepcopy(committee).set_params(confirmed_weight=5).refit(X, answers)
    two = loaded.set_params(confirmed_weight=5).refit(X, answers)
    assert np.array_equal(one.anomaly_score(X), two.anomaly_score(X))
    assert np.array_equal(committee.anomaly_score(X), before)


def test_a_committee_that_cannot_be_refitted_is_left_as_it_was(
    committee: Committee, X: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    before = committee.anomaly_score(X)

    def stop(report: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        committee.refit(X, y, on_epoch=stop)
    with pytest.raises(ValueError, match="features"):
        committee.refit(X[:, :3], y)
    assert np.array_equal(committee.anomaly_score(X), before)


def test_a_committee_gets_its_views_with_the_first_label(
    X: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    with pytest.warns(UserWarning, match="no labelled anomalies"):
        committee = committee_of(max_epochs=4).fit(X)
    committee.refit(X, y)
    fresh = committee_of(max_epochs=4).fit(X, y)
    assert np.array_equal(committee.anomaly_score(X), fresh.anomaly_score(X))


def test_a_no_of_a_reviewer_is_a_hard_negative() -> None:
    """Normal rows that look like labelled anomalies sink once some of them are confirmed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(420, 4))
    X[300:320, 0] += 4  # looks like an anomaly, and is none
    X[320:340, :2] += 4
    alike = rng.normal(size=(100, 4))
    alike[:, 0] += 4
    y = np.full(len(X), np.nan)
    y[320:340] = 1
    y[300:310] = 0
    scores, shares = {}, {}
    for weight in (1, 10):
        committee = committee_of(n_trees=120, confirmed_weight=weight).fit(X, y)
        scores[weight] = committee.anomaly_score(np.r_[alike, X])
        seen = committee._see(alike)
        shares[weight] = committee._forests["trees"].score(seen.by_trees("trees")).mean()
        if weight > 1:
            assert not np.intersect1d(committee.suspects_, np.arange(300, 310)).size
    ranks = {w: (s[:100, None] > s[None, 440:]).mean() for w, s in scores.items()}
    assert ranks[10] < ranks[1]
    assert shares[10] < 0.75 * shares[1]
