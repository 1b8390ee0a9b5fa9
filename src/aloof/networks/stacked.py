"""A convolutional stage of many members, on a GPU, with its gradient."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

__all__ = ["can_fuse", "fused_convolution", "fused_stage"]


def can_fuse(x: Tensor) -> bool:
    """Whether there are kernels for such rows."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and _has_triton()


def _has_triton() -> bool:
    return find_spec("triton") is not None


def fused_convolution(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return the padded convolution of ``(members, n, h, w, in)``.

    Parameters
    ----------
    x
        Rows.
    weight
        ``(members, out, in, k, k)``.
    bias
        ``(members, out)``.
    """
    result: Tensor = _Convolution.apply(x.contiguous(), weight, bias)  # type: ignore[no-untyped-call]
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
) -> tuple[Tensor, Tensor, Tensor]:
    """Return convolution, batch normalisation, leaky ReLU and pooling, and the statistics.

    Parameters
    ----------
    x, weight, bias
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
        x.contiguous(), weight, bias, gain, shift, statistics, eps, slope, pool
    )
    return out, mean, variance


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        from aloof.networks import _kernels

        taps, pad = _taps(weight, x.dtype)
        ctx.save_for_backward(x, taps)
        ctx.kernel, ctx.pad = weight.shape[-1], pad
        return _kernels.convolve(x, taps, bias, pad=pad)[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        x, taps = ctx.saved_tensors
        d_x, d_weight = _convolution_backward(ctx, x, taps, gradient)
        d_bias = gradient.sum((1, 2, 3), dtype=torch.float32)
        return d_x, d_weight, d_bias if ctx.needs_input_grad[2] else None


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
    ) -> tuple[Tensor, Tensor, Tensor]:
        from aloof.networks import _kernels

        taps, pad = _taps(weight, x.dtype)
        own = gain is not None and statistics is None
        y, total, square = _kernels.convolve(x, taps, bias, pad=pad, sums=own)
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
        ctx.kernel, ctx.pad, ctx.slope, ctx.pool = weight.shape[-1], pad, slope, pool
        ctx.normalises, ctx.own = gain is not None, own
        ctx.mark_non_differentiable(mean, variance)
        return out, mean, variance

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        from aloof.networks import _kernels

        x, taps, y, scale, offset, mean, spread = ctx.saved_tensors
        gradient = gradient.contiguous()
        how = {"slope": ctx.slope, "pool": ctx.pool}
        total, product = _kernels.sum_gradient(y, gradient, scale, offset, **how)
        tilt = level = torch.zeros_like(mean)
        d_bias, d_gain, d_shift = total, None, None
        if ctx.normalises:
            d_gain, d_shift = (product - mean * total) * spread, total
            d_bias = scale * total
        if ctx.own:
            n_pixels = y[0].numel() // y.shape[-1]
            tilt = scale * spread * d_gain / n_pixels
            level = scale * d_shift / n_pixels - tilt * mean
            d_bias = torch.zeros_like(total)  # the mean takes it away
        d_y = _kernels.activate_backward(y, gradient, scale, offset, tilt, level, **how)
        d_x, d_weight = _convolution_backward(ctx, x, taps, d_y)
        return d_x, d_weight, d_bias, d_gain, d_shift, None, None, None, None


def _convolution_backward(
    ctx: Any, x: Tensor, taps: Tensor, gradient: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    from aloof.networks import _kernels

    d_x = d_weight = None
    if ctx.needs_input_grad[0]:
        turned = taps.flip(1).transpose(2, 3).contiguous()
        d_x = _kernels.convolve(gradient, turned, None, pad=ctx.kernel - 1 - ctx.pad)[0]
    if ctx.needs_input_grad[1]:
        found = _kernels.convolve_weight(x, gradient, kernel=ctx.kernel, pad=ctx.pad)
        members, _, n_in, n_out = found.shape
        found = found.reshape(members, ctx.kernel, ctx.kernel, n_in, n_out)
        d_weight = found.permute(0, 4, 3, 1, 2)
    return d_x, d_weight


def _taps(weight: Tensor, dtype: torch.dtype) -> tuple[Tensor, int]:
    """Return weights as ``(members, taps, in, out)``, and the padding above and to the left."""
    members, n_out, n_in, kernel, _ = weight.shape
    taps = weight.permute(0, 3, 4, 2, 1).reshape(members, kernel**2, n_in, n_out)
    return taps.to(dtype).contiguous(), (kernel - 1) // 2
