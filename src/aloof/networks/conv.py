"""LeNet-like convolutional networks, for images ``(channels, height, width)``.

Each stage is a 5x5 convolution, batch normalisation, a leaky ReLU and 2x2 max pooling;
the decoder mirrors it with nearest-neighbour upsampling. The paper's Fashion-MNIST network
is ``channels=(16, 32), hidden=(64,), latent_dim=32``, its CIFAR-10 network
``channels=(32, 64, 128), hidden=(), latent_dim=128``.

Stacked, the members' channels lie side by side, ``(n, members x channels, h, w)``: a grouped
convolution computes all members, and every other layer does not notice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, conv2d, interpolate

from aloof.networks.mlp import Linear

__all__ = ["ConvDecoder", "ConvEncoder", "default_channels"]

_KERNEL = 5
_SLOPE = 0.1


class _Conv2d(nn.Conv2d):
    """A padded convolution that also takes stacked parameters, as a grouped convolution."""

    stackable = True

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(n, members x in, h, w)`` to ``(n, members x out, h, w)``."""
        if self.weight.dim() == 4:
            return super().forward(x)
        assert self.bias is not None
        return conv2d(
            x,
            self.weight.flatten(0, 1),
            self.bias.flatten(),
            padding=self.padding,
            groups=len(self.weight),
        )


class _BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation of channels, members' channels side by side."""

    stackable = True

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``(n, members x channels, ...)``."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        if self.training:
            self.num_batches_tracked.add_(1)
        return batch_norm(
            x,
            self.running_mean.flatten(),
            self.running_var.flatten(),
            self.weight.flatten(),
            self.bias.flatten(),
            self.training,
            0.1 if self.momentum is None else self.momentum,
            self.eps,
        )

    def _check_input_dim(self, input: Tensor) -> None:
        pass  # any number of dimensions will do


class ConvEncoder(nn.Module):
    """Convolutions, dense layers, and a head for the mean and the log-variance.

    Parameters
    ----------
    shape
        Shape of one image, ``(channels, height, width)``.
    latent_dim
        Size of the latent space.
    channels
        Filters of each convolutional stage; every stage halves height and width. None:
        `default_channels` of the shape.
    hidden
        Widths of the dense layers between the last stage and the latent space.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        channels: Sequence[int] | None = None,
        hidden: Sequence[int] = (64,),
    ) -> None:
        super().__init__()
        channels = default_channels(shape) if channels is None else channels
        widths = [prod(_smallest(shape, channels)), *hidden]
        stages: list[nn.Module] = []
        for n_in, n_out in pairwise((shape[0], *channels)):
            stages += [
                _Conv2d(n_in, n_out, _KERNEL, padding=_KERNEL // 2),
                _BatchNorm(n_out),
                nn.LeakyReLU(_SLOPE),
                nn.MaxPool2d(2),
            ]
        self.stages = nn.Sequential(*stages)
        self.dense = nn.ModuleList(_Dense(*pair) for pair in pairwise(widths))
        self.head = Linear(widths[-1], 2 * latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map images ``(..., n, c, h, w)`` to two tensors ``(..., n, latent_dim)``."""
        if x.dim() == 4:
            y = self.stages(x).flatten(1)
        else:
            members = len(x)
            y = self.stages(x.transpose(0, 1).flatten(1, 2))
            y = y.view(len(y), members, -1).transpose(0, 1)
        for layer in self.dense:
            y = layer(y)
        mean, log_var = self.head(y).chunk(2, -1)
        return mean, log_var


class ConvDecoder(nn.Module):
    """The encoder's mirror image; its output is in [0, 1], as pixels are.

    Parameters are those of `ConvEncoder`.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        channels: Sequence[int] | None = None,
        hidden: Sequence[int] = (64,),
    ) -> None:
        super().__init__()
        channels = default_channels(shape) if channels is None else channels
        self._smallest = _smallest(shape, channels)
        widths = [latent_dim, *reversed(hidden), prod(self._smallest)]
        self.dense = nn.ModuleList(_Dense(*pair) for pair in pairwise(widths))
        stages: list[nn.Module] = []
        depths = reversed(range(len(channels)))
        for depth, (n_in, n_out) in zip(
            depths, pairwise((*reversed(channels), shape[0])), strict=True
        ):
            stages += [
                _Upsample((shape[1] >> depth, shape[2] >> depth)),
                _Conv2d(n_in, n_out, _KERNEL, padding=_KERNEL // 2),
                _BatchNorm(n_out),
                nn.LeakyReLU(_SLOPE),
            ]
        self.stages = nn.Sequential(*stages[:-2])  # the output is neither normalised nor cut

    def forward(self, z: Tensor) -> Tensor:
        """Map ``(..., n, latent_dim)`` to images ``(..., n, c, h, w)`` in [0, 1]."""
        for layer in self.dense:
            z = layer(z)
        if z.dim() == 2:
            y = self.stages(z.view(len(z), *self._smallest))
            return torch.sigmoid(y)
        members, n = z.shape[:2]
        channels, height, width = self._smallest
        y = z.transpose(0, 1).reshape(n, members * channels, height, width)
        y = self.stages(y)
        y = y.view(n, members, -1, *y.shape[2:]).transpose(0, 1)
        return torch.sigmoid(y)


class _Dense(nn.Module):
    """A linear layer, batch normalisation and a leaky ReLU."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = Linear(n_in, n_out)
        self.norm = _BatchNorm(n_out)
        self.activation = nn.LeakyReLU(_SLOPE)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.linear(x)
        if y.dim() == 2:
            y = self.norm(y)
        else:  # members' features side by side, and back
            members, n, width = y.shape
            y = self.norm(y.transpose(0, 1).reshape(n, members * width))
            y = y.view(n, members, width).transpose(0, 1)
        activated: Tensor = self.activation(y)
        return activated


class _Upsample(nn.Module):
    """Nearest-neighbour upsampling; doubling copies views, whose gradient is a plain sum."""

    def __init__(self, size: tuple[int, int]) -> None:
        super().__init__()
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        n, channels, height, width = x.shape
        if self.size != (2 * height, 2 * width):
            return interpolate(x, self.size)
        doubled = x[:, :, :, None, :, None].expand(n, channels, height, 2, width, 2)
        return doubled.reshape(n, channels, *self.size)


def default_channels(shape: Sequence[int]) -> tuple[int, ...]:
    """Return filters that suit images of any size: halve until a side is 8 pixels or less.

    Examples
    --------
    >>> default_channels((1, 28, 28)), default_channels((3, 64, 64))
    ((16, 32), (32, 64, 128))
    """
    side, width = min(shape[1:]), 16 if shape[0] == 1 else 32
    channels = [width]
    while side >> len(channels) > 8:
        channels.append(min(2 * channels[-1], 256))
    return tuple(channels)


def _smallest(shape: Sequence[int], channels: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) >> len(channels) < 1:
        raise ValueError(
            f"{len(channels)} halvings need images (channels, height, width) of at least "
            f"{2 ** len(channels)} pixels a side; got {tuple(shape)}."
        )
    return channels[-1], shape[1] >> len(channels), shape[2] >> len(channels)
