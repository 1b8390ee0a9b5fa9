from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from aloof.baselines import ExtraTrees, LightGBM, RandomForest
from aloof.baselines.contract import numpy_seed
from aloof.exceptions import MissingExtraError


@pytest.mark.parametrize(
    ("baseline", "theirs"),
    [(RandomForest, RandomForestClassifier), (ExtraTrees, ExtraTreesClassifier)],
)
@pytest.mark.parametrize("balanced", [False, True])
def test_forests_are_those_of_scikit_learn(baseline, theirs, balanced, hidden):
    expected = theirs(
        n_estimators=10,
        class_weight="balanced" if balanced else None,
        random_state=numpy_seed(3),
    ).fit(hidden.X, hidden.y == 1)
    found = baseline(n_trees=10, balanced=balanced, random_state=3).fit(hidden.X, hidden.y)
    np.testing.assert_allclose(
        found.anomaly_score(hidden.X_test), expected.predict_proba(hidden.X_test)[:, 1]
    )


def test_extra_trees_are_balanced_and_forests_are_not_unless_asked():
    assert ExtraTrees().balanced
    assert not RandomForest().balanced
    assert not LightGBM().balanced


def test_lightgbm_is_lightgbms(hidden):
    lightgbm = pytest.importorskip("lightgbm")
    expected = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1).fit(hidden.X, hidden.y)
    found = LightGBM(n_trees=20, random_state=0).fit(hidden.X, hidden.y)
    logits = found.anomaly_score(hidden.X_test)
    np.testing.assert_allclose(
        1 / (1 + np.exp(-logits)),
        expected.predict_proba(hidden.X_test)[:, 1],
        rtol=1e-6,
    )
    balanced = LightGBM(n_trees=20, random_state=0, balanced=True).fit(hidden.X, hidden.y)
    assert balanced.anomaly_score(hidden.X_test).mean() > logits.mean() + 1


def test_lightgbm_says_that_it_is_missing(hidden, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"LightGBM needs lightgbm.*aloof\[bench\]"):
        LightGBM().fit(hidden.X, hidden.y)
