"""The multi-layer perceptrons of the paper, for rows that are flat vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

from aloof.networks.dense import Dense, without_biases
from aloof.networks.linear import Linear

__all__ = ["MLPDecoder", "MLPEncoder", "PosteriorHead", "hidden_layers"]


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

    The paper's widths 32-16-8 are ``MLPEncoder((d,), 8, hidden=(32, 16))``. With
    ``normalise=True, bias=False, slope=0.01`` its hidden layers are those of the code that the
    paper builds on.

    Parameters
    ----------
    shape
        Shape of one row, ``(d,)``.
    latent_dim
        Size of the latent space.
    hidden
        Widths of the hidden layers, from the data to the latent space.
    slope
        Of the leaky ReLU below zero; 0: a plain ReLU.
    normalise
        Whether hidden layers are batch-normalised.
    bias
        Whether hidden layers have biases; without them, batch normalisation has neither gains
        nor shifts. The head always has biases.

    Examples
    --------
    >>> encoder = MLPEncoder((21,), 8, hidden=(32, 16))
    >>> mean, log_var = encoder(torch.zeros(5, 21))
    >>> mean.shape, log_var.shape
    (torch.Size([5, 8]), torch.Size([5, 8]))
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        hidden: Sequence[int] = (128, 64),
        *,
        slope: float = 0.1,
        normalise: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        widths = [_flat(shape), *hidden]
        self.body = _body(widths, slope=slope, normalise=normalise, bias=bias)
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
    slope, normalise, bias
        As in `MLPEncoder`.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        hidden: Sequence[int] = (128, 64),
        *,
        learn_variance: bool = False,
        slope: float = 0.1,
        normalise: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        n_features = _flat(shape)
        widths = [latent_dim, *reversed(hidden)]
        self.body = _body(widths, slope=slope, normalise=normalise, bias=bias)
        self.head = Linear(widths[-1], n_features)
        self.log_var = nn.Parameter(torch.zeros(n_features)) if learn_variance else None

    def forward(self, z: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        """Map ``(..., latent_dim)`` to a reconstruction ``(..., d)``."""
        mean: Tensor = self.head(self.body(z))
        if self.log_var is None:
            return mean
        return mean, self.log_var.unsqueeze(-2).expand_as(mean)


def _body(widths: Sequence[int], *, slope: float, normalise: bool, bias: bool) -> nn.Sequential:
    """Return hidden layers with leaky ReLUs, from each width to the next."""
    if normalise:
        body = nn.Sequential(*(Dense(*pair, slope, True) for pair in pairwise(widths)))
    else:
        body = hidden_layers(widths, partial(nn.LeakyReLU, slope))
    if not bias:
        without_biases(body)
    return body


def _flat(shape: Sequence[int]) -> int:
    if len(shape) != 1:
        raise ValueError(
            f"An MLP takes flat rows; got rows of shape {tuple(shape)}. Pass an encoder and a "
            "decoder made for that shape."
        )
    return int(shape[0])
