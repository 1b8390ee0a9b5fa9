"""What people who know scikit-learn type: right, or refused in a line that helps."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    get_scorer,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version
from torch import nn

import aloof
from aloof import VAE, DualPriorVAE
from aloof.datasets import load_dataset
from aloof.exceptions import LabelError, LabelWarning
from aloof.metrics import scorer

REAL = Path(os.environ.get("ALOOF_DATA") or Path(__file__).parents[3] / "shared" / "data")
SHORT: dict[str, Any] = {"n_members": 1, "max_epochs": 6, "hidden": (16,), "latent_dim": 4}
SHORT |= {"random_state": 0, "contamination": 0.05}
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    X[270:, 0] += 4
    order = rng.permutation(300)
    return X[order], (order >= 270).astype(int)


X, Y = rows()
# How people write labels, and how a detector is told.
CONVENTIONS: dict[str, tuple[Any, Any]] = {
    "0-1": ("aloof", lambda y: y),
    "sklearn": ("sklearn-outlier", lambda y: 1 - 2 * y),
    "fraud": ({"ok": 0, "fraud": 1}, lambda y: np.where(y == 1, "fraud", "ok")),
    "outlier": ({"ok": 0, "outlier": 1}, lambda y: np.where(y == 1, "outlier", "ok")),
}
# Which scorers of scikit-learn are right about which labels; they are refused about others.
RIGHT = {
    "roc_auc": {"sklearn", "fraud"},
    "average_precision": set[str](),
    "f1": set[str](),
    "accuracy": {"sklearn"},
}


def truth(name: str, detector: Any, rows: np.ndarray, y: np.ndarray) -> float:
    """Compute a figure by hand, with 1 for anomalies."""
    scores, flagged = -detector.score_samples(rows), detector.predict(rows) == -1
    if name in ("roc_auc", "average_precision"):
        metric = roc_auc_score if name == "roc_auc" else average_precision_score
        return float(metric(y, scores))
    return float({"f1": f1_score, "accuracy": accuracy_score}[name](y, flagged))


def check_right_or_refused(X: np.ndarray, y: np.ndarray, kind: str) -> None:
    labels, write = CONVENTIONS[kind]
    detector, written = DualPriorVAE(labels=labels, **SHORT), write(y)
    expected = []
    for train, test in FOLDS.split(X, y):
        fitted = clone(detector).fit(X[train], written[train])
        expected.append({name: truth(name, fitted, X[test], y[test]) for name in RIGHT})
        for name, right in RIGHT.items():
            assert scorer(name)(fitted, X[test], written[test]) == expected[-1][name]
            if kind in right:
                theirs = get_scorer(name)(fitted, X[test], written[test])
                assert theirs == pytest.approx(expected[-1][name])
            else:
                with pytest.raises(LabelError, match=rf"aloof.metrics.scorer\('{name}'\)"):
                    get_scorer(name)(fitted, X[test], written[test])
    areas = [figures["roc_auc"] for figures in expected]
    assert min(areas) > 0.9
    ours = cross_val_score(detector, X, written, scoring=scorer("roc_auc"), cv=FOLDS)
    np.testing.assert_allclose(ours, areas)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        theirs = cross_val_score(detector, X, written, scoring="roc_auc", cv=FOLDS)
    if kind in RIGHT["roc_auc"]:
        np.testing.assert_allclose(theirs, areas)
    else:
        assert np.isnan(theirs).all()
        assert "aloof.metrics.scorer('roc_auc')" in str(said[0].message)


def check_search(X: np.ndarray, y: np.ndarray, kind: str) -> None:
    """The better of two settings is chosen: one leaps, the other one learns."""
    labels, write = CONVENTIONS[kind]
    grid = {"learning_rate": [0.5, 3e-3]}
    detector = DualPriorVAE(labels=labels, **SHORT)
    search = GridSearchCV(detector, grid, cv=FOLDS).fit(X, write(y))
    worse, better = search.cv_results_["mean_test_score"]
    assert better > worse + 0.02
    assert search.best_params_ == {"learning_rate": 3e-3}
    assert search.score(X, write(y)) == truth("roc_auc", search.best_estimator_, X, y)


@pytest.mark.parametrize("kind", CONVENTIONS)
def test_scorers_are_right_or_refused(kind: str) -> None:
    check_right_or_refused(X, Y, kind)


@pytest.mark.parametrize("kind", CONVENTIONS)
@pytest.mark.skipif(
    not (REAL / "odds").is_dir(), reason="no folder with real data; ALOOF_DATA can name one"
)
def test_cardio(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALOOF_DATA", str(REAL))
    table = load_dataset("cardio")
    check_right_or_refused(table.X, table.y, kind)
    check_search(table.X, table.y, kind)


def test_labels_that_were_not_declared_are_refused() -> None:
    for y, words in (
        (1 - 2 * Y, r"labels='sklearn-outlier'"),
        (np.where(Y == 1, "a", "b"), r"detector\.set_params\(labels=convention\)"),
    ):
        with pytest.raises(LabelError, match=words):
            DualPriorVAE(**SHORT).fit(X, y)
        with pytest.raises(ValueError, match="All the 2 fits failed"):
            cross_val_score(DualPriorVAE(**SHORT), X, y, cv=FOLDS)
    with pytest.raises(LabelError, match="not part of the convention"):
        DualPriorVAE(labels="sklearn-outlier", **SHORT).fit(X, Y)
    with pytest.raises(ValueError, match=r"'labels' parameter .* got 'sklearn'"):
        DualPriorVAE(labels="sklearn", **SHORT).fit(X, Y)


def test_declared_labels_are_those_of_fit_calibrate_and_score(tmp_path: Path) -> None:
    plain = DualPriorVAE(**SHORT).fit(X[:200], Y[:200]).calibrate(X[200:], Y[200:])
    for kind, (labels, write) in CONVENTIONS.items():
        y = write(Y)
        same = DualPriorVAE(labels=labels, **SHORT).fit(X[:200], y[:200])
        same.calibrate(X[200:], y[200:])
        np.testing.assert_array_equal(same.score_samples(X), plain.score_samples(X))
        np.testing.assert_array_equal(same.calibration_scores_, plain.calibration_scores_)
        assert same.score(X, y) == plain.score(X, Y)
        same.save(tmp_path / kind)
        loaded = aloof.load(tmp_path / kind)
        assert loaded.labels == labels
        assert loaded.score(X, y) == plain.score(X, Y)


def test_scorers_of_ones_own_know_what_they_do() -> None:
    fitted = DualPriorVAE(**SHORT).fit(X, Y)
    flipped = make_scorer(
        lambda y, score: roc_auc_score(y, -score), response_method="decision_function"
    )
    assert flipped(fitted, X, Y) == fitted.score(X, Y)
    outliers = DualPriorVAE(labels="sklearn-outlier", **SHORT).fit(X, 1 - 2 * Y)
    of_anomalies = make_scorer(f1_score, pos_label=-1)
    assert of_anomalies(outliers, X, 1 - 2 * Y) == scorer("f1")(outliers, X, 1 - 2 * Y)


def test_several_scorers_of_scikit_learn_share_a_refusal() -> None:
    """They share the response as well: one that is right must not hand it to a wrong one."""
    detector = DualPriorVAE(labels="sklearn-outlier", **SHORT)
    with pytest.warns(UserWarning, match="Scoring failed"):
        found = cross_validate(
            detector, X, 1 - 2 * Y, scoring=["roc_auc", "average_precision"], cv=FOLDS
        )
    assert np.isnan(found["test_average_precision"]).all()


def test_pipelines_are_searched_with_frames_and_names() -> None:
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, DualPriorVAE(**SHORT))
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = RandomizedSearchCV(
        pipeline,
        {"dualpriorvae__latent_dim": [2, 4]},
        n_iter=2,
        cv=FOLDS,
        scoring=scorer("average_precision"),
        random_state=0,
    ).fit(frame, pd.Series(Y))
    assert list(search.best_estimator_[-1].feature_names_in_) == list("abcd")
    assert search.best_score_ > 0.5
    with pytest.raises(LabelError, match="would be wrong"):
        get_scorer("roc_auc")(search.best_estimator_, frame, Y)


def test_scorers_that_are_not_known_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a scikit-learn to come: a warning, and neither a refusal nor an error of ours."""
    detector = DualPriorVAE(**SHORT).fit(X, Y)
    monkeypatch.setattr("aloof.estimators._scorers._INSIDE", ("_called_otherwise",))
    with pytest.warns(LabelWarning, match=r"Use scoring=aloof.metrics.scorer\('roc_auc'\)"):
        get_scorer("roc_auc")(detector, X, Y)


def test_probabilities() -> None:
    rng = np.random.default_rng(1)
    detector = DualPriorVAE(**SHORT).fit(X, Y)
    assert not hasattr(detector, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        detector.predict_proba(X)
    assert "Call calibrate(X, y) with rows that were not used" in str(caught.value.__cause__)
    fresh = rng.normal(size=(1000, 4))
    fresh[900:, 0] += 2.5
    y = np.r_[np.zeros(900), np.ones(100)]
    half = rng.permutation(1000) < 500
    detector.calibrate(fresh[half], y[half])
    found = detector.predict_proba(fresh[~half])
    np.testing.assert_allclose(found.sum(1), 1)
    assert found[:, 1].mean() == pytest.approx(0.1, abs=0.03)
    share = y[~half].mean()
    assert np.mean((found[:, 1] - y[~half]) ** 2) < 0.8 * share * (1 - share)
    order = np.argsort(detector.anomaly_score(fresh[~half]))
    assert (np.diff(found[order, 1]) >= 0).all()
    # Of rows with a probability of about p, about p are anomalies.
    likely = found[:, 1] > 0.5
    assert y[~half][likely].mean() == pytest.approx(found[likely, 1].mean(), abs=0.2)
    if parse_version(sklearn.__version__) >= parse_version("1.7"):  # 1.6 refuses both columns
        assert get_scorer("neg_brier_score")(detector, fresh[~half], y[~half]) > -0.8 * 0.09
    detector.calibrate(fresh[half][y[half] == 0])
    assert not hasattr(detector, "predict_proba")


def test_probabilities_are_saved(tmp_path: Path) -> None:
    detector = DualPriorVAE(**SHORT).fit(X, Y).calibrate(X, Y)
    detector.save(tmp_path / "model")
    loaded = DualPriorVAE.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), detector.predict_proba(X))


def test_tensors_are_rows_and_labels() -> None:
    plain = DualPriorVAE(**SHORT).fit(X, Y)
    rows = torch.from_numpy(X).requires_grad_()
    same = DualPriorVAE(**SHORT).fit(rows, torch.from_numpy(Y))
    np.testing.assert_array_equal(same.score_samples(rows), plain.score_samples(X))
    assert same.score(rows, torch.from_numpy(Y)) == plain.score(X, Y)
    assert same.score_samples(torch.zeros(2, 4, dtype=torch.bfloat16)).shape == (2,)
    images = torch.zeros(20, 1, 8, 8, dtype=torch.uint8)
    assert VAE(**SHORT).fit(images).score_samples(images).shape == (20,)


def test_series_are_labels_by_position() -> None:
    plain = DualPriorVAE(**SHORT).fit(X, Y).score_samples(X)
    for index in (None, [f"row {i}" for i in range(300)], np.zeros(300)):
        same = DualPriorVAE(**SHORT).fit(X, pd.Series(Y, index=index))
        np.testing.assert_array_equal(same.score_samples(X), plain)
    frame, turned = pd.DataFrame(X), pd.Series(Y)[::-1]
    with pytest.warns(LabelWarning, match=r"pass y.loc\[X.index\]"):
        DualPriorVAE(**SHORT).fit(frame, turned)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DualPriorVAE(**SHORT).fit(frame[::-1], turned)


@pytest.mark.parametrize("shape", [(12, 8, 8, 1), (12, 8, 6, 3), (12, 8, 8, 4)])
def test_channels_at_the_end_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"channels last, .* X.transpose\(0, 3, 1, 2\)"):
        VAE(**SHORT).fit(np.zeros(shape, np.uint8))
    with pytest.raises(ValueError, match="channels last"):
        VAE(**SHORT).fit(np.zeros((12, 1, 8, 8), np.uint8)).score_samples(np.zeros(shape))


def test_networks_are_made_not_given() -> None:
    network = nn.Sequential(nn.Identity(), nn.ReLU())
    with pytest.raises(ValueError, match=r"makes a new network for each member; got a Sequen"):
        VAE(encoder=network, decoder=network).fit(X)


def test_history_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    detector = DualPriorVAE(**(SHORT | {"n_members": 2, "patience": 2})).fit(X, Y)
    figure = detector.plot_history()
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [name.replace("_", " ") for name in detector.history_]
    line = figure.axes[0].lines[0]
    np.testing.assert_array_equal(line.get_ydata(), detector.history_["loss"][:, 0])
    without = VAE(**SHORT).fit(X).plot_history()
    assert "anomaly" not in [axis.get_title() for axis in without.axes]
