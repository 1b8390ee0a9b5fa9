"""The networks of the deep baselines: perceptrons for tables, with or without biases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

__all__ = ["AutoencoderNetwork", "perceptron"]

_SLOPE = 0.1  # of the leaky ReLU, as in the paper's networks
_VARIANCE_FLOOR = 1e-4


def perceptron(
    widths: Sequence[int], *, bias: bool = True, batch_norm: bool = False
) -> nn.Sequential:
    """Return linear layers of these widths with leaky ReLUs between them.

    Parameters
    ----------
    widths
        From the input to the output; the output is linear.
    bias
        Whether layers (and batch normalisation) have biases. A network without them has no
        easy way to map everything to one point, which is why Deep SVDD and Deep SAD do
        without.
    batch_norm
        Whether hidden layers are normalised, as they are in those two.
    """
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths[:-1]):
        layers.append(nn.Linear(n_in, n_out, bias=bias))
        if batch_norm:
            layers.append(nn.BatchNorm1d(n_out, eps=_VARIANCE_FLOOR, affine=bias))
        layers.append(nn.LeakyReLU(_SLOPE))
    return nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1], bias=bias))


class AutoencoderNetwork(nn.Module):
    """An encoder and its mirror image, batch-normalised.

    Parameters
    ----------
    n_features
        Number of columns.
    hidden
        Widths of the encoder; the last one is the size of the representation.
    bias
        As in `perceptron`.
    """

    def __init__(self, n_features: int, hidden: Sequence[int], *, bias: bool = True) -> None:
        super().__init__()
        widths = (n_features, *hidden)
        self.encoder = perceptron(widths, bias=bias, batch_norm=True)
        self.decoder = perceptron(widths[::-1], bias=bias, batch_norm=True)

    def forward(self, x: Tensor) -> Tensor:
        """Reconstruct rows ``(n, n_features)``."""
        reconstruction: Tensor = self.decoder(self.encoder(x))
        return reconstruction
