"""One member that gives the scores of all."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from aloof import VAE, Committee, DualPriorVAE, load
from aloof.scoring import distilling


def rows(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    loadings = np.random.default_rng(9).normal(size=(3, 8))
    return 5 + 3 * (rng.normal(size=(n, 3)) @ loadings + 0.3 * rng.normal(size=(n, 8)))


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distilling, "_N_ROWS", 4000)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    X = rows(500, 0)
    X[:10, 0] += 12
    return X, np.arange(500) < 10


@pytest.fixture(scope="module")
def whole(data: tuple[np.ndarray, np.ndarray]) -> Any:
    settings = {"hidden": (32, 16), "latent_dim": 8, "max_epochs": 20, "random_state": 0}
    return DualPriorVAE(device="cpu", **settings).fit(*data)


@pytest.fixture
def small(whole: Any, data: tuple[np.ndarray, np.ndarray]) -> Any:
    return whole.distil(*data)


def test_it_gives_the_scores_of_all_better_than_any_member(whole: Any, small: Any) -> None:
    fresh = np.concatenate([rows(300, 1), rows(100, 2)[:, ::-1], 2 * rows(100, 3)])
    wanted = np.log(whole.anomaly_score(fresh))
    members = -whole._scorer.member_scores(whole._reader(fresh), len(fresh))
    far = np.square(np.log(members) - wanted).mean(1)
    found = small.anomaly_score(fresh)
    assert np.square(np.log(found) - wanted).mean() < far.min() / 2
    assert spearmanr(found, wanted).statistic > 0.98


def test_the_other_one_stays_and_nothing_is_drawn(
    whole: Any, small: Any, data: tuple[np.ndarray, np.ndarray]
) -> None:
    before = whole.anomaly_score(data[0])
    again = whole.distil(*data)
    assert np.array_equal(again.anomaly_score(data[0]), small.anomaly_score(data[0]))
    assert np.array_equal(whole.anomaly_score(data[0]), before)
    assert whole.n_members == 5
    assert small.n_members == len(small.member_seeds_) == 1
    assert set(small.member_seeds_) <= set(whole.member_seeds_)


def test_it_is_a_detector_like_any_other(
    small: Any, data: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, _ = data
    scores = small.anomaly_score(X)
    assert np.array_equal(small.training_scores_, scores)
    assert 0 < (small.predict(X) == -1)[10:].sum() < 20
    found = small.explain(X)
    np.testing.assert_allclose(found.contributions.sum(1), scores, rtol=1e-6)
    small.save(tmp_path / "small")
    assert np.array_equal(load(tmp_path / "small").anomaly_score(X), scores)
    assert np.array_equal(pickle.loads(pickle.dumps(small)).anomaly_score(X), scores)
    assert small.calibrate(rows(200, 5)).p_values(X).min() > 0


def test_more_members_and_other_priors(data: tuple[np.ndarray, np.ndarray]) -> None:
    whole = VAE(n_members=3, max_epochs=5, aggregate_prior=0, likelihood="gaussian")
    small = (
        whole.set_params(random_state=0, device="cpu").fit(data[0]).distil(data[0], n_members=2)
    )
    assert len(small.member_seeds_) == 2
    assert (
        spearmanr(small.anomaly_score(data[0]), whole.anomaly_score(data[0])).statistic > 0.95
    )


def test_what_cannot_be_distilled_is_said(
    whole: Any, data: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match="between 1 and the 5 members"):
        whole.distil(data[0], n_members=6)
    images = VAE(max_epochs=1, n_members=1).fit(np.zeros((8, 1, 8, 8), np.uint8))
    with pytest.raises(ValueError, match="Only detectors of rows of numbers"):
        images.distil(np.zeros((8, 1, 8, 8), np.uint8))


def test_a_committee_is_distilled_to_a_dual_prior_vae_that_ranks_like_it(
    data: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    settings = {"hidden": (32, 16), "latent_dim": 8, "max_epochs": 20, "random_state": 0}
    committee = Committee(device="cpu", n_members=3, n_trees=60, **settings).fit(*data)
    before = committee.anomaly_score(data[0])
    small = committee.distil(*data)
    assert type(small) is DualPriorVAE
    assert small.n_members == 1
    assert np.array_equal(committee.anomaly_score(data[0]), before)
    known = rows(100, 2)
    known[:, 0] += 12
    fresh = np.concatenate([rows(300, 1), known, 2 * rows(100, 3)])
    wanted = committee.anomaly_score(fresh)
    found = spearmanr(small.anomaly_score(fresh), wanted).statistic
    members = -committee._scorer.member_scores(committee._reader(fresh), len(fresh))
    assert found > 0.95
    assert found > max(spearmanr(member, wanted).statistic for member in members)
    small.save(tmp_path / "small")
    again = load(tmp_path / "small")
    assert np.array_equal(again.anomaly_score(fresh), small.anomaly_score(fresh))
