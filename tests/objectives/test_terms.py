from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import Bernoulli, Categorical, Independent, Normal, kl_divergence

from aloof.objectives import (
    bernoulli,
    categorical,
    dual_prior_elbo,
    elbo,
    gaussian,
    gaussian_kl,
    gaussian_log_density,
    reparameterize,
    repulsion,
    squared_error,
)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=g, dtype=torch.float64)


def normal(mean: torch.Tensor, log_var: torch.Tensor) -> Independent:
    return Independent(Normal(mean, torch.exp(0.5 * log_var)), 1)


@pytest.mark.parametrize("prior_mean", [0.0, 2.5])
def test_kl_and_density_equal_torch_distributions(prior_mean: float) -> None:
    mean, log_var, z = draw(7, 3), draw(7, 3, seed=1), draw(7, 3, seed=2)
    prior = normal(torch.full_like(mean, prior_mean), torch.zeros_like(mean))
    torch.testing.assert_close(
        gaussian_kl(mean, log_var, prior_mean), kl_divergence(normal(mean, log_var), prior)
    )
    torch.testing.assert_close(
        gaussian_log_density(z, mean, log_var), normal(mean, log_var).log_prob(z)
    )


def test_samples_have_the_moments_asked_for() -> None:
    mean, log_var = torch.tensor([1.0, -2.0]), torch.tensor([0.5, -1.0])
    z = reparameterize(mean, log_var, draw(200_000, 2).float())
    torch.testing.assert_close(z.mean(0), mean, atol=0.02, rtol=0)
    torch.testing.assert_close(z.var(0).log(), log_var, atol=0.02, rtol=0)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_likelihoods_equal_torch_distributions(reduction: str) -> None:
    x, mean, log_var = draw(5, 4), draw(5, 4, seed=1), draw(5, 4, seed=2)
    share = 4 if reduction == "mean" else 1
    torch.testing.assert_close(
        gaussian(x, mean, log_var, reduction=reduction),
        normal(mean, log_var).log_prob(x) / share,
    )
    binary = (x > 0).double()
    torch.testing.assert_close(
        bernoulli(binary, mean, reduction=reduction),
        Independent(Bernoulli(logits=mean), 1).log_prob(binary) / share,
    )


def test_squared_error_is_a_gaussian_of_variance_one_half() -> None:
    x, mean = draw(5, 4), draw(5, 4, seed=1)
    constant = -0.5 * math.log(math.pi)
    torch.testing.assert_close(
        squared_error(x, mean, reduction="mean") + constant,
        gaussian(x, mean, math.log(0.5), reduction="mean"),
    )


def test_padding_does_not_change_a_sentence() -> None:
    tokens = torch.tensor([[1, 2, 0, 0]])
    logits = draw(1, 4, 5)
    mask = torch.tensor([[True, True, False, False]])
    short = Categorical(logits=logits[:, :2]).log_prob(tokens[:, :2])
    for reduction, expected in (("sum", short.sum(1)), ("mean", short.mean(1))):
        torch.testing.assert_close(
            categorical(tokens, logits, reduction=reduction, mask=mask), expected
        )


def test_unknown_choices_are_refused() -> None:
    x = draw(2, 2)
    with pytest.raises(ValueError, match="reduction must be"):
        squared_error(x, x, reduction="max")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="form must be"):
        repulsion(x, form="tanh")  # type: ignore[arg-type]


def test_dual_prior_with_alpha_zero_is_the_elbo() -> None:
    likelihood, mean, log_var = draw(6), draw(6, 3), draw(6, 3, seed=1)
    is_anomaly = torch.tensor([True, False] * 3)
    plain = elbo(likelihood, mean, log_var, beta=0.3)
    same = dual_prior_elbo(likelihood, mean, log_var, is_anomaly, alpha=0.0, beta=0.3)
    apart = dual_prior_elbo(likelihood, mean, log_var, is_anomaly, alpha=4.0, beta=0.3)
    torch.testing.assert_close(same, plain)
    torch.testing.assert_close(apart[~is_anomaly], plain[~is_anomaly])
    at_alpha = elbo(likelihood, mean, log_var, prior_mean=4.0, beta=0.3)
    torch.testing.assert_close(apart[is_anomaly], at_alpha[is_anomaly])


def test_objectives_broadcast_over_members() -> None:
    likelihood, mean, log_var = draw(3, 6), draw(3, 6, 2), draw(3, 6, 2, seed=1)
    beta = torch.tensor([[0.1], [0.2], [0.3]], dtype=torch.float64)
    stacked = elbo(likelihood, mean, log_var, beta=beta)
    for k in range(3):
        alone = elbo(likelihood[k], mean[k], log_var[k], beta=float(beta[k]))
        torch.testing.assert_close(stacked[k], alone)


@pytest.mark.parametrize("term", ["beta_kl", "gamma", "alpha", "beta_cubo"])
def test_switching_a_term_off_changes_loss_and_gradient(term: str) -> None:
    """A term that is silently missing is the commonest bug of the field."""
    from aloof.objectives import cubo

    def loss_and_gradient(**numbers: float) -> tuple[torch.Tensor, torch.Tensor]:
        values = {"beta_kl": 0.5, "gamma": 1.0, "alpha": 2.0, "beta_cubo": 0.5, **numbers}
        mean = draw(6, 2).requires_grad_()
        log_var = draw(6, 2, seed=1)
        z = reparameterize(mean, log_var, draw(1, 6, 2, seed=2))
        likelihood = -0.1 * (z - 1).square().sum(-1)
        bound = elbo(likelihood[0], mean, log_var, beta=values["beta_kl"])
        upper = cubo(likelihood, z, mean, log_var, beta=values["beta_cubo"])
        pushed = values["gamma"] * repulsion(upper)
        own = dual_prior_elbo(
            likelihood[0],
            mean,
            log_var,
            torch.ones(6, dtype=torch.bool),
            alpha=values["alpha"],
            beta=values["beta_kl"],
        )
        total = (pushed - bound - own).sum()
        return total.detach(), torch.autograd.grad(total, mean)[0]

    loss, gradient = loss_and_gradient()
    other_loss, other_gradient = loss_and_gradient(**{term: 0.0})
    assert (loss - other_loss).abs() > 1e-3
    assert (gradient - other_gradient).abs().max() > 1e-3


def test_softplus_keeps_pushing_where_the_exponential_has_vanished() -> None:
    bound = torch.tensor([-6.0], dtype=torch.float64, requires_grad=True)
    slopes = {}
    for form, margin in (("exp", 0.0), ("softplus", 15.0)):
        pushed = repulsion(bound, form=form, margin=margin)  # type: ignore[arg-type]
        slopes[form] = float(torch.autograd.grad(pushed.sum(), bound)[0])
    assert slopes["exp"] < 1e-4
    assert slopes["softplus"] > 1.0
