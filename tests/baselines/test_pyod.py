from __future__ import annotations

import sys

import numpy as np
import pytest

from aloof.baselines import ECOD, XGBOD
from aloof.exceptions import MissingExtraError


@pytest.mark.parametrize("baseline", [ECOD, XGBOD])
def test_a_missing_extra_is_named(baseline, hidden, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyod", None)
    with pytest.raises(MissingExtraError, match=r"needs pyod.*aloof\[bench\]"):
        baseline().fit(hidden.X, hidden.y)


def test_xgbod_says_that_xgboost_is_missing(hidden, monkeypatch):
    pytest.importorskip("pyod")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"needs xgboost.*aloof\[bench\]"):
        XGBOD().fit(hidden.X, hidden.y)


def test_ecod_is_pyods(visible):
    ecod = pytest.importorskip("pyod.models.ecod")
    normal = visible.X[visible.y == 0]
    np.testing.assert_array_equal(
        ECOD().fit(visible.X, visible.y).anomaly_score(visible.X_test),
        ecod.ECOD().fit(normal).decision_function(visible.X_test),
    )
