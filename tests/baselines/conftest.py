from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from aloof.baselines import BASELINES, Baseline, Fitted
from aloof.baselines.weights import find_weights
from aloof.exceptions import ModelError
from aloof.problem import Problem


class Rows(NamedTuple):
    """Training rows with labels, test rows with the truth."""

    X: NDArray[np.generic]
    y: NDArray[np.int64]
    X_test: NDArray[np.generic]
    y_test: NDArray[np.int64]

    def problem(self, seeds=(0,), n_anomalies: int | None = None) -> Problem:
        return Problem(
            normal=np.flatnonzero(self.y == 0),
            anomaly=np.flatnonzero(self.y == 1)[:n_anomalies],
            seeds=seeds,
        )

    def auroc(self, scores: NDArray[np.float64]) -> float:
        return float(roc_auc_score(self.y_test, scores))


def drawn(normal, anomalies, n_normal: int, n_labelled: int) -> Rows:
    def rows(n_normal, n_anomalies):
        X = np.concatenate([normal(n_normal), anomalies(n_anomalies)])
        return X, np.repeat([0, 1], [n_normal, n_anomalies])

    return Rows(*rows(n_normal, n_labelled), *rows(n_normal, 100))


@pytest.fixture(scope="session")
def visible() -> Rows:
    """Anomalies leave the subspace that normal rows lie in: no label is needed."""
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(3, 8))
    scale = np.sqrt(np.square(basis).sum(0) + 0.09)

    def normal(n: int) -> NDArray[np.float64]:
        return (rng.normal(size=(n, 3)) @ basis + 0.3 * rng.normal(size=(n, 8))) / scale

    return drawn(normal, lambda n: 1.5 * rng.normal(size=(n, 8)), 300, 15)


@pytest.fixture(scope="session")
def hidden() -> Rows:
    """Anomalies are a cluster inside of the normal cloud: only labels give them away."""
    rng = np.random.default_rng(1)

    def anomalies(n: int) -> NDArray[np.float64]:
        return 0.5 * rng.normal(size=(n, 6)) + 1.5 * np.eye(6)[0]

    return drawn(lambda n: rng.normal(size=(n, 6)), anomalies, 300, 20)


_SIDE = np.arange(8.0)


def in_bytes(x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint8]:
    noisy = x + 0.1 * rng.normal(size=x.shape)
    return (255 * noisy.clip(0, 1)).astype(np.uint8)[:, None]


@pytest.fixture(scope="session")
def visible_images() -> Rows:
    """Stripes that run down among stripes that run across: no label is needed."""
    rng = np.random.default_rng(0)

    def across(n: int) -> NDArray[np.float64]:
        phase = rng.uniform(0, 2 * np.pi, n)
        wave = 0.5 + 0.5 * np.sin(2 * np.pi * _SIDE / 4 + phase[:, None])
        return np.repeat(wave[:, :, None], len(_SIDE), 2)

    return drawn(
        lambda n: in_bytes(across(n), rng),
        lambda n: in_bytes(across(n).swapaxes(1, 2), rng),
        200,
        10,
    )


@pytest.fixture(scope="session")
def few_images(visible_images) -> Rows:
    """For what looks at every image in many ways."""
    X, y, X_test, y_test = visible_images
    return Rows(X[160:], y[160:], X_test[184:216], y_test[184:216])


@pytest.fixture(scope="session")
def hidden_images() -> Rows:
    """Spots in one corner, among spots anywhere: only labels give them away."""
    rng = np.random.default_rng(1)

    def spots(n: int, end: float) -> NDArray[np.uint8]:
        rows, columns = rng.uniform(1, end, (2, n, 1, 1))
        squared = (_SIDE[:, None] - rows) ** 2 + (_SIDE[None, :] - columns) ** 2
        return in_bytes(np.exp(-squared / 3.0), rng)

    return drawn(lambda n: spots(n, 6.0), lambda n: spots(n, 2.5), 200, 20)


_SPHERE = {
    "max_epochs": 20,
    "learning_rate": 1e-3,
    "pretrain_epochs": 20,
    "pretrain_learning_rate": 1e-3,
}
SHORT = {
    "adgan": {"max_epochs": 30, "learning_rate": 1e-3, "n_starts": 4},
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
    "dagmm": {"max_epochs": 60},
    "dsebm": {"max_epochs": 15},
    "inclusive-nrf": {"max_epochs": 20, "learning_rate": 5e-3},
    "devnet": {"max_epochs": 20},
    "prenet": {"max_epochs": 20},
    "ss-dgm": {"max_epochs": 20, "learning_rate": 3e-3},
    "ss-dgm-m1-m2": {"max_epochs": 30, "pretrain_epochs": 30, "learning_rate": 3e-3},
    "ss-dgm-m2": {"max_epochs": 30, "learning_rate": 3e-3},
    "tabpfn-v1": {"n_configurations": 2, "device": "cpu"},
}
PACKAGES = {"ecod": ["pyod"], "xgbod": ["pyod", "xgboost"], "lightgbm": ["lightgbm"]}


@pytest.fixture(scope="session")
def published():
    """Skip a test where the weights of TabPFN v1 are not at hand."""

    def weights() -> str:
        try:
            return str(find_weights(None, "", "tabpfn", ("*.cpkt", "tabpfn-0.1.tar.gz"), ""))
        except ModelError:
            pytest.skip("the weights of TabPFN v1 are not here")

    return weights


@pytest.fixture(scope="session")
def make(published):
    """Build a baseline by name, with a short training."""

    def build(name: str, random_state: int | None = 0) -> Baseline:
        for package in PACKAGES.get(name, []):
            pytest.importorskip(package)
        if name == "tabpfn-v1":
            published()
        return BASELINES[name](random_state=random_state, **SHORT.get(name, {}))

    return build


@pytest.fixture(scope="session")
def fitted(make, visible, hidden):
    """Fit by name and rows with seed 0, once for all tests."""
    rows, done = {"visible": visible, "hidden": hidden}, {}

    def fit(name: str, rows_name: str) -> Baseline:
        if (name, rows_name) not in done:
            on = rows[rows_name]
            done[name, rows_name] = make(name).fit(on.X, on.y)
        return done[name, rows_name]

    return fit


# What else makes a fit, or its scores, brief.
SMALL = {
    "adgan": {"n_starts": 2, "search_steps": 2},
    "ss-dgm-m1-m2": {"images": None, "hidden": (16, 8, 4)},
    "ss-dgm-m2": {"hidden": (16, 8, 4)},
    "dadgt": {"images": None, "depth": 10, "widen": 1, "normality": "softmax"},
}
NETWORK = {"filters": (4, 8), "hidden": (16,), "latent_dim": 8, "kernel": 3}


@pytest.fixture(scope="session")
def fit_problems():
    """Fit a deep baseline by name to problems of the same rows, for two epochs a phase."""

    def fit(name: str, of: Rows, problems: list[Problem], **options) -> list[Fitted]:
        brief = {"max_epochs": 2, "batch_size": 64, "device": "cpu"}
        brief["images"] = NETWORK if of.X.ndim == 4 else None
        if "pretrain_epochs" in BASELINES[name]().get_params(deep=False):
            brief["pretrain_epochs"] = 2
        brief |= SMALL.get(name, {})
        call = {k: options.pop(k) for k in ("checkpoint", "on_epoch") if k in options}
        baseline = BASELINES[name](**brief | options)
        return baseline.fit_problems(torch.from_numpy(of.X), problems, **call)

    return fit
