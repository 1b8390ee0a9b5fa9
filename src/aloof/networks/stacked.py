"""Layers of many members on a GPU, with their gradients."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["can_fuse", "fused_convolution", "fused_stage", "linear", "parameters_held"]


class _Holding(threading.local):
    """Whether this thread wants no gradient of parameters."""

    now = False


_HOLDING = _Holding()


@contextmanager
def parameters_held() -> Iterator[None]:
    """Leave gradients of parameters out of a backward pass that only asks for those of inputs.

    torch does so for its own layers; a function of ours is not told what is asked for.
    """
    before, _HOLDING.now = _HOLDING.now, True
    try:
        yield
    finally:
        _HOLDING.now = before


def _learns(ctx: Any, number: int) -> bool:
    """Whether the gradient of a parameter, an input by number, is wanted."""
    return bool(ctx.needs_input_grad[number]) and not _HOLDING.now


def can_fuse(x: Tensor) -> bool:
    """Whether there are kernels for such rows."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and _has_triton()


def _has_triton() -> bool:
    return find_spec("triton") is not None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return each member's rows times its own weight, plus its bias.

    What autograd makes of `torch.baddbmm`, but for the weight's gradient: it is written once,
    in the weight's layout and dtype, where autograd transposes and converts a copy.

    Parameters
    ----------
    x
        ``(members, n, in)``.
    weight
        ``(members, out, in)``.
    bias
        ``(members, out)`` or None.
    """
    if torch.is_autocast_enabled("cuda"):
        x = x.to(torch.get_autocast_dtype("cuda"))
    result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


def fused_convolution(
    x: Tensor, weight: Tensor, bias: Tensor, *, doubles: bool = False
) -> Tensor:
    """Return the padded convolution of ``(members, n, h, w, in)``.

    Parameters
    ----------
    x
        Rows.
    weight
        ``(members, out, in, k, k)``.
    bias
        ``(members, out)``.
    doubles
        Whether each pixel is first repeated 2x2 times.
    """
    result: Tensor = _Convolution.apply(  # type: ignore[no-untyped-call]
        x.contiguous(), weight, bias, doubles
    )
    return result


def fused_stage(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    gain: Tensor | None,
    shift: Tensor | None,
    *,
    statistics: tuple[Tensor, Tensor] | None,
    eps: float,
    slope: float,
    pool: bool,
    doubles: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return convolution, batch normalisation, leaky ReLU and pooling, and the statistics.

    Parameters
    ----------
    x, weight, bias, doubles
        As in `fused_convolution`.
    gain, shift, eps
        Of the normalisation, ``(members, out)``; None: there is none.
    statistics
        Mean and variance to normalise by, ``(members, out)``; None: those of the rows.
    slope
        Of the leaky ReLU below zero.
    pool
        Whether to take the largest of each 2x2 window.

    Returns
    -------
    The result, and mean and variance it was normalised by, ``(members, out)``.
    """
    out, mean, variance = _Stage.apply(  # type: ignore[no-untyped-call]
        x.contiguous(), weight, bias, gain, shift, statistics, eps, slope, pool, doubles
    )
    return out, mean, variance


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        own = weight.to(x.dtype)
        ctx.save_for_backward(x, own)
        ctx.dtype = weight.dtype
        if bias is None:
            return torch.bmm(x, own.mT)
        return torch.baddbmm(bias.to(x.dtype).unsqueeze(-2), x, own.mT)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, own = ctx.saved_tensors
        d_x = d_weight = d_bias = None
        if ctx.needs_input_grad[0]:
            d_x = torch.bmm(gradient, own)
        if _learns(ctx, 1):
            d_weight = _product(gradient.mT, x, ctx.dtype)
        if _learns(ctx, 2):
            d_bias = gradient.sum(1, dtype=ctx.dtype)
        return d_x, d_weight, d_bias


def _product(a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a batched product in `dtype`, without a copy where torch can do that."""
    if a.dtype == dtype:
        return torch.bmm(a, b)
    if a.is_cuda and dtype == torch.float32 and hasattr(torch.ops.aten.bmm, "dtype"):
        return torch.bmm(a, b, out_dtype=dtype)
    return torch.bmm(a, b).to(dtype)


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, doubles: bool) -> Tensor:
        filters = ctx.filters = _Filters(weight.shape[-1], doubles)
        taps = filters.taps(weight, x.dtype)
        ctx.save_for_backward(x, taps)
        return filters.convolve(x, taps, bias)[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        x, taps = ctx.saved_tensors
        d_x, d_weight = _convolution_gradients(ctx, x, taps, gradient)
        d_bias = gradient.sum((1, 2, 3), dtype=torch.float32) if _learns(ctx, 2) else None
        return d_x, d_weight, d_bias, None


class _Stage(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        gain: Tensor | None,
        shift: Tensor | None,
        statistics: tuple[Tensor, Tensor] | None,
        eps: float,
        slope: float,
        pool: bool,
        doubles: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:
        from aloof.networks import _kernels

        filters = ctx.filters = _Filters(weight.shape[-1], doubles)
        taps = filters.taps(weight, x.dtype)
        own = gain is not None and statistics is None
        y, total, square = filters.convolve(x, taps, bias, sums=own)
        mean, variance = torch.zeros_like(bias), torch.ones_like(bias)
        scale, offset, spread = torch.ones_like(bias), torch.zeros_like(bias), variance
        if own:
            n_pixels = y[0].numel() // y.shape[-1]
            mean = total / n_pixels
            variance = (square / n_pixels - mean * mean).clamp(min=0)
        elif statistics is not None:
            mean, variance = (part.clone() for part in statistics)
        if gain is not None and shift is not None:
            spread = (variance + eps).rsqrt()
            scale = gain * spread
            offset = shift - mean * scale
        out = _kernels.activate(y, scale, offset, slope=slope, pool=pool)
        ctx.save_for_backward(x, taps, y, scale, offset, mean, spread)
        ctx.slope, ctx.pool = slope, pool
        ctx.normalises, ctx.own = gain is not None, own
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from aloof.networks import _kernels

        x, taps, y, scale, offset, mean, spread = ctx.saved_tensors
        gradient = gradient.contiguous()
        how = {"slope": ctx.slope, "pool": ctx.pool}
        tilt = level = torch.zeros_like(mean)
        d_bias = d_gain = d_shift = None
        if ctx.normalises or _learns(ctx, 2):
            total, product = _kernels.sum_gradient(y, gradient, scale, offset, **how)
            d_bias = total
        if ctx.normalises:
            d_gain, d_shift = (product - mean * total) * spread, total
            d_bias = scale * total
        if ctx.own:
            n_pixels = y[0].numel() // y.shape[-1]
            tilt = scale * spread * d_gain / n_pixels
            level = scale * d_shift / n_pixels - tilt * mean
            d_bias = torch.zeros_like(total)  # the mean takes it away
        d_y = _kernels.activate_backward(y, gradient, scale, offset, tilt, level, **how)
        d_x, d_weight = _convolution_gradients(ctx, x, taps, d_y)
        return d_x, d_weight, d_bias, d_gain, d_shift, None, None, None, None, None


def _convolution_gradients(
    ctx: Any, x: Tensor, taps: Tensor, gradient: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    filters: _Filters = ctx.filters
    d_x = filters.input_gradient(taps, gradient) if ctx.needs_input_grad[0] else None
    d_weight = filters.weight_gradient(x, gradient) if _learns(ctx, 1) else None
    return d_x, d_weight


@dataclass(frozen=True)
class _Filters:
    """Which pixels the filters of a convolution meet.

    Attributes
    ----------
    size
        Side of a filter.
    doubles
        Whether pixels are doubled first; the filters are then folded into smaller ones for
        the four corners of a doubled pixel, see `aloof.networks._kernels.convolution`.
    """

    size: int
    doubles: bool

    @property
    def pad(self) -> int:
        """Return how many pixels above and to the left are met."""
        pad = (self.size - 1) // 2
        return (pad + 1) // 2 if self.doubles else pad

    @property
    def kernel(self) -> int:
        """Return the side of the filters that pixels are multiplied with."""
        if not self.doubles:
            return self.size
        return (self.size - (self.size - 1) // 2) // 2 + self.pad + 1

    @property
    def side(self) -> int | None:
        """Return how many taps a corner has in height and width, if it has not all."""
        return self.kernel - 1 if self.doubles and self.size % 4 == 3 else None

    def taps(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Return weights ``(members, out, in, size, size)`` as ``(members, taps, in, out)``."""
        members, n_out, n_in, *_ = weight.shape
        taps = weight.permute(0, 3, 4, 2, 1).reshape(members, self.size**2, n_in * n_out)
        if self.doubles:
            with torch.autocast(weight.device.type, enabled=False):  # sums, then rounding
                taps = _folding(self.size, self.kernel, self.pad, weight.device) @ taps
            taps = taps.view(members, 4, self.kernel**2, n_in, n_out).permute(0, 2, 3, 1, 4)
        return taps.reshape(members, self.kernel**2, n_in, -1).to(dtype).contiguous()

    def convolve(
        self, x: Tensor, taps: Tensor, bias: Tensor, *, sums: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `aloof.networks._kernels.convolve` does."""
        from aloof.networks import _kernels

        return _kernels.convolve(
            x, taps, bias, pad=self.pad, sums=sums, doubles=self.doubles, side=self.side
        )

    def input_gradient(self, taps: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of the pixels."""
        from aloof.networks import _kernels

        turned = taps.flip(1).transpose(2, 3).contiguous()
        pad = self.kernel - 1 - self.pad
        return _kernels.convolve(
            gradient, turned, None, pad=pad, halves=self.doubles, side=self.side
        )[0]

    def weight_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of the weights."""
        from aloof.networks import _kernels

        found = _kernels.convolve_weight(
            x, gradient, kernel=self.kernel, pad=self.pad, doubles=self.doubles, side=self.side
        )
        members, _, n_in, n_out = found.shape
        if self.doubles:
            n_out //= 4
            found = found.view(members, self.kernel**2, n_in, 4, n_out)
            found = found.permute(0, 3, 1, 2, 4).reshape(members, -1, n_in * n_out)
            with torch.autocast(x.device.type, enabled=False):
                found = _folding(self.size, self.kernel, self.pad, x.device).mT @ found
        found = found.reshape(members, self.size, self.size, n_in, n_out)
        return found.permute(0, 4, 3, 1, 2)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _folding(size: int, kernel: int, pad: int, device: torch.device) -> Tensor:
    """Return which weights of a filter are added up in each corner and tap.

    A matrix ``(4 kernel^2, size^2)`` of zeros and ones. It is made once: a step that is
    recorded cannot bring it to the GPU.
    """
    return _made_folding(size, kernel, pad, device)


@cache
def _made_folding(size: int, kernel: int, pad: int, device: torch.device) -> Tensor:
    offsets = torch.arange(size) - (size - 1) // 2
    corners = torch.arange(2)[:, None]
    met = torch.div(corners + offsets, 2, rounding_mode="floor") + pad
    side = (met[:, None] == torch.arange(kernel)[:, None]).float()
    both = torch.einsum("atd,bse->abtsde", side, side)
    return both.reshape(4 * kernel**2, size**2).to(device)
