"""The multi-layer perceptrons of the paper, for rows that are flat vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from aloof.networks.stacked import linear

__all__ = ["Linear", "MLPDecoder", "MLPEncoder"]

_SLOPE = 0.1  # of the leaky ReLU, as in the paper's networks


class Linear(nn.Linear):
    """`nn.Linear` that also takes stacked parameters.

    With a weight of shape ``(members, out, in)`` the input is ``(members, n, in)`` and
    every member multiplies its own rows, in one batched product.
    """

    stackable = True

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., in)`` to ``(..., out)``."""
        if self.weight.dim() == 2:
            return super().forward(x)
        if x.is_cuda:
            return linear(x, self.weight, self.bias)
        if self.bias is None:
            return torch.bmm(x, self.weight.mT)
        return torch.baddbmm(self.bias.unsqueeze(-2), x, self.weight.mT)


class MLPEncoder(nn.Module):
    """Leaky-ReLU layers and a linear head for the mean and the log-variance.

    The paper's 32-16-8 network is ``MLPEncoder((d,), 8, hidden=(32, 16))``.

    Parameters
    ----------
    shape
        Shape of one row, ``(d,)``.
    latent_dim
        Size of the latent space.
    hidden
        Widths of the hidden layers, from the data to the latent space.

    Examples
    --------
    >>> encoder = MLPEncoder((21,), 8, hidden=(32, 16))
    >>> mean, log_var = encoder(torch.zeros(5, 21))
    >>> mean.shape, log_var.shape
    (torch.Size([5, 8]), torch.Size([5, 8]))
    """

    stackable = True

    def __init__(
        self, shape: Sequence[int], latent_dim: int, hidden: Sequence[int] = (128, 64)
    ) -> None:
        super().__init__()
        widths = [_flat(shape), *hidden]
        self.body = _layers(widths)
        self.head = Linear(widths[-1], 2 * latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map ``(..., d)`` to mean and log-variance, each ``(..., latent_dim)``."""
        mean, log_var = self.head(self.body(x)).chunk(2, -1)
        return mean, log_var


class MLPDecoder(nn.Module):
    """The encoder's mirror image, with a linear output.

    Parameters
    ----------
    shape
        Shape of one row, ``(d,)``.
    latent_dim
        Size of the latent space.
    hidden
        Widths of the hidden layers *of the encoder*; used in reverse.
    learn_variance
        Also learn one log-variance for each feature and return ``(mean, log_var)``.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        hidden: Sequence[int] = (128, 64),
        *,
        learn_variance: bool = False,
    ) -> None:
        super().__init__()
        n_features = _flat(shape)
        widths = [latent_dim, *reversed(hidden)]
        self.body = _layers(widths)
        self.head = Linear(widths[-1], n_features)
        self.log_var = nn.Parameter(torch.zeros(n_features)) if learn_variance else None

    def forward(self, z: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Map ``(..., latent_dim)`` to a reconstruction ``(..., d)``."""
        mean: Tensor = self.head(self.body(z))
        if self.log_var is None:
            return mean
        return mean, self.log_var.unsqueeze(-2).expand_as(mean)


def _layers(widths: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [Linear(n_in, n_out), nn.LeakyReLU(_SLOPE)]
    return nn.Sequential(*layers)


def _flat(shape: Sequence[int]) -> int:
    if len(shape) != 1:
        raise ValueError(
            f"An MLP takes rows that are flat vectors; got rows of shape {tuple(shape)}. "
            "Pass an encoder and a decoder made for that shape."
        )
    return int(shape[0])
