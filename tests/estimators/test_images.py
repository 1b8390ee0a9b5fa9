"""Arrays of images in the detectors: bytes or numbers, without networks of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pictures import disc
from torch import nn

import aloof
from aloof import VAE, DualPriorVAE, MaxMinDualPriorVAE, MaxMinVAE, fit_many

SMALL = {
    "n_members": 2,
    "filters": (4,),
    "hidden": (16,),
    "latent_dim": 4,
    "max_epochs": 6,
    "random_state": 0,
}


def images(n: int, n_anomalies: int, seed: int = 0) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) >= n - n_anomalies
    X = np.stack([disc(rng, 8, scratched=bool(bad)) for bad in y]).transpose(0, 3, 1, 2)
    return np.ascontiguousarray(X), y.astype(int)


X, Y = images(70, 6)


@pytest.fixture(scope="module")
def fitted() -> DualPriorVAE:
    return DualPriorVAE(**SMALL).fit(X, Y)


@pytest.mark.parametrize("kind", [VAE, DualPriorVAE, MaxMinVAE, MaxMinDualPriorVAE])
def test_every_method_learns_images(kind: type[VAE]) -> None:
    detector = kind(**SMALL).fit(X, Y)
    assert detector.shape_ == (3, 8, 8)
    loss = detector.history_["reconstruction"]
    assert (loss[-1] < loss[0]).all()
    scores = detector.anomaly_score(X)
    assert len(np.unique(scores)) == len(X)


def test_bytes_and_numbers_are_the_same_images() -> None:
    """On a CPU, which adds up in the same order in every fit."""
    pixels = DualPriorVAE(**SMALL, device="cpu").fit(X, Y)
    numbers = DualPriorVAE(**SMALL, device="cpu").fit(X / 255, Y)
    np.testing.assert_allclose(
        numbers.anomaly_score(X / 255), pixels.anomaly_score(X), rtol=1e-4
    )
    np.testing.assert_allclose(
        pixels.anomaly_score(X / 255), pixels.anomaly_score(X), rtol=1e-6
    )


def test_bytes_are_kept_as_bytes_and_the_callers_array_is_not_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No copy of all images as numbers: scoring reads a few rows at a time, on a CPU 512."""
    detector = VAE(**SMALL, device="cpu").fit(X)
    sizes = []
    original = type(detector.scaling_).transform

    def transform(self, rows):
        sizes.append(len(rows))
        return original(self, rows)

    monkeypatch.setattr(type(detector.scaling_), "transform", transform)
    many = np.concatenate([X] * 12)
    before = many.copy()
    detector.anomaly_score(many)
    assert max(sizes) <= 512 < len(many)
    assert np.array_equal(many, before)


def test_read_only_bytes_are_fine() -> None:
    frozen = X.copy()
    frozen.flags.writeable = False
    VAE(**SMALL).fit(frozen)


def test_images_on_disk_train_the_same_model(tmp_path: Path, fitted: DualPriorVAE) -> None:
    mapped = np.memmap(tmp_path / "images", np.uint8, "w+", shape=X.shape)
    mapped[:] = X
    again = DualPriorVAE(**SMALL)
    fit_many([again], [(mapped, Y)])
    assert np.array_equal(again.anomaly_score(mapped), fitted.anomaly_score(X))


def test_a_saved_detector_gives_the_same_scores(tmp_path: Path, fitted: DualPriorVAE) -> None:
    fitted.save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["shape"] == [3, 8, 8]
    for loaded in (aloof.load(tmp_path / "model"), DualPriorVAE.load(tmp_path / "model")):
        assert np.array_equal(loaded.anomaly_score(X), fitted.anomaly_score(X))
        assert loaded.filters == (4,)
    assert json.loads(json.dumps(manifest["parameters"]["standardize"])) is None


def test_contributions_of_pixels_add_up_to_the_score(fitted: DualPriorVAE) -> None:
    found = fitted.explain(X[-8:])
    assert found.contributions.shape == (8, 3, 8, 8)
    np.testing.assert_allclose(
        found.contributions.sum((1, 2, 3)), fitted.anomaly_score(X[-8:]), rtol=1e-6
    )
    assert found.expected.min() >= 0
    assert found.expected.max() <= 1


def test_prototypes_are_reconstructions_of_normal_images(fitted: DualPriorVAE) -> None:
    rows = fitted.prototypes()
    assert rows.shape == (16, 3, 8, 8)  # a quarter of the 64 normal images
    normal = np.flatnonzero(Y == 0)
    first, last = normal[0], normal[-1]
    np.testing.assert_allclose(rows[[0, -1]], fitted.reconstruct(X[[first, last]]), atol=1e-5)
    alone = DualPriorVAE(**SMALL, aggregate_prior=0).fit(X, Y)
    assert alone.prototypes().shape == (1, 3, 8, 8)


def test_prototypes_of_tables_are_in_the_units_of_the_data() -> None:
    table = np.random.default_rng(0).normal(100, 5, (200, 3))
    rows = VAE(n_members=2, max_epochs=5, random_state=0).fit(table).prototypes()
    assert np.abs(rows - 100).max() < 25


@pytest.mark.parametrize(
    ("rows", "settings", "words"),
    [
        (X.astype(float), {}, r"numbers in \[0, 1\] or bytes .* Divide by 255"),
        (X / 255 - 0.5, {}, "these range from -0.5"),
        (X, {"standardize": True}, "does not standardise images"),
        (X / 255, {"standardize": True}, "does not standardise images"),
        (X[:, 0], {}, r"X\[:, np.newaxis\]"),
        (X, {"likelihood": "bernoulli"}, "need likelihood='squared-error'"),
        (X, {"filters": (4, 4, 4, 4)}, "at least 16 pixels per side"),
        (X, {"filters": 4}, "must be a tuple of ints"),
        (X[:, :, 0, 0], {}, "filters only apply to aloof's own networks for images"),
    ],
)
def test_what_images_may_not_be_is_said(rows: NDArray, settings: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        VAE(**(SMALL | settings)).fit(rows)


def test_another_size_is_refused_when_scoring(fitted: DualPriorVAE) -> None:
    with pytest.raises(ValueError, match="fitted with rows of shape"):
        fitted.anomaly_score(X[:, :, :4])
    with pytest.raises(ValueError, match="Divide by 255"):
        fitted.anomaly_score(X * 1.0)


def test_anomalies_are_not_moved_and_numbers_still_are(fitted: DualPriorVAE) -> None:
    assert fitted._objective().jitter == 0
    table = DualPriorVAE(n_members=1, max_epochs=2, random_state=0)
    table.fit(np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) > 36)
    assert table._objective().jitter == 0.5


def test_networks_of_ones_own_may_take_bytes() -> None:
    """Then pixels are numbers in [0, 1] too, and any other range of numbers is allowed."""

    class Flat(nn.Module):
        def __init__(self, shape, latent_dim):
            super().__init__()
            self.layer = nn.Linear(int(np.prod(shape)), 2 * latent_dim)

        def forward(self, x):
            assert x.max() <= 1
            return self.layer(x.flatten(1)).chunk(2, -1)

    class Back(nn.Module):
        def __init__(self, shape, latent_dim):
            super().__init__()
            self.shape = shape
            self.layer = nn.Linear(latent_dim, int(np.prod(shape)))

        def forward(self, z):
            return torch.sigmoid(self.layer(z)).view(len(z), *self.shape)

    own = {k: v for k, v in SMALL.items() if k not in ("filters", "hidden")}
    detector = VAE(**own, encoder=Flat, decoder=Back).fit(X)
    assert np.isfinite(detector.anomaly_score(X)).all()
