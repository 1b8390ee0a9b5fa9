"""What labelled anomalies teach: the terms that methods are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from aloof.objectives import cubo, dual_prior_elbo, repulsion

if TYPE_CHECKING:
    from aloof.vae.objective import Objective

__all__ = ["Anomalies", "AnomalyTerm", "attraction", "pushing"]


@dataclass(frozen=True, eq=False)
class Anomalies:
    """The labelled anomalies of a batch.

    Attributes
    ----------
    log_likelihood
        log p(x|z) of S samples of each, ``(S, members, A)``.
    z
        The samples, ``(S, members, A, latent_dim)``.
    mean, log_var
        Of q(z|x), ``(members, A, latent_dim)``.
    beta_kl
        Weight of the KL divergence now, ``(members, 1)``.
    numbers
        Those of the members' objectives, ``(members, 1)`` by name.
    objective
        What is not a number.
    """

    log_likelihood: Tensor
    z: Tensor
    mean: Tensor
    log_var: Tensor
    beta_kl: Tensor
    numbers: Mapping[str, Tensor]
    objective: Objective


AnomalyTerm = Callable[[Anomalies], Tensor]
"""What is minimised for each anomaly, ``(members, A)``, before its weight gamma."""


def pushing(anomalies: Anomalies) -> Tensor:
    """Return MML-VAE's term: it lowers an upper bound of the likelihood."""
    upper = cubo(
        anomalies.log_likelihood,
        anomalies.z,
        anomalies.mean,
        anomalies.log_var,
        beta=anomalies.numbers["beta_cubo"],
    )
    form = anomalies.objective.repulsion
    return repulsion(upper, form=form, margin=anomalies.numbers["margin"])


def attraction(anomalies: Anomalies) -> Tensor:
    """Return DP-VAE's term: minus the ELBO with the anomalies' own prior."""
    return -dual_prior_elbo(
        anomalies.log_likelihood.mean(0),
        anomalies.mean,
        anomalies.log_var,
        torch.ones_like(anomalies.mean[..., 0], dtype=torch.bool),
        alpha=anomalies.numbers["alpha"],
        beta=anomalies.beta_kl,
    )
