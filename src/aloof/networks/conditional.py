"""Perceptrons of a conditional VAE: rows and codes come with a context.

The first part of the context may be an image. A perceptron has to learn anew in every place
what is in it; convolutions over it need far fewer examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from aloof.networks.linear import Linear
from aloof.networks.mlp import PosteriorHead, hidden_layers

__all__ = ["ConditionalMLPDecoder", "ConditionalMLPEncoder"]

_KERNEL = 5


class _ConditionalMLP(nn.Module):
    """ReLU layers with dropout over a row or a code, joined with its context."""

    _decodes: ClassVar[bool]

    def __init__(
        self,
        n_features: int,
        n_context: int,
        latent_dim: int,
        *,
        hidden: Sequence[int] = (512, 512),
        dropout: float = 0.5,
        filters: Sequence[int] = (),
        image_size: int = 0,
    ) -> None:
        super().__init__()
        self.context = _Context(n_context, filters, image_size)
        n_in, inner = (latent_dim, hidden[::-1]) if self._decodes else (n_features, hidden)
        widths = [n_in + self.context.width, *inner]
        self.body = hidden_layers(widths, nn.ReLU, dropout)
        self.head = (
            Linear(widths[-1], n_features)
            if self._decodes
            else PosteriorHead(widths[-1], latent_dim)
        )

    def forward(self, x: Tensor, *context: Tensor) -> Any:
        return self.head(self.body(self.context(x, context)))


class ConditionalMLPEncoder(_ConditionalMLP):
    """ReLU layers with dropout over a row and its context, and a head for the posterior.

    It maps rows ``(..., n_features)`` and parts of a context, each ``(..., m)`` of any dtype,
    to mean and log-variance, each ``(..., latent_dim)``.

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
    filters
        How many, of each convolution over the first part of the context, a square image in
        one row; each halves its side. None of them: its pixels are taken as they are.
    image_size
        Pixels a side of that image.

    Examples
    --------
    >>> encoder = ConditionalMLPEncoder(4, 9 + 2, 3, hidden=(16,))
    >>> grid, goal = torch.zeros(5, 9, dtype=torch.uint8), torch.zeros(5, 2)
    >>> [part.shape for part in encoder(torch.zeros(5, 4), grid, goal)]
    [torch.Size([5, 3]), torch.Size([5, 3])]
    """

    stackable = True
    _decodes = False


class ConditionalMLPDecoder(_ConditionalMLP):
    """The encoder's mirror image: a code and a context to a row. Parameters as there."""

    stackable = True
    _decodes = True


class _Context(nn.Module):
    """Joins a row or a code with its context; `width` is the length of what it adds."""

    stackable = True

    def __init__(self, n_context: int, filters: Sequence[int], image_size: int) -> None:
        super().__init__()
        self.image_size, self.width = image_size, n_context
        layers: list[nn.Module] = []
        side = image_size
        for n_in, n_out in pairwise((1, *filters)):
            layers += [nn.Conv2d(n_in, n_out, _KERNEL, 2, _KERNEL // 2), nn.ReLU()]
            side = (side + 1) // 2
        self.look = nn.Sequential(*layers, nn.Flatten()) if layers else None
        if layers:
            self.width += filters[-1] * side**2 - image_size**2

    def forward(self, x: Tensor, context: Sequence[Tensor]) -> Tensor:
        # A context may be kept in bytes, a quarter of its size; here it becomes numbers.
        parts = [part.to(x.dtype) for part in context]
        if self.look is not None:
            parts[0] = self.look(parts[0].reshape(-1, 1, self.image_size, self.image_size))
        return torch.cat([x, *parts], -1)
