"""A researcher's own encoder and decoder, with batch normalisation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from aloof import VAE, DualPriorVAE, MaxMinDualPriorVAE, MaxMinVAE
from aloof.bench.variants import Network
from aloof.exceptions import ModelError, NetworkError
from aloof.networks import ConvDecoder, ConvEncoder, MLPDecoder, MLPEncoder


class Encoder(nn.Module):
    def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(shape[0], 24), nn.BatchNorm1d(24), nn.GELU())
        self.mean, self.log_var = nn.Linear(24, latent_dim), nn.Linear(24, latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.body(x)
        return self.mean(hidden), self.log_var(hidden)


class Decoder(nn.Sequential):
    def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
        super().__init__(
            nn.Linear(latent_dim, 24), nn.BatchNorm1d(24), nn.GELU(), nn.Linear(24, shape[0])
        )


SETTINGS: dict[str, Any] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "latent_dim": 4,
    "n_members": 3,
    "max_epochs": 20,
    "random_state": 0,
}


def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(158, 5))
    X[150:, 0] += 3
    return X, np.r_[np.zeros(150), np.ones(8)]


@pytest.mark.parametrize("detector", [VAE, MaxMinVAE, DualPriorVAE, MaxMinDualPriorVAE])
def test_fit_score_save_load(detector: Any, tmp_path: Path) -> None:
    X, y = rows()
    extra = {} if detector is VAE else {"warmup_epochs": 8}
    model = detector(**SETTINGS, **extra).fit(X, y)
    scores = model.score_samples(X)
    assert np.isfinite(scores).all()
    order = np.random.default_rng(1).permutation(len(X))
    assert np.array_equal(model.score_samples(X[order]), scores[order])
    assert np.array_equal(model.score_samples(X[:3]), scores[:3])
    model.save(tmp_path / "model")
    with pytest.raises(ModelError, match="holds no code"):
        detector.load(tmp_path / "model")
    again = detector.load(tmp_path / "model", encoder=Encoder, decoder=Decoder)
    assert np.array_equal(again.score_samples(X), scores)

    class Wider(Decoder):
        def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
            super().__init__(shape, latent_dim)
            self[0], self[1] = nn.Linear(latent_dim, 30), nn.BatchNorm1d(30)

    with pytest.raises(ModelError, match="do not fit the weights"):
        detector.load(tmp_path / "model", encoder=Encoder, decoder=Wider)


def test_the_networks_of_the_paper_are_saved_and_loaded(tmp_path: Path) -> None:
    """Batch normalisation without gain and shift: what is held is saved with the rest."""
    X, y = rows()
    options = {"hidden": (8, 6), "normalise": True, "bias": False, "slope": 0.01}
    own = {
        "encoder": partial(MLPEncoder, **options),
        "decoder": partial(MLPDecoder, **options),
    }
    model = DualPriorVAE(**{**SETTINGS, **own}, warmup_epochs=8).fit(X, y)
    scores = model.score_samples(X)
    assert roc_auc_score(y, -scores) > 0.9
    model.save(tmp_path / "model")
    again = DualPriorVAE.load(tmp_path / "model", **own)
    assert np.array_equal(again.score_samples(X), scores)
    other = {name: partial(make, slope=0.1) for name, make in own.items()}
    with pytest.raises(ModelError, match="do not reproduce the scores"):
        DualPriorVAE.load(tmp_path / "model", **other)


def test_batch_normalised_encoder_separates_in_eval_mode() -> None:
    """Anomalies share the batch with normal rows; alone they would be normalised away."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(310, 5))
    X[300:, 0] += 2.5
    y = np.r_[np.zeros(300), np.ones(10)]
    test = rng.normal(size=(600, 5))
    test[300:, 0] += 2.5
    settings = {**SETTINGS, "max_epochs": 80}
    from sklearn.metrics import roc_auc_score

    truth = np.r_[np.zeros(300), np.ones(300)]
    plain = VAE(**settings).fit(X, y).anomaly_score(test)
    taught = DualPriorVAE(**settings, warmup_epochs=30, gamma=1.0).fit(X, y).anomaly_score(test)
    assert roc_auc_score(truth, taught) > roc_auc_score(truth, plain) + 0.04


def test_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 1, 8, 8))
    y = np.r_[np.zeros(36), np.ones(4)]
    X[36:, :, :4] = 1.0
    model = DualPriorVAE(
        encoder=lambda shape, latent_dim: ConvEncoder(shape, latent_dim, (4, 8), (16,)),
        decoder=lambda shape, latent_dim: ConvDecoder(shape, latent_dim, (4, 8), (16,)),
        standardize=False,
        latent_dim=4,
        n_members=2,
        max_epochs=6,
        warmup_epochs=2,
        random_state=0,
    ).fit(X, y)
    assert model.score_samples(X).shape == (40,)
    assert model.latent(X).shape == (2, 40, 4)
    with pytest.raises(ValueError, match="rows of shape"):
        model.score_samples(X[:, :, :4])


def one_output(shape: tuple[int, ...], latent_dim: int) -> nn.Module:
    return nn.Linear(shape[0], latent_dim)


def wrong_size(shape: tuple[int, ...], latent_dim: int) -> nn.Module:
    return Encoder(shape, latent_dim + 1)


def small_output(shape: tuple[int, ...], latent_dim: int) -> nn.Module:
    return nn.Linear(latent_dim, shape[0] - 1)


class Sociable(Encoder):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_var = super().forward(x)
        return mean - mean.mean(0), log_var


def moody(shape: tuple[int, ...], latent_dim: int) -> nn.Module:
    layer = nn.BatchNorm1d(shape[0], track_running_stats=False)
    return nn.Sequential(nn.Linear(latent_dim, shape[0]), layer)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": Sociable}, "what the encoder returns for a row depends on the other rows"),
        ({"decoder": moody}, "what the decoder returns for a row depends on the other rows"),
        ({"encoder": one_output}, r"pair \(mean, log_var\); got one tensor"),
        ({"encoder": wrong_size}, r"shape \(n, latent_dim\)"),
        ({"decoder": small_output}, "rows of shape"),
        ({"decoder": lambda shape, latent_dim: "net"}, "must return a torch.nn.Module"),
        ({"likelihood": "gaussian"}, r"must return a pair"),
    ],
)
def test_networks_that_break_the_protocol(change: dict[str, Any], message: str) -> None:
    X, y = rows()
    broken = DualPriorVAE(**{**SETTINGS, **change})
    with pytest.raises(NetworkError, match=message):
        broken.fit(X, y)


def test_sizes_of_our_networks_are_refused_with_yours() -> None:
    X, y = rows()
    with pytest.raises(ValueError, match=r"hidden=\(7,\) only applies to aloof's own"):
        DualPriorVAE(**SETTINGS, hidden=(7,)).fit(X, y)


def test_a_factory_that_states_its_widths_may_have_them_beside_it() -> None:
    X, y = rows()
    detector = Network(normalise=True).given_to(DualPriorVAE(hidden=(7,), max_epochs=2))
    assert detector.fit(X, y).hidden == (7,)
    with pytest.raises(ValueError, match=r"hidden=\(8,\) only applies to aloof's own"):
        detector.set_params(hidden=(8,)).fit(X, y)


def test_networks_bound_to_float32_still_score() -> None:
    class Bound(Encoder):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            mean, log_var = super().forward(x + torch.zeros(1, 5) @ torch.zeros(5, 5))
            if x.dtype == torch.float64:
                raise RuntimeError("expected m1 and m2 to have the same dtype")
            return mean, log_var

    X, _ = rows()
    model = VAE(**{**SETTINGS, "encoder": Bound}).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
