"""A committee: a detector like the others, whose evidence adds up and never takes away."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import aloof
from aloof import VAE, Committee, DualPriorVAE, fit_many
from aloof.exceptions import LabelWarning, ModelError

QUICK = {"n_members": 3, "max_epochs": 12, "hidden": (16,), "latent_dim": 4, "n_trees": 60}


def quick(**parameters: object) -> Committee:
    return Committee(**{**QUICK, "random_state": 0, **parameters})  # type: ignore[arg-type]


def table(n: int = 240, n_labelled: int = 6) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return normal rows, and anomalies that differ in the first column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + n_labelled, 4))
    X[:, 3] = X[:, 1] + 0.3 * X[:, 3]
    X[n:, 0] += 4
    return X, np.repeat([0, 1], [n, n_labelled])


def later(n: int = 200) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Return normal rows to come, anomalies as they are known, and others."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3 * n, 4))
    X[:, 3] = X[:, 1] + 0.3 * X[:, 3]
    known, novel = X[n : 2 * n], X[2 * n :]
    known[:, 0] += 4
    novel[:, 2] -= 5
    return X[:n], {"known": known, "novel": novel}


@pytest.fixture(scope="module")
def fitted() -> Committee:
    return quick().fit(*table())


def test_known_and_novel_anomalies_stand_out(fitted: Committee) -> None:
    normal, anomalies = later()
    for rows in anomalies.values():
        scores = fitted.anomaly_score(np.r_[normal, rows])
        assert roc_auc_score(np.repeat([0, 1], [len(normal), len(rows)]), scores) > 0.95


def test_the_score_is_evidence_of_views_and_trees(fitted: Committee) -> None:
    normal, anomalies = later()
    rows = np.r_[normal, anomalies["known"]]
    seen = fitted._see(rows)
    views = np.mean([fitted._evidence[n](s) for n, s in seen.scores.items()], axis=0)
    trees = [
        fitted._evidence[name](forest.score(seen.by_trees(name)))
        for name, forest in fitted._forests.items()
    ]
    assert set(seen.scores) == {"own", "max-min", "ranks", "plain", "neighbours"}
    assert len(trees) == 2
    expected = views + fitted.tree_weight_ * np.mean(trees, axis=0)
    np.testing.assert_allclose(fitted.anomaly_score(rows), expected, rtol=1e-6)


def test_trees_never_take_evidence_away(fitted: Committee) -> None:
    normal, anomalies = later()
    for rows in (normal, *anomalies.values()):
        seen = fitted._see(rows)
        alone = fitted._mean_evidence(seen.scores)
        assert (fitted.anomaly_score(rows) >= alone.astype(np.float32) - 1e-6).all()


def test_evidence_of_normal_rows_has_the_mean_it_should(fitted: Committee) -> None:
    """Minus the logarithm of a p-value is 1 on average."""
    normal, _ = later(2000)
    for name, scores in fitted._see(normal).scores.items():
        assert fitted._evidence[name](scores).mean() == pytest.approx(1.0, abs=0.35), name


def test_a_row_has_the_same_score_in_any_company(fitted: Committee) -> None:
    rows = np.concatenate(list(later(300)[1].values()))
    scores = fitted.anomaly_score(rows)
    assert np.array_equal(fitted.anomaly_score(rows[::-1])[::-1], scores)
    assert np.array_equal(fitted.anomaly_score(rows[:1]), scores[:1])
    parts = [fitted.anomaly_score(rows[i : i + 77]) for i in range(0, len(rows), 77)]
    assert np.array_equal(np.concatenate(parts), scores)


def test_a_fit_is_repeatable_and_one_of_many() -> None:
    X, y = table()
    rows = later(50)[0]
    first, again, stacked = quick(), quick(), quick()
    first.fit(X, y), again.fit(X, y)
    other = DualPriorVAE(n_members=3, max_epochs=12, hidden=(16,), latent_dim=4, random_state=1)
    fit_many([other, stacked], [(X, y), (X, y)])
    assert np.array_equal(first.anomaly_score(rows), again.anomaly_score(rows))
    np.testing.assert_allclose(
        stacked.anomaly_score(rows), first.anomaly_score(rows), rtol=1e-3, atol=1e-3
    )


def test_training_scores_are_of_members_that_did_not_see_the_row() -> None:
    """A row far out has a high score though the members that saw it learned it by heart."""
    X, y = table()
    X[7] = [0, 9, 0, -9]
    committee = quick(max_epochs=60).fit(X, y)
    assert committee.training_scores_[7] > np.quantile(committee.training_scores_[:240], 0.99)
    assert len(committee.training_scores_) == len(X)


def test_without_labels_it_is_the_plain_vae() -> None:
    X, _ = table()
    rows = later()[0]
    with pytest.warns(LabelWarning, match="plain VAE"):
        committee = quick().fit(X)
    vae = VAE(n_members=3, max_epochs=12, hidden=(16,), latent_dim=4, random_state=0).fit(X)
    assert spearmanr(committee.anomaly_score(rows), vae.anomaly_score(rows))[0] == 1
    assert committee.tree_weight_ == 0
    assert not committee._others


def test_with_one_label_trees_hardly_count() -> None:
    committee = quick().fit(*table(n_labelled=1))
    assert 0 < committee.tree_weight_ <= 0.1
    assert committee.hidden_share_ == 0


def test_trees_do_not_count_where_labels_mean_nothing() -> None:
    X, _ = table()
    rng = np.random.default_rng(3)
    y = np.zeros(len(X))
    y[rng.choice(240, 10, replace=False)] = 1
    recognisable = quick().fit(*table(n_labelled=10)).tree_weight_
    assert quick().fit(X, y).tree_weight_ < 0.5 * recognisable


def test_trees_that_are_always_right_do_not_drown_what_the_views_say() -> None:
    """Labelled anomalies so far out that no held-out row has anything of them."""
    X, y = table(n=200, n_labelled=10)
    X[y == 1] += 30
    committee = quick(n_members=2, n_trees=20).fit(X, y)
    normal, anomalies = later()
    anomalies["known"] += 30
    rows = np.r_[normal, *anomalies.values()]
    scores = committee.anomaly_score(rows)
    trees = scores - committee._mean_evidence(committee._see(rows).scores)
    assert trees.max() < committee.n_trees
    assert len(np.unique(scores)) == len(scores)
    strange = np.repeat([0, 1], [len(normal), len(rows) - len(normal)])
    assert roc_auc_score(strange, scores) > 0.99


@pytest.mark.parametrize(("n_labelled", "n_columns"), [(2, 4), (3, 2), (6, 5000)])
def test_few_labels_and_any_number_of_columns(n_labelled: int, n_columns: int) -> None:
    X, y = table(n=80, n_labelled=n_labelled)
    rng = np.random.default_rng(2)
    wide = np.concatenate([X[:, :2], rng.normal(size=(len(X), n_columns - 2))], axis=1)
    committee = quick(max_epochs=2, n_trees=12).fit(wide, y)
    found = committee.explain(wide[-9:])
    assert np.isfinite(found.score).all()
    np.testing.assert_allclose(found.contributions.sum(1), found.score, rtol=1e-9)
    assert 0 <= committee.tree_weight_ <= 1


@pytest.mark.parametrize("n_labelled", [2, 10])
def test_of_equal_rows_nothing_is_learned_from_labels(n_labelled: int) -> None:
    X, y = table(n_labelled=n_labelled)
    committee = quick(max_epochs=4).fit(np.ones_like(X), y)
    assert committee.tree_weight_ < 0.3
    assert len(np.unique(committee.anomaly_score(np.ones_like(X)))) == 1


def test_hidden_anomalies_are_found_and_counted() -> None:
    X, y = table(n=400, n_labelled=10)
    rng = np.random.default_rng(5)
    hidden = rng.choice(400, 20, replace=False)
    X[hidden, 0] += 6
    committee = quick(max_epochs=40).fit(X, y)
    assert 0.03 < committee.hidden_share_ < 0.08
    assert len(np.intersect1d(committee.suspects_, hidden)) > 12
    clean = quick(max_epochs=40).fit(*table(n=400, n_labelled=10))
    assert clean.hidden_share_ < 0.01


def test_contributions_add_up_to_the_score(fitted: Committee) -> None:
    normal, anomalies = later(20)
    rows = np.r_[normal, anomalies["novel"]]
    found = fitted.explain(rows)
    np.testing.assert_allclose(found.contributions.sum(1), found.score, rtol=1e-9)
    assert np.array_equal(found.score, fitted.anomaly_score(rows))
    assert (found.contributions[20:].argmax(1) == 2).mean() > 0.9
    known = fitted.explain(anomalies["known"])
    assert (known.contributions.argmax(1) == 0).mean() > 0.9


def test_it_is_saved_and_read_back_to_the_bit(fitted: Committee, tmp_path: Path) -> None:
    rows = np.concatenate(list(later(40)[1].values()))
    fitted.save(tmp_path / "model")
    again = aloof.load(tmp_path / "model")
    assert isinstance(again, Committee)
    assert np.array_equal(again.anomaly_score(rows), fitted.anomaly_score(rows))
    assert np.array_equal(again.explain(rows).latent, fitted.explain(rows).latent)
    for name in ("tree_weight_", "hidden_share_", "offset_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert np.array_equal(again.training_scores_, fitted.training_scores_)


def test_a_folder_without_one_of_its_views_is_refused(
    fitted: Committee, tmp_path: Path
) -> None:
    from aloof.estimators import describe
    from aloof.persistence import write_model

    manifest, tensors = describe(fitted)
    del manifest["committee"]["views"]["ranks"]
    write_model(tmp_path / "model", manifest, tensors)
    with pytest.raises(ModelError, match="'ranks' is missing"):
        aloof.load(tmp_path / "model")
    manifest, tensors = describe(fitted)
    tensors["trees.left"] = tensors["trees.left"] + 10**6
    write_model(tmp_path / "other", manifest, tensors)
    with pytest.raises(ModelError, match="nodes that are not there"):
        aloof.load(tmp_path / "other")
    assert "committee" in json.loads((tmp_path / "other" / "manifest.json").read_text())


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_trees": 0}, "n_trees.*int >= 1"),
        ({"patience": 3}, "patience.*leave out rows already"),
        ({"likelihood": "bernoulli"}, "likelihood"),
        ({"separate_encoder": True}, "separate_encoder"),
        ({"warmup_epochs": 0}, "warmup_epochs"),
        ({"max_epochs": 1}, "max_epochs.*at least 2 .*--epochs"),
        ({"warmup_epochs": 12}, "leaves no epoch"),
        ({"standardize": "rank"}, "standardize.*True or False, or None"),
    ],
)
@pytest.mark.filterwarnings("ignore::aloof.exceptions.LabelWarning")
def test_what_it_cannot_do_is_named(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        quick(**parameters).fit(*table())


def test_images_are_refused() -> None:
    with pytest.raises(ValueError, match="DualPriorVAE for images"):
        quick().fit(np.zeros((20, 1, 8, 8)), np.repeat([0, 1], 10))


@pytest.mark.parametrize("width", [2, 400])
def test_any_number_of_columns(width: int) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, width)), np.repeat([0, 1], [54, 6])
    X[54:, 0] += 8
    scores = quick().fit(X, y).anomaly_score(X)
    assert np.isfinite(scores).all()


def test_constant_columns_and_labels_that_equal_normal_rows() -> None:
    y = np.repeat([0, 1], [54, 6])
    X = np.ones((60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        committee = quick().fit(X, y)
    assert np.isfinite(committee.anomaly_score(X)).all()
    assert np.isfinite(committee.anomaly_score(X + 1)).all()
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[54:] = X[:6]
    assert np.isfinite(quick().fit(X, y).anomaly_score(X)).all()


def test_two_epochs_are_enough() -> None:
    X, y = table()
    assert np.isfinite(quick(max_epochs=2).fit(X, y).anomaly_score(X)).all()


def test_a_few_rows_are_enough() -> None:
    X, y = table(n=8, n_labelled=2)
    committee = quick().fit(X, y)
    assert not committee._forests
    assert np.isfinite(committee.anomaly_score(X)).all()


def test_a_single_member_has_views_and_no_trees() -> None:
    committee = quick(n_members=1).fit(*table())
    normal, anomalies = later()
    rows = np.r_[normal, anomalies["known"]]
    assert not committee._forests
    assert roc_auc_score(np.repeat([0, 1], 200), committee.anomaly_score(rows)) > 0.9


def test_scaled_rows_are_left_as_they_are() -> None:
    X, y = table()
    committee = quick(standardize=False).fit(X, y)
    assert np.array_equal(committee.scaling_.transform(X), X)
    assert committee._others["ranks"].standardize == "rank"


def test_folds_of_different_sizes() -> None:
    """Members that leave out one row more have priors of the same size."""
    committee = quick(n_members=5).fit(*table(n=83, n_labelled=5))
    assert committee._aggregate_prior is not None
    assert committee._aggregate_prior.mean.shape[:2] == (5, 16)


def test_a_warning_about_labels_is_given_once() -> None:
    X, _ = table(n=60, n_labelled=0)
    y = np.arange(60) < 50
    with pytest.warns(LabelWarning) as told:
        committee = quick(max_epochs=2).fit(X, y)
    assert len(told) == 1
    with pytest.warns(LabelWarning) as told:
        committee.refit(X, y, max_epochs=1)
    assert len(told) == 1
