"""ELBO <= log p(x) <= CUBO, with equality at the true posterior."""

from __future__ import annotations

import pytest
import torch
from linear_gaussian import LinearGaussian

from aloof.objectives import cubo, elbo, exp_cubo, gaussian_log_density, reparameterize

SEEDS = range(5)


def rows(seed: int, n: int = 6, d: int = 4) -> torch.Tensor:
    g = torch.Generator().manual_seed(100 + seed)
    return 2 * torch.randn(n, d, generator=g, dtype=torch.float64)


def noise(*shape: int, seed: int) -> torch.Tensor:
    g = torch.Generator().manual_seed(200 + seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("prior_mean", [0.0, 3.0])
def test_bounds_are_tight_at_the_true_posterior(seed: int, prior_mean: float) -> None:
    model, x = LinearGaussian.draw(seed, prior_mean=prior_mean), rows(seed)
    mean, log_var = model.posterior(x)
    evidence = model.log_evidence(x)

    lower = elbo(
        model.expected_log_likelihood(x, mean, log_var), mean, log_var, prior_mean=prior_mean
    )
    z = reparameterize(mean, log_var, noise(3, 6, 2, seed=seed))
    upper = cubo(model.log_likelihood(x, z), z, mean, log_var, prior_mean=prior_mean)

    torch.testing.assert_close(lower, evidence)
    # p(x, z) / q(z|x) is constant there: any sample gives the bound exactly.
    torch.testing.assert_close(upper, evidence)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("order", [1.5, 2.0, 3.0])
def test_evidence_lies_between_the_bounds(seed: int, order: float) -> None:
    model, x = LinearGaussian.draw(seed), rows(seed)
    mean, log_var = model.posterior(x)
    # Wider than the posterior: the importance weights have every moment.
    mean, log_var = mean + 0.3, log_var + 0.8
    evidence = model.log_evidence(x)

    lower = elbo(model.expected_log_likelihood(x, mean, log_var), mean, log_var)
    z = reparameterize(mean, log_var, noise(200_000, 6, 2, seed=seed))
    upper = cubo(model.log_likelihood(x, z), z, mean, log_var, n=order)

    assert (lower < evidence - 0.01).all()
    assert (upper > evidence + 0.01).all()


def test_cubo_grows_with_its_order() -> None:
    model, x = LinearGaussian.draw(0), rows(0)
    mean, log_var = model.posterior(x)
    log_var = log_var + 0.8
    z = reparameterize(mean, log_var, noise(50_000, 6, 2, seed=0))
    likelihood = model.log_likelihood(x, z)
    low, high = (cubo(likelihood, z, mean, log_var, n=order) for order in (1.5, 3.0))
    assert (high > low).all()


def test_cubo_equals_quadrature() -> None:
    """One latent dimension, where the expectation is an integral on a grid."""
    model, x = LinearGaussian.draw(1, d=3, k=1), rows(1, n=1, d=3)
    mean, log_var = (part + 0.4 for part in model.posterior(x))
    grid = torch.linspace(-15, 15, 60_001, dtype=torch.float64)[:, None, None]
    log_q = gaussian_log_density(grid, mean, log_var)
    log_joint = model.log_likelihood(x, grid) + gaussian_log_density(grid, 0.0, 0.0)
    step = 30 / 60_000
    exact = 0.5 * torch.logsumexp(2 * log_joint - log_q + torch.log(torch.tensor(step)), 0)

    z = reparameterize(mean, log_var, noise(400_000, 1, 1, seed=1))
    estimate = cubo(model.log_likelihood(x, z), z, mean, log_var)
    torch.testing.assert_close(estimate, exact, atol=5e-3, rtol=0)


def test_exponential_form_is_unbiased_and_the_bound_is_not() -> None:
    model, x = LinearGaussian.draw(2), rows(2)
    mean, log_var = model.posterior(x)
    log_var = log_var + 0.8
    many = reparameterize(mean, log_var, noise(400_000, 6, 2, seed=2))
    exact = cubo(model.log_likelihood(x, many), many, mean, log_var)

    pairs = many.view(2, 200_000, 6, 2)
    likelihood = model.log_likelihood(x, pairs)
    of_two = exp_cubo(likelihood, pairs, mean, log_var).mean(0)
    torch.testing.assert_close(of_two, torch.exp(2 * exact), rtol=1e-9, atol=0)
    assert (cubo(likelihood, pairs, mean, log_var).mean(0) < exact - 0.01).all()


def test_beta_cubo_weighs_the_densities_only() -> None:
    model, x = LinearGaussian.draw(3), rows(3)
    mean, log_var = model.posterior(x)
    z = reparameterize(mean, log_var, noise(1, 6, 2, seed=3))
    likelihood = model.log_likelihood(x, z)
    without = cubo(likelihood, z, mean, log_var, beta=0.0)
    torch.testing.assert_close(without, likelihood[0])


def test_paper_form_of_the_cubo_loss() -> None:
    """Equation (9) of the paper, written out with its own symbols."""
    model, x = LinearGaussian.draw(4), rows(4)
    mean, log_var = model.posterior(x)
    mean = mean + 0.5
    z = reparameterize(mean, log_var, noise(64, 6, 2, seed=4))
    likelihood, beta = model.log_likelihood(x, z), 0.3
    precision = torch.exp(-log_var)
    inside = (
        -z.square().sum(-1)
        + (z.square() * precision).sum(-1)
        - 2 * (z * precision * mean).sum(-1)
    )
    expectation = torch.exp(2 * likelihood + beta * inside).mean(0)
    outside = log_var.sum(-1) + (mean.square() * precision).sum(-1)
    paper = torch.exp(beta * outside) * expectation
    torch.testing.assert_close(exp_cubo(likelihood, z, mean, log_var, beta=beta), paper)


def test_order_must_exceed_one() -> None:
    z = torch.zeros(1, 1, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match="larger than 1"):
        cubo(z[..., 0], z, z[0], z[0], n=1.0)
