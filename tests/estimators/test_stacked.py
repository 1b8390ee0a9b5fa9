from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aloof import VAE, DualPriorVAE, MaxMinVAE, fit_many


def rows(seed: int, n: int = 90, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 5, d))
    X[n:] += 3
    return X * (1 + seed), np.r_[np.zeros(n), np.ones(5)]


def test_many_fits_equal_single_fits() -> None:
    """Several methods, numbers, sizes and feature counts in one call."""
    short = {"n_members": 2, "hidden": (8,), "latent_dim": 3, "max_epochs": 9}
    make = [
        lambda: DualPriorVAE(**short, random_state=0),
        lambda: DualPriorVAE(**short, random_state=1, alpha=2.0, beta_kl=0.3, gamma=0.5),
        lambda: DualPriorVAE(**short, random_state=2, patience=50),
        lambda: MaxMinVAE(**short, random_state=3),
        lambda: VAE(**short, random_state=4),
        lambda: DualPriorVAE(**short, random_state=5),
        lambda: DualPriorVAE(**{**short, "n_members": 3}, random_state=6),
    ]
    data = [rows(0), rows(1), rows(2), rows(3), rows(4), rows(5, d=6), rows(6, n=200)]
    together = [build() for build in make]
    fit_many(together, data)
    for build, one, (X, y) in zip(make, together, data, strict=True):
        alone = build().fit(X, y)
        np.testing.assert_allclose(one.score_samples(X), alone.score_samples(X), rtol=1e-3)
        assert one.offset_ == pytest.approx(alone.offset_, rel=1e-3)
        assert one.history_["loss"].shape == alone.history_["loss"].shape


def test_it_says_what_does_not_fit(tmp_path: Path) -> None:
    X, y = rows(0)
    with pytest.raises(ValueError, match="2 detectors and 1 pairs"):
        fit_many([VAE(), VAE()], [(X, y)])
    with pytest.raises(ValueError, match="checkpoint to fit_many"):
        fit_many([VAE(checkpoint=tmp_path / "c")], [(X, y)])
    with pytest.raises(ValueError, match="got a ndarray in it"):
        fit_many([VAE(), VAE()], [X, X])
    with pytest.raises(ValueError, match="the same detector twice"):
        fit_many([VAE()] * 2, [(X, y)] * 2)
