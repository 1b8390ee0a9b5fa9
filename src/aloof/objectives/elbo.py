"""The evidence lower bound."""

from __future__ import annotations

from torch import Tensor

from aloof.objectives.gaussian import gaussian_kl

__all__ = ["elbo"]


def elbo(
    log_likelihood: Tensor,
    mean: Tensor,
    log_var: Tensor,
    *,
    prior_mean: Tensor | float = 0.0,
    beta: Tensor | float = 1.0,
) -> Tensor:
    r"""Lower bound of log p(x) for a Gaussian posterior and a :math:`N(\mu_o, I)` prior.

    .. math:: \log p(x) \ge E_q[\log p(x|z)] - \beta D_{KL}(q(z|x) \| p(z)),
        \quad \beta = 1

    Parameters
    ----------
    log_likelihood
        An estimate of :math:`E_q[\log p(x|z)]`, ``(...)``.
    mean, log_var
        Parameters of q(z|x), ``(..., d)``.
    prior_mean
        Mean of the prior.
    beta
        Weight of the divergence; 1 is the bound itself.

    Returns
    -------
    Tensor of shape ``(...)``.
    """
    return log_likelihood - beta * gaussian_kl(mean, log_var, prior_mean)
