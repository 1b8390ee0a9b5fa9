"""The loss of MML-VAE: likelihood up on normal rows, down on anomalies."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["Repulsion", "max_min_loss", "repulsion"]

Repulsion = Literal["exp", "softplus"]


def repulsion(
    cubo: Tensor,
    *,
    n: float = 2.0,
    form: Repulsion = "exp",
    margin: Tensor | float = 0.0,
) -> Tensor:
    r"""Return what is minimised on an anomaly, a monotone function of its CUBO_n.

    ``"exp"`` is the paper's :math:`\exp(n\,CUBO_n)`. It stops pushing once an anomaly
    reconstructs badly, because its slope is the value itself. ``"softplus"`` is
    :math:`\log(1 + \exp(n\,CUBO_n + margin))`: it pushes with a slope near 1 until the
    bound lies `margin` below zero, and one bad row cannot own the step.
    """
    if form == "exp":
        return torch.exp(n * cubo)
    if form == "softplus":
        return softplus(n * cubo + margin)
    raise ValueError(f"form must be 'exp' or 'softplus'; got {form!r}.")


def max_min_loss(
    elbo_normal: Tensor,
    cubo_anomaly: Tensor,
    *,
    gamma: Tensor | float = 1.0,
    n: float = 2.0,
    form: Repulsion = "exp",
    margin: Tensor | float = 0.0,
) -> tuple[Tensor, Tensor]:
    r"""Per-sample losses whose sum bounds the max-min objective.

    .. math:: \log p(X_{normal}) - \gamma \log p(X_{anomaly})
        \ge ELBO(X_{normal}) - \gamma\,CUBO(X_{anomaly})

    Parameters
    ----------
    elbo_normal
        ELBO of the normal rows, ``(..., B)``.
    cubo_anomaly
        CUBO_n of the anomalies, ``(..., A)``.
    gamma
        Weight of the anomalies; 0 is the plain VAE.
    n, form, margin
        As in `repulsion`.

    Returns
    -------
    Losses of the normal rows ``(..., B)`` and of the anomalies ``(..., A)``.
    """
    pushed = repulsion(cubo_anomaly, n=n, form=form, margin=margin)
    return -elbo_normal, gamma * pushed
