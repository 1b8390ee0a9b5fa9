"""The multi-layer perceptrons of the paper, for rows that are flat vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

from aloof.networks.stacked import linear

__all__ = ["Linear", "MLPDecoder", "MLPEncoder", "PosteriorHead", "hidden_layers"]

_leaky = partial(nn.LeakyReLU, 0.1)  # as in the paper's networks


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


class PosteriorHead(Linear):
    """The last layer of an encoder: the mean and the log-variance of a code."""

    stackable = True

    def __init__(self, n_in: int, latent_dim: int) -> None:
        super().__init__(n_in, 2 * latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """Map ``(..., n_in)`` to two tensors ``(..., latent_dim)``."""
        mean, log_var = super().forward(x).chunk(2, -1)
        return mean, log_var


def hidden_layers(
    widths: Sequence[int], activation: Callable[[], nn.Module], dropout: float = 0.0
) -> nn.Sequential:
    """Return linear layers from each width to the next, each with activation and dropout."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [Linear(n_in, n_out), activation()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


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
        self.body = hidden_layers(widths, _leaky)
        self.head = PosteriorHead(widths[-1], latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map ``(..., d)`` to mean and log-variance, each ``(..., latent_dim)``."""
        posterior: tuple[Tensor, Tensor] = self.head(self.body(x))
        return posterior


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
        self.body = hidden_layers(widths, _leaky)
        self.head = Linear(widths[-1], n_features)
        self.log_var = nn.Parameter(torch.zeros(n_features)) if learn_variance else None

    def forward(self, z: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Map ``(..., latent_dim)`` to a reconstruction ``(..., d)``."""
        mean: Tensor = self.head(self.body(z))
        if self.log_var is None:
            return mean
        return mean, self.log_var.unsqueeze(-2).expand_as(mean)


def _flat(shape: Sequence[int]) -> int:
    if len(shape) != 1:
        raise ValueError(
            f"An MLP takes rows that are flat vectors; got rows of shape {tuple(shape)}. "
            "Pass an encoder and a decoder made for that shape."
        )
    return int(shape[0])
