"""The chi upper bound (Dieng et al. 2017), the mirror image of the ELBO."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from aloof.objectives.gaussian import gaussian_log_density

__all__ = ["cubo", "exp_cubo"]


def cubo(
    log_likelihood: Tensor,
    z: Tensor,
    mean: Tensor,
    log_var: Tensor,
    *,
    n: float = 2.0,
    beta: Tensor | float = 1.0,
    prior_mean: Tensor | float = 0.0,
) -> Tensor:
    r"""Monte-Carlo estimate of the upper bound CUBO_n of log p(x).

    .. math:: \log p(x) \le \tfrac1n \log E_q\Big[
        \Big(\frac{p(x|z)\,p(z)}{q(z|x)}\Big)^n\Big]

    The mean over S samples is taken inside the logarithm, in log-sum-exp form. A finite S
    underestimates the bound (Jensen); `exp_cubo` is free of that bias.

    Parameters
    ----------
    log_likelihood
        :math:`\log p(x|z)` of each sample, ``(S, ...)``.
    z
        The samples, drawn from q(z|x), ``(S, ..., d)``.
    mean, log_var
        Parameters of q(z|x), ``(..., d)``.
    n
        Order of the divergence, larger than 1.
    beta
        Weight of log p(z) - log q(z|x); 1 is the bound itself.
    prior_mean
        Mean of the prior.

    Returns
    -------
    Tensor of shape ``(...)``.
    """
    if not n > 1:
        raise ValueError(f"The order n of CUBO_n must be larger than 1; got {n}.")
    log_prior = gaussian_log_density(z, prior_mean, 0.0)
    log_posterior = gaussian_log_density(z, mean, log_var)
    log_weight = log_likelihood + beta * (log_prior - log_posterior)
    n_samples = log_weight.shape[0]
    return (torch.logsumexp(n * log_weight, 0) - math.log(n_samples)) / n


def exp_cubo(
    log_likelihood: Tensor,
    z: Tensor,
    mean: Tensor,
    log_var: Tensor,
    *,
    n: float = 2.0,
    beta: Tensor | float = 1.0,
    prior_mean: Tensor | float = 0.0,
) -> Tensor:
    r"""Return :math:`\exp(n\,CUBO_n)`, the form that is optimised.

    Same optima as the bound, and an unbiased estimate whatever the number of samples.
    Parameters as in `cubo`.
    """
    return torch.exp(
        n
        * cubo(
            log_likelihood,
            z,
            mean,
            log_var,
            n=n,
            beta=beta,
            prior_mean=prior_mean,
        )
    )
