"""The bound of DP-VAE: one encoder, one prior for normal rows, another for anomalies."""

from __future__ import annotations

import torch
from torch import Tensor

from aloof.objectives.elbo import elbo

__all__ = ["dual_prior_elbo"]


def dual_prior_elbo(
    log_likelihood: Tensor,
    mean: Tensor,
    log_var: Tensor,
    is_anomaly: Tensor,
    *,
    alpha: Tensor | float,
    beta: Tensor | float = 1.0,
) -> Tensor:
    r"""ELBO under the prior that belongs to each row.

    Normal rows have the prior :math:`N(0, I)`, anomalies :math:`N(\alpha 1, I)`. With
    ``alpha = 0`` the two are one and this is the ELBO.

    Parameters
    ----------
    log_likelihood
        An estimate of :math:`E_q[\log p(x|z)]`, ``(...)``.
    mean, log_var
        Parameters of q(z|x), ``(..., d)``.
    is_anomaly
        True for anomalies; broadcasts against `log_likelihood`.
    alpha
        Where the anomalies' prior lies on every latent axis.
    beta
        Weight of the divergence.

    Returns
    -------
    Tensor of shape ``(...)``.
    """
    alpha = torch.as_tensor(alpha, dtype=mean.dtype, device=mean.device)
    prior_mean = torch.where(is_anomaly, alpha, torch.zeros_like(alpha))
    return elbo(log_likelihood, mean, log_var, prior_mean=prior_mean.unsqueeze(-1), beta=beta)
