"""What the decoder says of the data: log p(x | z) for the kinds of data there are.

The reduction over features is explicit because it decides what is learned: with the
``"mean"`` (one feature's worth of error) the anomaly terms of the paper keep a gradient,
with the ``"sum"`` exp(-2 L_R) vanishes as soon as there are a few dozen features.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from aloof.objectives.gaussian import gaussian_terms

__all__ = ["Reduction", "bernoulli", "categorical", "gaussian", "squared_error"]

Reduction = Literal["mean", "sum"]


def squared_error(x: Tensor, mean: Tensor, *, reduction: Reduction) -> Tensor:
    r"""Return minus the squared error: a Gaussian of variance 1/2, no constant.

    This is the reconstruction term :math:`-L_R` of the paper.

    Parameters
    ----------
    x, mean
        Data and reconstruction, ``(..., d)``.
    reduction
        Over the features of the last axis.
    """
    return -_reduce((x - mean).square(), reduction)


def gaussian(
    x: Tensor, mean: Tensor, log_var: Tensor | float, *, reduction: Reduction
) -> Tensor:
    r"""Gaussian log-likelihood with a fixed or a learned variance.

    Parameters
    ----------
    x, mean
        Data and reconstruction, ``(..., d)``.
    log_var
        Log-variance: a number (fixed) or a tensor that broadcasts against `x` (learned).
    reduction
        Over the features of the last axis.
    """
    return -0.5 * _reduce(gaussian_terms(x, mean, log_var), reduction)


def bernoulli(x: Tensor, logits: Tensor, *, reduction: Reduction) -> Tensor:
    """Bernoulli log-likelihood of data in [0, 1] under `logits`, both ``(..., d)``."""
    return -_reduce(binary_cross_entropy_with_logits(logits, x, reduction="none"), reduction)


def categorical(
    tokens: Tensor,
    logits: Tensor,
    *,
    reduction: Reduction,
    mask: Tensor | None = None,
) -> Tensor:
    """Categorical log-likelihood of a sequence, padding left out.

    Parameters
    ----------
    tokens
        Integer classes, ``(..., t)``.
    logits
        Scores of the `v` classes, ``(..., t, v)``.
    reduction
        Over the positions of the last axis; the mean counts unmasked positions only.
    mask
        True where a position counts, ``(..., t)``; every position when omitted.
    """
    n_classes = logits.shape[-1]
    flat = cross_entropy(logits.reshape(-1, n_classes), tokens.reshape(-1), reduction="none")
    log_likelihood = -flat.reshape(tokens.shape)
    if mask is None:
        return _reduce(log_likelihood, reduction)
    total = torch.where(mask, log_likelihood, 0.0).sum(-1)
    return total if reduction == "sum" else total / mask.sum(-1).clamp(min=1)


def _reduce(terms: Tensor, reduction: Reduction) -> Tensor:
    if reduction == "mean":
        return terms.mean(-1)
    if reduction == "sum":
        return terms.sum(-1)
    raise ValueError(f"reduction must be 'mean' or 'sum'; got {reduction!r}.")
