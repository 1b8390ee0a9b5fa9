"""LeNet-like convolutional networks, for images ``(channels, height, width)``.

Each stage is a 5x5 convolution, batch normalisation, a leaky ReLU and 2x2 max pooling;
the decoder mirrors it with nearest-neighbour upsampling. The paper's Fashion-MNIST network
is ``channels=(16, 32), hidden=(64,), latent_dim=32``, its CIFAR-10 network
``channels=(32, 64, 128), hidden=(), latent_dim=128``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor, nn

__all__ = ["ConvDecoder", "ConvEncoder"]

_KERNEL = 5
_SLOPE = 0.1


class ConvEncoder(nn.Module):
    """Convolutions, dense layers, and a head for the mean and the log-variance.

    Parameters
    ----------
    shape
        Shape of one image, ``(channels, height, width)``.
    latent_dim
        Size of the latent space.
    channels
        Filters of each convolutional stage; every stage halves height and width.
    hidden
        Widths of the dense layers between the last stage and the latent space.
    """

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        channels: Sequence[int] = (16, 32),
        hidden: Sequence[int] = (64,),
    ) -> None:
        super().__init__()
        stages: list[nn.Module] = []
        n_in = shape[0]
        for n_out in channels:
            stages += [
                nn.Conv2d(n_in, n_out, _KERNEL, padding=_KERNEL // 2),
                nn.BatchNorm2d(n_out),
                nn.LeakyReLU(_SLOPE),
                nn.MaxPool2d(2),
            ]
            n_in = n_out
        self.stages = nn.Sequential(*stages)
        width = prod(_smallest(shape, channels))
        dense: list[nn.Module] = [nn.Flatten()]
        for n_out in hidden:
            dense += [
                nn.Linear(width, n_out),
                nn.BatchNorm1d(n_out),
                nn.LeakyReLU(_SLOPE),
            ]
            width = n_out
        self.dense = nn.Sequential(*dense)
        self.head = nn.Linear(width, 2 * latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map images ``(n, c, h, w)`` to mean and log-variance ``(n, latent_dim)``."""
        mean, log_var = self.head(self.dense(self.stages(x))).chunk(2, -1)
        return mean, log_var


class ConvDecoder(nn.Module):
    """The encoder's mirror image; its output is in [0, 1], as pixels are.

    Parameters are those of `ConvEncoder`.
    """

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        channels: Sequence[int] = (16, 32),
        hidden: Sequence[int] = (64,),
    ) -> None:
        super().__init__()
        smallest = _smallest(shape, channels)
        dense: list[nn.Module] = []
        width = latent_dim
        for n_out in (*reversed(hidden), prod(smallest)):
            dense += [
                nn.Linear(width, n_out),
                nn.BatchNorm1d(n_out),
                nn.LeakyReLU(_SLOPE),
            ]
            width = n_out
        self.dense = nn.Sequential(*dense, nn.Unflatten(1, smallest))
        sizes = [
            (shape[1] >> depth, shape[2] >> depth) for depth in reversed(range(len(channels)))
        ]
        outputs = [*reversed(channels[:-1]), shape[0]]
        stages: list[nn.Module] = []
        n_in = channels[-1]
        for n_out, size in zip(outputs, sizes, strict=True):
            stages += [
                nn.Upsample(size=size),
                nn.Conv2d(n_in, n_out, _KERNEL, padding=_KERNEL // 2),
                nn.BatchNorm2d(n_out),
                nn.LeakyReLU(_SLOPE),
            ]
            n_in = n_out
        self.stages = nn.Sequential(*stages[:-2])  # the output has no activation of its own

    def forward(self, z: Tensor) -> Tensor:
        """Map ``(n, latent_dim)`` to images ``(n, c, h, w)`` with pixels in [0, 1]."""
        return torch.sigmoid(self.stages(self.dense(z)))


def _smallest(shape: Sequence[int], channels: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) >> len(channels) < 1:
        raise ValueError(
            f"{len(channels)} halvings need images (channels, height, width) of at least "
            f"{2 ** len(channels)} pixels a side; got {tuple(shape)}."
        )
    return channels[-1], shape[1] >> len(channels), shape[2] >> len(channels)
