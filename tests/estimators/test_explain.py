"""Contributions add up to the score, and name the column that was moved."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from aloof import VAE, DualPriorVAE, MaxMinVAE
from aloof.networks import ConvDecoder, ConvEncoder


def factors(d: int, seed: int) -> tuple[Any, np.random.Generator]:
    """Columns that share d // 3 causes, each with noise and a unit of its own."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(d // 3, d))
    loadings /= np.linalg.norm(loadings, axis=0)
    units, origin = 10.0 ** rng.uniform(-2, 4, d), rng.normal(size=d)

    def draw(n: int) -> np.ndarray:
        rows = rng.normal(size=(n, d // 3)) @ loadings + 0.4 * rng.normal(size=(n, d))
        return units * (origin + rows)

    return draw, rng


def groups(d: int, seed: int) -> tuple[Any, np.random.Generator]:
    """Three kinds of rows with correlations of their own, some columns with long tails."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(3, d // 2, d)) / np.sqrt(d // 2)
    centers = 2 * rng.normal(size=(3, d))

    def draw(n: int) -> np.ndarray:
        kind = rng.integers(3, size=n)
        spread = np.einsum("nk,nkd->nd", rng.normal(size=(n, d // 2)), loadings[kind])
        rows = centers[kind] + spread + 0.3 * rng.normal(size=(n, d))
        rows[:, ::4] = np.exp(0.5 * rows[:, ::4])
        return rows

    return draw, rng


def move_one_column(
    X: np.ndarray, scale: np.ndarray, rng: np.random.Generator, size: float
) -> tuple[np.ndarray, np.ndarray]:
    moved, rows = X.copy(), np.arange(len(X))
    column = rows % X.shape[1]
    moved[rows, column] += size * scale[column] * rng.choice([-1, 1], len(X))
    return moved, column


def fitted(detector: type, data: Any, **changes: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    draw, rng = data
    X = draw(800)
    scale = X.std(0)
    bad, _ = move_one_column(draw(12), scale, rng, 4.0)
    y = np.r_[np.zeros(800), np.ones(12)]
    settings = {"n_members": 3, "max_epochs": 30, "random_state": 0, **changes}
    model = detector(**settings).fit(np.r_[X, bad], y)
    return model, *move_one_column(draw(240), scale, rng, 5.0)


@pytest.mark.parametrize(
    ("detector", "data", "d"),
    [
        (VAE, factors, 8),
        (VAE, groups, 12),
        (DualPriorVAE, factors, 8),
        (DualPriorVAE, factors, 20),
        (DualPriorVAE, groups, 12),
        (MaxMinVAE, factors, 16),
    ],
)
def test_the_column_that_was_moved_is_the_first_reason(
    detector: type, data: Any, d: int
) -> None:
    model, X, column = fitted(detector, data(d, seed=d))
    found = model.explain(X)
    assert (found.contributions.argmax(1) == column).mean() >= 0.9
    assert np.array_equal(found.score, model.anomaly_score(X))
    np.testing.assert_allclose(found.contributions.sum(1), found.score, rtol=1e-6, atol=1e-6)
    assert (found.latent >= 0).all()


def test_expected_values_are_in_the_units_of_the_data() -> None:
    draw, rng = factors(12, 3)
    X = draw(800)
    model = VAE(n_members=3, max_epochs=40, random_state=0).fit(X)
    normal = draw(200)
    moved, column = move_one_column(normal, X.std(0), rng, 5.0)
    rows = np.arange(200)
    expected = model.explain(moved).expected[rows, column]
    before, after = normal[rows, column], moved[rows, column]
    scale = X.std(0)[column]
    assert np.median(np.abs(expected - before) / scale) < 2.0
    assert np.median(np.abs(expected - after) / scale) > 2.5


def test_contributions_depend_on_the_row_alone() -> None:
    model, X, _ = fitted(DualPriorVAE, factors(20, 1), max_epochs=5)
    X = np.r_[X, X * 1.01, X * 0.99]
    whole = model.explain(X)
    order = np.random.default_rng(0).permutation(len(X))
    for rows in (order, np.arange(7), np.arange(100, 101), np.arange(513)):
        part = model.explain(X[rows])
        for name in ("reconstruction", "latent", "score", "expected"):
            assert np.array_equal(getattr(part, name), getattr(whole, name)[rows])
    again = pickle.loads(pickle.dumps(model)).explain(X)
    assert np.array_equal(again.contributions, whole.contributions)
    assert whole.contributions.dtype == np.float64


def test_both_parts_are_what_they_say() -> None:
    """An independent computation, member by member."""
    model, X, _ = fitted(
        DualPriorVAE,
        factors(8, 0),
        beta_kl=0.3,
        direction_penalty=False,
        aggregate_prior=0,
        max_epochs=5,
    )
    found = model.explain(X)
    scaled = torch.from_numpy(model.scaling_.transform(X)).to(model.device_)
    latent, error, back = torch.zeros(3, 1, device=model.device_)
    with torch.no_grad():
        encoded = model._scorer.ensemble.encode([scaled.expand(3, *scaled.shape)])
        for mean, log_var, output in zip(
            *encoded, model._scorer.ensemble.decoder(encoded[0]), strict=True
        ):
            kl = 0.5 * (mean**2 + log_var.exp() - log_var - 1).sum(1)
            latent = latent + 0.3 * kl / 3
            error = error + (scaled - output) ** 2 / 8 / 3
            back = back + output / 3
    np.testing.assert_allclose(found.latent.sum(1), latent.cpu(), rtol=1e-5)
    np.testing.assert_allclose(found.reconstruction, error.cpu(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        found.expected, model.scaling_.inverse(back.cpu().numpy()), rtol=1e-5, atol=1e-3
    )


def test_columns_the_encoder_does_not_look_at_have_no_latent_part() -> None:
    class HalfBlind(nn.Module):
        def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
            super().__init__()
            self.layer = nn.Linear(shape[0] // 2, 2 * latent_dim)

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return self.layer(x[..., : x.shape[-1] // 2]).chunk(2, -1)

    model, X, _ = fitted(
        VAE,
        factors(8, 0),
        encoder=HalfBlind,
        decoder=lambda shape, latent_dim: nn.Linear(latent_dim, shape[0]),
        max_epochs=5,
    )
    found = model.explain(X)
    assert (found.latent[:, 4:] == 0).all()
    assert (found.latent[:, :4].sum(1) > 0).all()


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_other_likelihoods(likelihood: Any) -> None:
    rng = np.random.default_rng(0)
    X = ((rng.random((600, 1)) < 0.5) ^ (rng.random((600, 9)) < 0.02)).astype(float)
    model = VAE(
        likelihood=likelihood,
        standardize=likelihood == "gaussian",
        n_members=2,
        max_epochs=40,
        random_state=0,
    ).fit(X)
    clean = X[(X.std(1) == 0)][:180]
    odd, rows = clean.copy(), np.arange(180)
    odd[rows, rows % 9] = 1 - odd[rows, rows % 9]
    found = model.explain(odd)
    assert (found.contributions.argmax(1) == rows % 9).mean() >= 0.9
    np.testing.assert_allclose(found.contributions.sum(1), found.score, rtol=1e-6, atol=1e-6)
    assert (np.abs(found.expected[rows, rows % 9] - clean[rows, rows % 9]) < 0.5).mean() > 0.9
    if likelihood == "bernoulli":
        assert (found.expected >= 0).all()
        assert (found.expected <= 1).all()


class Recurrent(nn.Module):
    def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(1, 2 * latent_dim, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.lstm(x.flatten(1).unsqueeze(-1))[0][:, -1].chunk(2, -1)


class Normalised(nn.Module):
    def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(),
            nn.Linear(int(np.prod(shape)), 16),
            nn.BatchNorm1d(16),
            nn.GELU(),
            nn.Dropout(),
            nn.Linear(16, 2 * latent_dim),
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        if x.dtype == torch.float64:
            raise RuntimeError("this one runs in float32 only")
        return self.body(x).chunk(2, -1)


def flat_decoder(shape: tuple[int, ...], latent_dim: int) -> nn.Module:
    return nn.Linear(latent_dim, int(np.prod(shape)))


NETWORKS: dict[str, Any] = {
    "convolutions": (
        lambda shape, latent_dim: ConvEncoder(shape, latent_dim, (4, 8), (16,)),
        lambda shape, latent_dim: ConvDecoder(shape, latent_dim, (4, 8), (16,)),
    ),
    "recurrent": (Recurrent, flat_decoder),
    "float32 only": (Normalised, flat_decoder),
}


@pytest.mark.parametrize("networks", NETWORKS)
def test_rows_and_networks_of_any_shape(networks: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 1, 8, 8))
    encoder, decoder = NETWORKS[networks]
    model = VAE(
        encoder=encoder,
        decoder=decoder,
        standardize=False,
        latent_dim=4,
        n_members=2,
        max_epochs=3,
        random_state=0,
    ).fit(X)
    found = model.explain(X)
    for part in (found.reconstruction, found.latent, found.contributions, found.expected):
        assert part.shape == X.shape
    assert np.array_equal(found.score, model.anomaly_score(X))
    np.testing.assert_allclose(
        found.contributions.sum((1, 2, 3)), found.score, rtol=1e-6, atol=1e-6
    )
    assert found.latent.sum() > 0


def test_far_away_and_constant_values() -> None:
    draw, _ = factors(9, 4)
    X = draw(200)
    X[:, 3] = 7.0
    model = VAE(n_members=2, max_epochs=5, random_state=0).fit(X)
    far = np.repeat(X[:1], 3, 0)
    far[0, 1], far[1, 3], far[2] = 1e300, 17.0, 0.0
    found = model.explain(far)
    assert np.isfinite(found.contributions).all()
    assert found.contributions.argmax(1)[:2].tolist() == [1, 3]
    np.testing.assert_allclose(found.contributions.sum(1), found.score, rtol=1e-6)


def test_no_divergence_no_latent_part() -> None:
    model, X, _ = fitted(VAE, factors(8, 0), beta_kl=0.0, max_epochs=3)
    assert (model.explain(X).latent == 0).all()
