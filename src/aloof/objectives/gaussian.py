"""Diagonal Gaussians: density, divergence, sampling."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["gaussian_kl", "gaussian_log_density", "gaussian_terms", "reparameterize"]

_LOG_2PI = math.log(2.0 * math.pi)


def gaussian_log_density(z: Tensor, mean: Tensor | float, log_var: Tensor | float) -> Tensor:
    r"""Log-density of a diagonal Gaussian, summed over the last axis.

    .. math:: \log N(z; \mu, \sigma^2)
        = -\tfrac12 \sum_i \log 2\pi + \log\sigma_i^2 + (z_i-\mu_i)^2 / \sigma_i^2

    Parameters
    ----------
    z
        Points, ``(..., d)``.
    mean, log_var
        Parameters that broadcast against `z`.

    Returns
    -------
    Tensor of shape ``(...)``.
    """
    return -0.5 * gaussian_terms(z, mean, log_var).sum(-1)


def gaussian_terms(z: Tensor, mean: Tensor | float, log_var: Tensor | float) -> Tensor:
    """Return what `gaussian_log_density` sums: minus twice the log-density of each number.

    Parameters
    ----------
    z
        Points, ``(..., d)``.
    mean, log_var
        Parameters that broadcast against `z`.
    """
    # A number stays one: a tensor made of it would be a copy from the CPU, which cannot be
    # recorded on a GPU.
    precision = torch.exp(-log_var) if isinstance(log_var, Tensor) else math.exp(-log_var)
    return _LOG_2PI + log_var + (z - mean).square() * precision


def gaussian_kl(mean: Tensor, log_var: Tensor, prior_mean: Tensor | float = 0.0) -> Tensor:
    r"""KL divergence of a diagonal Gaussian from :math:`N(\mu_o, I)`.

    .. math:: D_{KL}(q \| p) = \tfrac12 \sum_i
        (\mu_i - \mu_{o,i})^2 + \sigma_i^2 - \log\sigma_i^2 - 1

    Parameters
    ----------
    mean, log_var
        Parameters of `q`, ``(..., d)``.
    prior_mean
        Mean of the prior; broadcasts against `mean`.

    Returns
    -------
    Tensor of shape ``(...)``.
    """
    terms = (mean - prior_mean).square() + log_var.exp() - log_var - 1.0
    return 0.5 * terms.sum(-1)


def reparameterize(mean: Tensor, log_var: Tensor, noise: Tensor) -> Tensor:
    r"""Turn standard noise into a sample: :math:`z = \mu + \sigma \epsilon`."""
    return torch.addcmul(mean, torch.exp(0.5 * log_var), noise)
