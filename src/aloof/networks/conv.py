"""LeNet-like convolutional networks, for images ``(channels, height, width)``.

Each stage is a convolution, batch normalisation, a leaky ReLU and 2x2 max pooling; the
decoder mirrors it with pixels that are doubled before a convolution.

Stacked, images lie in memory as ``(members, n, height, width, channels)``. On a GPU a stage of
all members is a handful of kernels of our own; elsewhere it is a grouped convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    conv2d,
    interpolate,
    leaky_relu,
    max_pool2d,
    pad,
)

from aloof.networks.dense import BatchNorm, Dense
from aloof.networks.mlp import PosteriorHead
from aloof.networks.stacked import can_fuse, fused_convolution, fused_stage, swapped

__all__ = ["ConvDecoder", "ConvEncoder", "FoldedDecoder", "default_filters"]

_FOLD = 4  # height and width of a code that is folded into an image


class _Convolution(nn.Conv2d):
    """A convolution that keeps the size, also of stacked members."""

    stackable = True

    def __init__(self, n_in: int, n_out: int, kernel: int) -> None:
        super().__init__(n_in, n_out, kernel, padding=(kernel - 1) // 2)

    def forward(self, x: Tensor, size: tuple[int, int] | None = None) -> Tensor:
        """Map ``(n, in, h, w)``, or ``(members, n, h, w, in)`` if the weights are stacked.

        Pixels are first repeated until there are as many as `size` says, if it is given. The
        result is ``(n, out, h, w)`` or ``(members, n, out, h, w)``.
        """
        assert self.bias is not None
        if self.weight.dim() == 4:
            x = self._widened(_enlarged(x, size, stacked=False))
            return conv2d(x, self.weight, self.bias, padding=self.padding)
        x = _autocast(x)
        if can_fuse(x):
            doubles = _doubles(x, size)
            planar = doubles and self.out_channels < 8
            x = x if doubles else _enlarged(x, size, stacked=True)
            y = fused_convolution(x, self.weight, self.bias, doubles=doubles, planar=planar)
            return y if planar else y.permute(0, 1, 4, 2, 3)
        x = _enlarged(x, size, stacked=True)
        y = _members_first(self.side_by_side(_side_by_side(x)), len(x))
        return y.permute(0, 1, 4, 2, 3)

    def side_by_side(self, x: Tensor) -> Tensor:
        """Map ``(n, members x in, h, w)``, members' channels side by side."""
        assert self.bias is not None
        weight, bias = self.weight.flatten(0, 1), self.bias.flatten()
        groups = len(self.weight)
        return conv2d(self._widened(x), weight, bias, padding=self.padding, groups=groups)

    def _widened(self, x: Tensor) -> Tensor:
        """Add a row below and a column to the right for filters of even size."""
        return pad(x, (0, 1, 0, 1)) if self.kernel_size[0] % 2 == 0 else x


class _Stage(nn.Module):
    """A convolution, batch normalisation, a leaky ReLU and, in encoders, 2x2 max pooling."""

    stackable = True

    def __init__(
        self, n_in: int, n_out: int, kernel: int, slope: float, normalise: bool, pool: bool
    ) -> None:
        super().__init__()
        self.convolution = _Convolution(n_in, n_out, kernel)
        self.norm = BatchNorm(n_out) if normalise else None
        self._slope, self._pool = slope, pool

    def forward(self, x: Tensor, size: tuple[int, int] | None = None) -> Tensor:
        """Map ``(n, c, h, w)``, or ``(members, n, h, w, c)`` if the weights are stacked.

        `size` is that of `_Convolution`.
        """
        if self.convolution.weight.dim() == 4:
            return self._activate(self.convolution(x, size))
        x = _autocast(x)
        if can_fuse(x):
            doubles = _doubles(x, size)
            return self._fused(x if doubles else _enlarged(x, size, stacked=True), doubles)
        x = _enlarged(x, size, stacked=True)
        y = self.convolution.side_by_side(_side_by_side(x))
        return _members_first(self._activate(y), len(x))

    def _activate(self, y: Tensor) -> Tensor:
        if self.norm is not None:
            y = self.norm(y)
        y = leaky_relu(y, self._slope)
        return max_pool2d(y, 2) if self._pool else y

    def _fused(self, x: Tensor, doubles: bool) -> Tensor:
        norm, convolution = self.norm, self.convolution
        assert convolution.bias is not None
        by_batch = norm is None or norm.training
        out, mean, var = fused_stage(
            x,
            convolution.weight,
            convolution.bias,
            None if norm is None else norm.weight,
            None if norm is None else norm.bias,
            statistics=None if norm is None or by_batch else norm.running(),
            eps=0.0 if norm is None else norm.eps,
            slope=self._slope,
            pool=self._pool,
            doubles=doubles,
        )
        if norm is not None and by_batch:
            norm.follow(mean, var, x[0, ..., 0].numel() * (4 if doubles else 1))
        return out


class ConvEncoder(nn.Module):
    """Convolutions, dense layers, and a head for the mean and the log-variance.

    Parameters
    ----------
    shape
        Shape of one image, ``(channels, height, width)``.
    latent_dim
        Size of the latent space.
    filters
        How many, of each convolutional stage; every stage halves height and width. None:
        `default_filters` of the shape.
    hidden
        Widths of the dense layers between the last stage and the latent space.
    kernel
        Side of the filters.
    slope
        Of the leaky ReLU below zero; 0: a plain ReLU.
    normalise
        Whether there is batch normalisation.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        filters: Sequence[int] | None = None,
        hidden: Sequence[int] = (64,),
        *,
        kernel: int = 5,
        slope: float = 0.1,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        filters = default_filters(shape) if filters is None else filters
        widths = [prod(_smallest(shape, filters)), *hidden]
        self.stages = nn.ModuleList(
            _Stage(n_in, n_out, kernel, slope, normalise, pool=True)
            for n_in, n_out in pairwise((shape[0], *filters))
        )
        self.dense = nn.ModuleList(Dense(*pair, slope, normalise) for pair in pairwise(widths))
        self.head = PosteriorHead(widths[-1], latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map images ``(..., n, c, h, w)`` to two tensors ``(..., n, latent_dim)``."""
        posterior: tuple[Tensor, Tensor] = self.head(self.features(x))
        return posterior

    def features(self, x: Tensor) -> Tensor:
        """Map images ``(..., n, c, h, w)`` to what the head is shown, ``(..., n, width)``."""
        stacked = x.dim() == 5
        y = x.permute(0, 1, 3, 4, 2) if stacked else x
        for stage in self.stages:
            y = stage(y)
        y = _planes(y).flatten(2) if stacked else y.flatten(1)
        for layer in self.dense:
            y = layer(y)
        return y


class _Decoder(nn.Module):
    """Dense layers, whose numbers are folded into an image that stages make larger.

    Before each convolution, pixels are doubled, repeated until there are enough, or left as
    they are; a rim is cut off where doubling makes too many.

    `widths` are those of the code and of the dense layers, of which the last becomes an image
    of shape `folded`. `channels` and `sizes` are those of the images that convolutions are
    shown, that of the output last.
    """

    def __init__(
        self,
        widths: Sequence[int],
        folded: tuple[int, int, int],
        channels: Sequence[int],
        sizes: Sequence[tuple[int, int]],
        n_out: int,
        *,
        kernel: int,
        slope: float,
        normalise: bool,
    ) -> None:
        super().__init__()
        self._folded, self._sizes, self._slope = folded, sizes, slope
        self.dense = nn.ModuleList(Dense(*pair, slope, normalise) for pair in pairwise(widths))
        self.stages = nn.ModuleList(
            _Stage(*pair, kernel, slope, normalise, pool=False) for pair in pairwise(channels)
        )
        self.output = _Convolution(channels[-1], n_out, kernel)

    def forward(self, z: Tensor) -> Tensor:
        """Map ``(..., n, latent_dim)`` to images ``(..., n, c, h, w)`` in [0, 1]."""
        for layer in self.dense:
            z = layer(z)
        z = z if len(self.dense) else leaky_relu(z, self._slope)
        stacked = z.dim() == 3
        y = z.view(*z.shape[:-1], *self._folded)
        y = _pixels(y) if stacked else y
        for size, layer in zip(self._sizes, [*self.stages, self.output], strict=True):
            y = _with_rim_cut(y, size, stacked=stacked)
            y = layer(y, None if size == tuple(y.shape[2:4]) else size)
        return torch.sigmoid(y)


class ConvDecoder(_Decoder):
    """The encoder's mirror image; its output is in [0, 1], as pixels are.

    Parameters are those of `ConvEncoder`.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        filters: Sequence[int] | None = None,
        hidden: Sequence[int] = (64,),
        *,
        kernel: int = 5,
        slope: float = 0.1,
        normalise: bool = True,
    ) -> None:
        filters = default_filters(shape) if filters is None else filters
        folded = _smallest(shape, filters)
        super().__init__(
            [latent_dim, *reversed(hidden), prod(folded)],
            folded,
            [*reversed(filters)],
            _sizes(shape, len(filters)),
            shape[0],
            kernel=kernel,
            slope=slope,
            normalise=normalise,
        )


class FoldedDecoder(_Decoder):
    """A decoder that folds its code into an image of 4x4 pixels, with no layer between.

    That of the autoencoders of Ruff et al. (Deep SAD): far smaller than `ConvDecoder`, whose
    first layer has a number for each pixel of each filter. Pixels are doubled from 4x4 on, and
    a rim is cut off where there are too many: 28 pixels are made of 4, 8, 16 less a rim, 14.

    Parameters are those of `ConvEncoder`; what is folded, the first of `hidden` or else
    `latent_dim`, is a multiple of 16.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        latent_dim: int,
        filters: Sequence[int] | None = None,
        hidden: Sequence[int] = (64,),
        *,
        kernel: int = 5,
        slope: float = 0.1,
        normalise: bool = True,
    ) -> None:
        filters = default_filters(shape) if filters is None else filters
        widths = [latent_dim, *reversed(hidden)]
        _, height, width = _smallest(shape, filters)
        n_folded, rest = divmod(widths[-1], _FOLD**2)
        if rest:
            raise ValueError(
                f"A code folded into {_FOLD}x{_FOLD} pixels needs a multiple of {_FOLD**2} "
                f"numbers; got {widths[-1]}."
            )
        super().__init__(
            widths,
            (n_folded, _FOLD, _FOLD),
            [n_folded, *reversed(filters)],
            [(_unfolded(height), _unfolded(width)), *_sizes(shape, len(filters))],
            shape[0],
            kernel=kernel,
            slope=slope,
            normalise=normalise,
        )


def _doubles(x: Tensor, size: tuple[int, int] | None) -> bool:
    """Whether `size` is twice that of images, whose sides are the same axes in any layout."""
    return size == (2 * x.shape[2], 2 * x.shape[3])


def _enlarged(x: Tensor, size: tuple[int, int] | None, *, stacked: bool) -> Tensor:
    """Repeat pixels; doubling copies views, whose gradient is a plain sum."""
    if size is None:
        return x
    height, width = x.shape[2:4]
    if not _doubles(x, size):
        if not stacked:
            return interpolate(x, size)
        return _members_first(interpolate(_side_by_side(x), size), len(x))
    before, after = x.shape[:2], x.shape[4:]
    expanded = x[:, :, :, None, :, None].expand(*before, height, 2, width, 2, *after)
    return expanded.reshape(*before, *size, *after)


def _sizes(shape: Sequence[int], n_halvings: int) -> list[tuple[int, int]]:
    """Return the sizes of an image that was halved, but for the smallest; the whole is last."""
    return [(shape[1] >> depth, shape[2] >> depth) for depth in reversed(range(n_halvings))]


def _unfolded(side: int) -> int:
    """Return the side of a folded code, doubled until it is no smaller than `side`."""
    unfolded = _FOLD
    while unfolded < side:
        unfolded *= 2
    return unfolded


def _with_rim_cut(x: Tensor, size: tuple[int, int], *, stacked: bool) -> Tensor:
    """Double pixels and cut a rim off, if that makes an image of `size`; else return them."""
    doubled = 2 * x.shape[2], 2 * x.shape[3]
    down, right = (has - wants for has, wants in zip(doubled, size, strict=True))
    if min(down, right) < 0 or not max(down, right) or size == tuple(x.shape[2:4]):
        return x
    top, left = down // 2, right // 2
    whole = _enlarged(x, doubled, stacked=stacked)
    return whole[:, :, top : top + size[0], left : left + size[1]]


def _planes(x: Tensor) -> Tensor:
    """``(members, n, h, w, c)`` to ``(members, n, c, h, w)``."""
    if not can_fuse(x):
        return x.permute(0, 1, 4, 2, 3)
    members, n, *image, channels = x.shape
    return swapped(x.reshape(members, n, -1, channels)).view(members, n, channels, *image)


def _pixels(x: Tensor) -> Tensor:
    """``(members, n, c, h, w)`` to ``(members, n, h, w, c)``."""
    if not can_fuse(x):
        return x.permute(0, 1, 3, 4, 2)
    members, n, channels, *image = x.shape
    return swapped(x.reshape(members, n, channels, -1)).view(members, n, *image, channels)


def _side_by_side(x: Tensor) -> Tensor:
    """``(members, n, h, w, c)`` to ``(n, members x c, h, w)``."""
    return x.permute(1, 0, 4, 2, 3).flatten(1, 2)


def _members_first(x: Tensor, members: int) -> Tensor:
    """``(n, members x c, h, w)`` to ``(members, n, h, w, c)``."""
    return x.view(len(x), members, -1, *x.shape[2:]).permute(1, 0, 3, 4, 2)


def _autocast(x: Tensor) -> Tensor:
    """Return rows in the dtype that convolutions compute in now, as they lie in memory then."""
    if x.is_cuda and torch.is_autocast_enabled("cuda"):
        dtype = torch.get_autocast_dtype("cuda")
        return x.to(dtype, memory_format=torch.contiguous_format)
    return x


def default_filters(shape: Sequence[int]) -> tuple[int, ...]:
    """Return filters that suit images of any size: halve until a side is 8 pixels or less.

    Examples
    --------
    >>> default_filters((1, 28, 28)), default_filters((3, 64, 64))
    ((16, 32), (32, 64, 128))
    """
    side, width = min(shape[1:]), 16 if shape[0] == 1 else 32
    filters = [width]
    while side >> len(filters) > 8:
        filters.append(min(2 * filters[-1], 256))
    return tuple(filters)


def _smallest(shape: Sequence[int], filters: Sequence[int]) -> tuple[int, int, int]:
    if len(shape) != 3 or min(shape[1:]) >> len(filters) < 1:
        raise ValueError(
            f"{len(filters)} halvings need images (channels, height, width) of at least "
            f"{2 ** len(filters)} pixels per side; got {tuple(shape)}."
        )
    return filters[-1], shape[1] >> len(filters), shape[2] >> len(filters)
