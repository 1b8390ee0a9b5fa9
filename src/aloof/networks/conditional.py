"""Perceptrons of a conditional VAE: rows and codes come with a context."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from aloof.networks.mlp import Linear

__all__ = ["ConditionalMLPDecoder", "ConditionalMLPEncoder"]


class ConditionalMLPEncoder(nn.Module):
    """ReLU layers with dropout over a row and its context.

    Parameters
    ----------
    n_features
        Length of a row.
    n_context
        Total length of its context.
    latent_dim
        Size of the latent space.
    hidden
        Widths of the hidden layers.
    dropout
        Share of the hidden units left out in training.

    Examples
    --------
    >>> encoder = ConditionalMLPEncoder(4, 9 + 2, 3, hidden=(16,))
    >>> grid, goal = torch.zeros(5, 9, dtype=torch.uint8), torch.zeros(5, 2)
    >>> [part.shape for part in encoder(torch.zeros(5, 4), grid, goal)]
    [torch.Size([5, 3]), torch.Size([5, 3])]
    """

    stackable = True

    def __init__(
        self,
        n_features: int,
        n_context: int,
        latent_dim: int,
        *,
        hidden: Sequence[int] = (512, 512),
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        widths = [n_features + n_context, *hidden]
        self.body = _layers(widths, dropout)
        self.head = Linear(widths[-1], 2 * latent_dim)

    def forward(self, x: Tensor, *context: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance, each ``(..., latent_dim)``.

        Parameters
        ----------
        x
            Rows ``(..., n_features)``.
        context
            Parts ``(..., m)`` of any dtype.
        """
        mean, log_var = self.head(self.body(_joined(x, context))).chunk(2, -1)
        return mean, log_var


class ConditionalMLPDecoder(nn.Module):
    """The encoder's mirror image: a code and a context to a row. Parameters as there."""

    stackable = True

    def __init__(
        self,
        n_features: int,
        n_context: int,
        latent_dim: int,
        *,
        hidden: Sequence[int] = (512, 512),
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        widths = [latent_dim + n_context, *reversed(hidden)]
        self.body = _layers(widths, dropout)
        self.head = Linear(widths[-1], n_features)

    def forward(self, z: Tensor, *context: Tensor) -> Tensor:
        """Map codes ``(..., latent_dim)`` and their context to rows ``(..., n_features)``."""
        row: Tensor = self.head(self.body(_joined(z, context)))
        return row


def _joined(x: Tensor, context: Sequence[Tensor]) -> Tensor:
    # A context may be kept in bytes, a quarter of its size; here it becomes numbers.
    return torch.cat([x, *(part.to(x.dtype) for part in context)], -1)


def _layers(widths: Sequence[int], dropout: float) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [Linear(n_in, n_out), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)
