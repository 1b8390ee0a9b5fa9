"""The one-class SVM is scikit-learn's, however its kernel is made."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import OneClassSVM as Reference

from aloof.baselines import OneClassSVM, one_class_svm


@pytest.mark.parametrize("most_at_once", [10, 1000])
@pytest.mark.parametrize("kernel_gamma", ["scale", 0.3])
def test_scores_are_those_of_scikit_learn(
    most_at_once: int, kernel_gamma: str | float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_class_svm, "MOST_AT_ONCE", most_at_once)
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 5)), 2 * rng.normal(size=(1500, 5))
    reference = Reference(nu=0.2, gamma=kernel_gamma)
    reference.random_state = 0  # else it draws from NumPy's own generator
    reference.fit(X)
    own = OneClassSVM(nu=0.2, kernel_gamma=kernel_gamma, random_state=0).fit(X)
    assert own.anomaly_score(new) == pytest.approx(-reference.decision_function(new), abs=1e-9)
