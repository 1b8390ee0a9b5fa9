from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from aloof.baselines import BASELINES, Baseline


class Task(NamedTuple):
    """Training rows with labels, test rows with the truth."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def task(normal, anomalies, n_labelled: int) -> Task:
    def rows(n_anomalies):
        X = np.concatenate([normal(300), anomalies(n_anomalies)])
        return X, np.repeat([0, 1], [300, n_anomalies])

    return Task(*rows(n_labelled), *rows(100))


@pytest.fixture(scope="session")
def visible() -> Task:
    """Anomalies leave the subspace that normal rows lie in: no label is needed."""
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(3, 8))
    scale = np.sqrt(np.square(basis).sum(0) + 0.09)

    def normal(n: int) -> NDArray[np.float64]:
        return (rng.normal(size=(n, 3)) @ basis + 0.3 * rng.normal(size=(n, 8))) / scale

    return task(normal, lambda n: 1.5 * rng.normal(size=(n, 8)), n_labelled=15)


@pytest.fixture(scope="session")
def hidden() -> Task:
    """Anomalies are a cluster inside of the normal cloud: only labels give them away."""
    rng = np.random.default_rng(1)

    def anomalies(n: int) -> NDArray[np.float64]:
        return 0.5 * rng.normal(size=(n, 6)) + 1.5 * np.eye(6)[0]

    return task(lambda n: rng.normal(size=(n, 6)), anomalies, n_labelled=20)


_SPHERE = {
    "max_epochs": 20,
    "learning_rate": 1e-3,
    "pretrain_epochs": 20,
    "pretrain_learning_rate": 1e-3,
}
SHORT = {
    "autoencoder": {"max_epochs": 30, "learning_rate": 1e-3},
    "oc-svm-hybrid": {"max_epochs": 30},
    "iforest-hybrid": {"max_epochs": 30},
    "kde-hybrid": {"max_epochs": 30},
    "ssad-hybrid": {"max_epochs": 30},
    "deep-svdd": _SPHERE,
    "deep-svdd-soft": _SPHERE,
    "deep-sad": _SPHERE,
    "deep-sad-5": _SPHERE,
    "deep-sad-no-pretraining": _SPHERE | {"pretrain_epochs": 0},
    "classifier": {"max_epochs": 30},
    "devnet": {"max_epochs": 20},
    "ss-dgm": {"max_epochs": 20, "learning_rate": 3e-3},
}


@pytest.fixture(scope="session")
def make():
    """Build a baseline by name, with a short training."""

    def build(name: str, random_state: int | None = 0) -> Baseline:
        if name in ("ecod", "xgbod"):
            pytest.importorskip("pyod")
        if name == "xgbod":
            pytest.importorskip("xgboost")
        return BASELINES[name](random_state=random_state, **SHORT.get(name, {}))

    return build


@pytest.fixture(scope="session")
def fitted(make, visible, hidden):
    """Fit by name and task with seed 0, once for all tests."""
    tasks, done = {"visible": visible, "hidden": hidden}, {}

    def fit(name: str, task_name: str) -> Baseline:
        if (name, task_name) not in done:
            on = tasks[task_name]
            done[name, task_name] = make(name).fit(on.X, on.y)
        return done[name, task_name]

    return fit
