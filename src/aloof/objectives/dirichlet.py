"""The Dirichlet density of probabilities, and its concentration of maximum likelihood."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["dirichlet_log_density", "fit_dirichlet"]

_STEPS, _NEAR = 100, 1e-9  # most of them, and how far apart the last two are at most
_NEWTON_STEPS = 5
_LEAST_SPREAD = 1e-9  # of responses, so that equal ones have an estimate, too


def dirichlet_log_density(log_p: Tensor, concentration: Tensor) -> Tensor:
    """Return the log-density of probabilities.

    Parameters
    ----------
    log_p
        Logarithms of probabilities that sum to one, ``(..., k)``.
    concentration
        Of the Dirichlet distribution, ``(..., k)``.

    Examples
    --------
    >>> uniform = torch.full((3,), 1 / 3)
    >>> dirichlet_log_density(uniform.log(), torch.ones(3))
    tensor(0.6931)
    """
    total = torch.lgamma(concentration.sum(-1)) - torch.lgamma(concentration).sum(-1)
    return total + ((concentration - 1.0) * log_p).sum(-1)


def fit_dirichlet(mean_log_p: Tensor, mean_p: Tensor) -> Tensor:
    """Return the concentration that makes observed probabilities most likely, ``(..., k)``.

    Newton's method, whose Hessian is a diagonal and a constant; where a step would leave the
    positive numbers, one of Minka's fixed point instead. Both have the same limit, Newton's
    method gets there in a few steps. It begins where Wicker et al. derived. The first argument
    is all that the estimate depends on, the second one shortens the way.

    Parameters
    ----------
    mean_log_p, mean_p
        Means over the observations, of logarithms and of probabilities, ``(..., k)``, float64.

    References
    ----------
    Minka, "Estimating a Dirichlet distribution", 2000. Wicker et al., "A maximum likelihood
    approximation method for Dirichlet's parameter estimation", 2008.
    """
    euler = -torch.digamma(mean_p.new_ones(()))
    spread = torch.special.xlogy(mean_p, mean_p) - mean_p * mean_log_p
    spread = spread.sum(-1, keepdim=True).clamp(min=_LEAST_SPREAD)
    total = (mean_p.shape[-1] - 1) * euler / spread
    found = _inverse_digamma(torch.digamma(total) + mean_log_p)
    for _ in range(_STEPS):
        last = found
        found = _newton_step(last, mean_log_p)
        if ((found - last).abs() <= _NEAR * last).all():
            break
    return found


def _newton_step(last: Tensor, mean_log_p: Tensor) -> Tensor:
    total = last.sum(-1, keepdim=True)
    target = torch.digamma(total) + mean_log_p
    gradient = target - torch.digamma(last)
    diagonal = -torch.polygamma(1, last)
    common = (gradient / diagonal).sum(-1, keepdim=True)
    common /= 1.0 / torch.polygamma(1, total) + (1.0 / diagonal).sum(-1, keepdim=True)
    moved = last - (gradient - common) / diagonal
    positive = (moved > 0).all(-1, keepdim=True)
    return moved if positive.all() else torch.where(positive, moved, _inverse_digamma(target))


def _inverse_digamma(y: Tensor) -> Tensor:
    """Return x with ``digamma(x) = y``, by Newton's method from Minka's first guess."""
    x = torch.where(y >= -2.22, y.exp() + 0.5, -1.0 / (y - torch.digamma(y.new_ones(()))))
    for _ in range(_NEWTON_STEPS):
        x = x - (torch.digamma(x) - y) / torch.polygamma(1, x)
    return x
