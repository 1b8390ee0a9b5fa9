"""The Dirichlet density, and the concentration that fits best."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from aloof.objectives import dirichlet_log_density, fit_dirichlet


def observed(concentration: list[float], n: int) -> torch.Tensor:
    drawn = np.random.default_rng(0).dirichlet(concentration, n)
    return torch.from_numpy(drawn)


def fitted(p: torch.Tensor) -> torch.Tensor:
    return fit_dirichlet(p.log().mean(0), p.mean(0))


def test_the_density_is_scipys() -> None:
    concentration = [0.4, 3.0, 1.0, 7.0]
    p = observed(concentration, 20)
    found = dirichlet_log_density(p.log(), torch.tensor(concentration).double())
    expected = [stats.dirichlet.logpdf(row, concentration) for row in p.numpy()]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("concentration", [[0.3, 2.0, 8.0], [200.0, 1.0, 0.2], [0.2, 0.3]])
def test_known_concentrations_are_recovered(concentration: list[float]) -> None:
    found = fitted(observed(concentration, 100_000))
    np.testing.assert_allclose(found, concentration, rtol=0.03)


def test_no_other_concentration_is_more_likely() -> None:
    """As a general optimiser sees it, which knows nothing but the density."""
    p = observed([0.5, 1.5, 4.0], 30)

    def cost(logarithm: np.ndarray) -> float:
        return -float(
            np.mean([stats.dirichlet.logpdf(x, np.exp(logarithm)) for x in p.numpy()])
        )

    best = optimize.minimize(cost, np.zeros(3), tol=1e-10)
    np.testing.assert_allclose(fitted(p), np.exp(best.x), rtol=1e-4)


def test_at_the_fixed_point_expected_logarithms_are_those_observed() -> None:
    """Also for a network's responses: one probability near one, the others next to nothing."""
    rng = np.random.default_rng(1)
    logits = torch.from_numpy(rng.normal(size=(4, 100, 72)) * 4.0)
    logits[..., 5] += 25.0
    log_p = torch.log_softmax(logits, -1)
    means = log_p.mean(1)
    found = fit_dirichlet(means, log_p.exp().mean(1))
    assert (found > 0).all()
    expected = torch.digamma(found) - torch.digamma(found.sum(-1, keepdim=True))
    torch.testing.assert_close(expected, means, rtol=1e-6, atol=1e-9)


def test_equal_responses_have_an_estimate() -> None:
    p = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64).expand(10, 3)
    found = fitted(p)
    assert torch.isfinite(found).all()
    torch.testing.assert_close(found / found.sum(), p[0], rtol=1e-3, atol=1e-6)
