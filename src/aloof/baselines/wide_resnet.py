"""The wide residual network, a classifier of images."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, relu

__all__ = ["WideResNet"]

_WINDOW = 8  # pixels a side that the last pooling takes the mean of


class _Block(nn.Module):
    """Two convolutions with normalisation and ReLU before each, and a way around them."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(n_in), nn.BatchNorm2d(n_out)])
        self.convolutions = nn.ModuleList(
            [_convolution(n_in, n_out, stride), _convolution(n_out, n_out)]
        )
        self.shortcut = _convolution(n_in, n_out, stride, 1) if n_in != n_out else None

    def forward(self, x: Tensor) -> Tensor:
        first = relu(self.norms[0](x))
        y: Tensor = self.convolutions[0](first)
        y = self.convolutions[1](relu(self.norms[1](y)))
        return y + (x if self.shortcut is None else self.shortcut(first))


class WideResNet(nn.Module):
    """A residual network of three groups of blocks; the second and third halve the image.

    Parameters
    ----------
    shape
        Shape of one image, ``(channels, height, width)``.
    n_classes
        Numbers that come out.
    depth
        Layers: 10, or six more for each further block in the groups.
    widen
        The groups have 16, 32 and 64 times as many channels.

    References
    ----------
    Zagoruyko and Komodakis, "Wide Residual Networks", BMVC 2016.
    """

    def __init__(self, shape: Sequence[int], n_classes: int, *, depth: int, widen: int) -> None:
        super().__init__()
        if depth < 10 or depth % 6 != 4:
            raise ValueError(f"The depth must be 10, 16, 22 or so on; got {depth}.")
        widths = [16, *(width * widen for width in (16, 32, 64))]
        self.first = _convolution(shape[0], widths[0])
        blocks = []
        for (n_in, n_out), stride in zip(pairwise(widths), (1, 2, 2), strict=True):
            blocks.append(_Block(n_in, n_out, stride))
            blocks += [_Block(n_out, n_out, 1) for _ in range((depth - 4) // 6 - 1)]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.BatchNorm2d(widths[-1])
        small = [-(-side // 4) for side in shape[1:]]  # halved twice, rounded up
        self._window = [min(_WINDOW, side) for side in small]
        pooled = [side // window for side, window in zip(small, self._window, strict=True)]
        self.head = nn.Linear(widths[-1] * pooled[0] * pooled[1], n_classes)
        nn.init.zeros_(self.head.bias)
        bound = 1 / sqrt(self.head.in_features)
        nn.init.uniform_(self.head.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Map images ``(n, channels, height, width)`` to ``(n, n_classes)``."""
        if x.is_cuda:  # as its convolutions are fastest
            x = x.contiguous(memory_format=torch.channels_last)
        y = self.first(x)
        for block in self.blocks:
            y = block(y)
        y = avg_pool2d(relu(self.norm(y)), self._window).flatten(1)
        with torch.autocast(
            y.device.type, enabled=False
        ):  # the last layer in its own precision
            classes: Tensor = self.head(y.to(self.head.weight.dtype))
        return classes


def _convolution(n_in: int, n_out: int, stride: int = 1, side: int = 3) -> nn.Conv2d:
    layer = nn.Conv2d(n_in, n_out, side, stride=stride, padding=side // 2, bias=False)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    return layer
