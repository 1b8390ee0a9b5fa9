"""What MML-VAE minimises on anomalies, given an upper bound of their likelihood."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["Repulsion", "repulsion"]

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
