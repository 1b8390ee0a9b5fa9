"""Scorers know which way is up, whatever the labels are called."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aloof.exceptions import LabelError
from aloof.metrics import SCORERS, hits_at_k, scorer

RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(size=(180, 3)), RNG.normal(size=(20, 3)) + 2.5]
Y = np.r_[np.zeros(180, int), np.ones(20, int)]


@pytest.fixture(scope="module")
def forest() -> IsolationForest:
    return IsolationForest(n_estimators=20, contamination=0.1, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("labels", "y"),
    [
        (None, Y),
        (None, Y.astype(bool)),
        ("sklearn-outlier", 1 - 2 * Y),
        ({"ok": 0, "fraud": 1}, np.where(Y == 1, "fraud", "ok")),
        ({"ok": 0, "outlier": 1}, np.where(Y == 1, "outlier", "ok")),
    ],
    ids=["0-1", "boolean", "sklearn", "fraud", "outlier"],
)
def test_every_convention_gives_the_same_figures(
    labels: Any, y: np.ndarray, forest: IsolationForest
) -> None:
    found = {name: scorer(name, labels=labels)(forest, X, y) for name in SCORERS}
    scores, flagged = -forest.score_samples(X), forest.predict(X) == -1
    assert found["roc_auc"] == roc_auc_score(Y, scores) > 0.9
    assert found["average_precision"] == average_precision_score(Y, scores)
    assert found["f1"] == f1_score(Y, flagged)
    assert found["recall"] == flagged[Y == 1].mean()
    assert found["precision"] == Y[flagged].mean()
    assert found["accuracy"] == (flagged == Y).mean()
    worst = np.argsort(-scores)[:20]
    assert found["precision_at_k"] == found["recall_at_k"] == Y[worst].mean()
    at_ten = Y[worst[:10]].mean()
    assert scorer("precision_at_k", labels=labels, k=10)(forest, X, y) == at_ten
    assert scorer("recall_at_k", labels=labels, k=10)(forest, X, y) == at_ten / 2


def test_rows_without_a_label_have_no_say(forest: IsolationForest) -> None:
    y = np.where(np.arange(200) % 3 == 0, np.nan, Y)
    known = ~np.isnan(y)
    for name in SCORERS:
        assert SCORERS[name](forest, X, y) == SCORERS[name](forest, X[known], Y[known])


def test_equal_scores_share_their_places() -> None:
    labels, scores = np.array([1, 0, 1, 0, 0]), np.array([3.0, 1.0, 1.0, 1.0, 0.0])
    assert hits_at_k(labels, scores, 1) == 1
    assert hits_at_k(labels, scores, 2) == pytest.approx(1 + 1 / 3)
    assert hits_at_k(labels, scores, 5) == 2
    with pytest.raises(ValueError, match="from 1 to the 5 labelled rows; got 6"):
        hits_at_k(labels, scores, 6)


def test_pipelines_and_several_figures_at_once() -> None:
    pipeline = make_pipeline(StandardScaler(), IsolationForest(n_estimators=5, random_state=0))
    order = RNG.permutation(200)
    found = cross_validate(pipeline, X[order], Y[order], scoring=SCORERS, cv=2)
    assert found["test_roc_auc"].min() > 0.85
    assert set(found) >= {f"test_{name}" for name in SCORERS}


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.zeros(200), r"no rows labelled as anomalies.*cv=StratifiedKFold\(shuffle=True\)"),
        (np.ones(200), "no rows labelled as normal"),
        (1 - 2 * Y, "labels='sklearn-outlier'"),
        (np.where(Y == 1, "bad", "good"), "y holds strings"),
        (Y[:9], "X has 200 rows, y has 9"),
    ],
)
def test_labels_that_say_nothing_are_refused(
    y: np.ndarray, words: str, forest: IsolationForest
) -> None:
    with pytest.raises(LabelError, match=words):
        SCORERS["roc_auc"](forest, X, y)


def test_names_and_what_they_take() -> None:
    with pytest.raises(ValueError, match=r"no scorer 'auroc'. Choose from roc_auc, "):
        scorer("auroc")
    with pytest.raises(ValueError, match="'f1' takes no k"):
        scorer("f1", k=3)
    with pytest.raises(TypeError, match=r"aloof\.metrics only scores outlier detectors"):
        scorer("roc_auc")(StandardScaler(), X, Y)
    made = scorer("recall_at_k", labels="pyod", k=5)
    assert repr(made) == "scorer('recall_at_k', labels='pyod', k=5)"
    assert pickle.loads(pickle.dumps(made)) == made  # searches with n_jobs send it
