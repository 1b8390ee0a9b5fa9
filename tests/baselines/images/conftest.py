from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from aloof.baselines.images import (
    FittedImages,
    ImageProblem,
    ImageSchedule,
    fit_image_baselines,
)

CPU = torch.device("cpu")
NETWORK = {"filters": (4, 8), "hidden": (16,), "latent_dim": 8, "kernel": 3}
SHORT = ImageSchedule(
    max_epochs=15,
    learning_rate=1e-3,
    pretrain_epochs=15,
    pretrain_learning_rate=1e-3,
    batch_size=64,
)
_SIDE = np.arange(8.0)


class Images(NamedTuple):
    """Training images, which of them are what, and test images with the truth."""

    train: NDArray[np.uint8]
    normal: NDArray[np.int64]
    anomaly: NDArray[np.int64]
    test: NDArray[np.uint8]
    y_test: NDArray[np.int64]

    def problem(self, seeds=(0,), n_anomalies: int | None = None) -> ImageProblem:
        return ImageProblem(self.normal, seeds, self.anomaly[:n_anomalies])

    def auroc(self, scores: NDArray[np.float64]) -> float:
        return float(roc_auc_score(self.y_test, scores))


def bytes_of(x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint8]:
    noisy = x + 0.1 * rng.normal(size=x.shape)
    return (255 * noisy.clip(0, 1)).astype(np.uint8)[:, None]


def blobs(rows: NDArray[np.float64], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """A bright spot at each place."""
    across = (_SIDE[:, None] - rows[:, None, None]) ** 2
    along = (_SIDE[None, :] - columns[:, None, None]) ** 2
    return np.exp(-(across + along) / 3.0)


def stripes(phase: NDArray[np.float64]) -> NDArray[np.float64]:
    wave = 0.5 + 0.5 * np.sin(2 * np.pi * _SIDE / 4 + phase[:, None])
    return np.repeat(wave[:, :, None], len(_SIDE), 2)


def images(normal, anomalies, n_labelled: int, rng: np.random.Generator) -> Images:
    train = bytes_of(np.concatenate([normal(200), anomalies(n_labelled)]), rng)
    test = bytes_of(np.concatenate([normal(100), anomalies(100)]), rng)
    rows = np.arange(200 + n_labelled)
    return Images(train, rows[:200], rows[200:], test, np.repeat([0, 1], 100))


@pytest.fixture(scope="session")
def visible() -> Images:
    """Stripes that run down among stripes that run across: no label is needed."""
    rng = np.random.default_rng(0)

    def across(n: int) -> NDArray[np.float64]:
        return stripes(rng.uniform(0, 2 * np.pi, n))

    return images(across, lambda n: across(n).swapaxes(1, 2), 10, rng)


@pytest.fixture(scope="session")
def hidden() -> Images:
    """Spots in one corner, among spots anywhere: only labels give them away."""
    rng = np.random.default_rng(1)

    def spots(n: int, end: float) -> NDArray[np.float64]:
        return blobs(rng.uniform(1, end, n), rng.uniform(1, end, n))

    return images(lambda n: spots(n, 6.0), lambda n: spots(n, 2.5), 20, rng)


@pytest.fixture(scope="session")
def fit():
    """Fit a method to problems of one set of images."""

    def fitted(
        of: Images, problems: list[ImageProblem], method: str, **options
    ) -> list[FittedImages]:
        options = {"network": NETWORK, "schedule": SHORT, "device": CPU} | options
        return fit_image_baselines(torch.from_numpy(of.train), problems, method, **options)

    return fitted
