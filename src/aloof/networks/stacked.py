"""Layers of many members on a GPU, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from aloof.exceptions import DeviceWarning, warn_caller
from aloof.networks._compiling import constant

__all__ = [
    "can_fuse",
    "fused_activation",
    "fused_convolution",
    "fused_stage",
    "linear",
    "runs_triton",
    "swapped",
]

# Bytes that the largest tile takes, three of them loaded at a time.
_SHARED_MEMORY = 160_000


def _wanted(ctx: Any, number: int) -> bool:
    """Whether this backward pass asks for the gradient of an input, by number.

    `ctx.needs_input_grad` says whether an input has a gradient at all; a call of
    `torch.autograd.grad` may ask for that of others only. torch's own layers then leave out
    what nobody asked for, by what the engine knows of the pass that it runs now, in whichever
    thread that is.
    """
    if not ctx.needs_input_grad[number] or torch.compiler.is_compiling():
        return bool(ctx.needs_input_grad[number])
    # Inputs without a gradient have no node here, those that are no tensors not even a place.
    nodes = [node for node, _ in ctx.next_functions if node is not None]
    try:
        return torch._C._will_engine_execute_node(nodes[sum(ctx.needs_input_grad[:number])])
    except RuntimeError:  # torch answers so of a leaf whose gradient is to be returned
        return True


def can_fuse(x: Tensor) -> bool:
    """Whether there are kernels for such rows, on such a GPU."""
    return x.is_cuda and x.dtype in (torch.float32, torch.bfloat16) and _has_room(x.device)


@constant
def _has_room(device: torch.device) -> bool:
    """Whether the tiles of the kernels fit on a GPU: an A100 and larger, no consumer's card."""
    found = torch.cuda.get_device_properties(device)
    room: int = getattr(found, "shared_memory_per_block_optin", 0)
    return room >= _SHARED_MEMORY and runs_triton(device)


@cache
def runs_triton(device: torch.device) -> bool:
    """Whether Triton is installed, and compiles for a GPU: tried once, on a single number."""
    if find_spec("triton") is None:
        return False
    try:
        from aloof.networks import _kernels

        with torch.cuda.device(device):
            _kernels.inside_out(torch.zeros(1, 1, 1, 1, device=device), torch.float32)
    except torch.OutOfMemoryError:  # says nothing about Triton
        raise
    except Exception as error:  # of Triton, of a compiler that it calls, or of the driver
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        warn_caller(
            f"Triton cannot compile for {device}: {reason}. Networks train without kernels of "
            "ours, which takes longer. Triton needs a C compiler, such as gcc.",
            DeviceWarning,
        )
        return False
    return True


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
    x: Tensor, weight: Tensor, bias: Tensor, *, doubles: bool = False, planar: bool = False
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
    planar
        Whether the result is ``(members, n, out, h, w)`` in memory; only of doubled pixels,
        and for fewer than 8 channels.
    """
    if planar and not (doubles and weight.shape[1] < 8):
        raise ValueError(
            "Planar images are made of doubled pixels, with fewer than 8 channels."
        )
    result: Tensor = _Convolution.apply(  # type: ignore[no-untyped-call]
        x.contiguous(), weight, bias, doubles, planar
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


def fused_activation(
    x: Tensor,
    gain: Tensor,
    shift: Tensor,
    *,
    statistics: tuple[Tensor, Tensor] | None,
    eps: float,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return batch normalisation and leaky ReLU of ``(members, n, width)``, and the statistics.

    Parameters
    ----------
    x
        Rows.
    gain, shift, statistics, eps, slope
        As in `fused_stage`.

    Returns
    -------
    What `fused_stage` does.
    """
    pixels = x.contiguous()[:, :, None, None]  # images of one pixel
    out, mean, variance = _Activation.apply(  # type: ignore[no-untyped-call]
        pixels, gain, shift, statistics, eps, slope
    )
    return out.flatten(2), mean, variance


def swapped(x: Tensor) -> Tensor:
    """Return ``(members, n, a, b)`` as contiguous ``(members, n, b, a)``, and its gradient so.

    Tiles are read and written in the order of memory, where torch's copy reads across it.
    """
    result: Tensor = _Swap.apply(x)  # type: ignore[no-untyped-call]
    return result


class _Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _swapped(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _swapped(gradient)


def _swapped(x: Tensor) -> Tensor:
    from aloof.networks import _kernels

    members, n, a, b = x.shape
    rows = x.contiguous().view(members * n, a, 1, b)
    return _kernels.inside_out(rows, x.dtype).view(members, n, b, a)


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
        if _wanted(ctx, 0):
            d_x = torch.bmm(gradient, own)
        if _wanted(ctx, 1):
            d_weight = _product(gradient.mT, x, ctx.dtype)
        if _wanted(ctx, 2):
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
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, doubles: bool, planar: bool
    ) -> Tensor:
        from aloof.networks import _kernels

        filters = ctx.filters = _kernels.Filters(weight.shape[-1], doubles, planar)
        taps = filters.taps(weight, x.dtype)
        ctx.save_for_backward(x, taps)
        return filters.convolve(x, taps, bias)[0]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradient.contiguous()
        x, taps = ctx.saved_tensors
        d_x, d_weight = _convolution_gradients(ctx, x, taps, gradient)
        d_bias = None
        if _wanted(ctx, 2):
            pixels = (1, 3, 4) if ctx.filters.planar else (1, 2, 3)
            d_bias = gradient.sum(pixels, dtype=torch.float32)
        return d_x, d_weight, d_bias, None, None


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

        filters = ctx.filters = _kernels.Filters(weight.shape[-1], doubles)
        taps = filters.taps(weight, x.dtype)
        own = gain is not None and statistics is None
        y, total, square = filters.convolve(x, taps, bias, sums=own)
        if own:
            statistics = _moments(total, square, y[0].numel() // y.shape[-1])
        norm = _Norm.of(bias, gain, shift, statistics, eps, own=own)
        ctx.save_for_backward(x, taps, y, *norm.tensors)
        return _activated(ctx, y, norm, slope, pool)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, taps, y, *tensors = ctx.saved_tensors
        wants = _wanted(ctx, 2)
        d_y, d_bias, d_gain, d_shift = _activation_gradients(ctx, gradient, y, tensors, wants)
        d_x, d_weight = _convolution_gradients(ctx, x, taps, d_y)
        return d_x, d_weight, d_bias, d_gain, d_shift, None, None, None, None, None


class _Activation(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        y: Tensor,
        gain: Tensor,
        shift: Tensor,
        statistics: tuple[Tensor, Tensor] | None,
        eps: float,
        slope: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        own = statistics is None
        if own:
            rows = y.flatten(2)
            mean = rows.mean(1, dtype=torch.float32)
            spread = torch.linalg.vector_norm(rows - mean.unsqueeze(1), dim=1)
            statistics = mean, spread.square() / rows.shape[1]
        norm = _Norm.of(gain, gain, shift, statistics, eps, own=own)
        ctx.save_for_backward(y, *norm.tensors)
        return _activated(ctx, y, norm, slope, pool=False)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        y, *tensors = ctx.saved_tensors
        found = _activation_gradients(ctx, gradient, y, tensors, wants=False)
        d_y, _no_bias, d_gain, d_shift = found
        return d_y, d_gain, d_shift, None, None, None


@dataclass(frozen=True)
class _Norm:
    """What normalisation makes of a value: ``scale * value + offset``, each (members, out).

    Attributes
    ----------
    scale, offset
        Of values.
    mean, variance, spread
        Of the statistics; the spread is one over the standard deviation.
    exists
        Whether there is normalisation at all.
    own
        Whether the statistics are those of the rows, and change with them.
    """

    scale: Tensor
    offset: Tensor
    mean: Tensor
    variance: Tensor
    spread: Tensor
    exists: bool
    own: bool

    @classmethod
    def of(
        cls,
        like: Tensor,
        gain: Tensor | None,
        shift: Tensor | None,
        statistics: tuple[Tensor, Tensor] | None,
        eps: float,
        *,
        own: bool,
    ) -> _Norm:
        """Return what to do; without a gain, nothing."""
        if gain is None or shift is None or statistics is None:
            zero, one = torch.zeros_like(like), torch.ones_like(like)
            return cls(one, zero, zero, one.clone(), one, exists=False, own=False)
        mean, variance = statistics if own else (part.clone() for part in statistics)
        spread = (variance + eps).rsqrt()
        scale = gain * spread
        return cls(scale, shift - mean * scale, mean, variance, spread, exists=True, own=own)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return what the gradient needs."""
        return self.scale, self.offset, self.mean, self.spread


def _moments(total: Tensor, square: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Return mean and variance from the sum and the sum of squares of `n` values."""
    mean = total / n
    return mean, (square / n - mean * mean).clamp(min=0)


def _activated(
    ctx: Any, y: Tensor, norm: _Norm, slope: float, pool: bool
) -> tuple[Tensor, Tensor, Tensor]:
    from aloof.networks import _kernels

    ctx.slope, ctx.pool, ctx.normalises, ctx.own = slope, pool, norm.exists, norm.own
    ctx.mark_non_differentiable(norm.mean, norm.variance)
    out = _kernels.activate(y, norm.scale, norm.offset, slope=slope, pool=pool)
    return out, norm.mean, norm.variance


def _activation_gradients(
    ctx: Any, gradient: Tensor, y: Tensor, tensors: Sequence[Tensor], wants: bool
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Return the gradients of `y`, of a bias in it if wanted, of gain and shift."""
    from aloof.networks import _kernels

    scale, offset, mean, spread = tensors
    gradient = gradient.contiguous()
    how = {"slope": ctx.slope, "pool": ctx.pool}
    tilt = level = torch.zeros_like(mean)
    d_bias: Tensor | None = None
    d_gain: Tensor | None = None
    d_shift: Tensor | None = None
    if ctx.normalises or wants:
        total, product = _kernels.sum_gradient(y, gradient, scale, offset, **how)
        d_bias = total
        if ctx.normalises:
            d_gain, d_shift = (product - mean * total) * spread, total
            d_bias = scale * total
            if ctx.own:
                n_pixels = y[0].numel() // y.shape[-1]
                tilt = scale * spread * d_gain / n_pixels
                level = d_bias / n_pixels - tilt * mean
                d_bias = torch.zeros_like(total)  # the mean takes it away
    d_y = _kernels.activate_backward(y, gradient, scale, offset, tilt, level, **how)
    return d_y, d_bias, d_gain, d_shift


def _convolution_gradients(
    ctx: Any, x: Tensor, taps: Tensor, gradient: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    filters = ctx.filters
    d_x = filters.input_gradient(taps, gradient) if _wanted(ctx, 0) else None
    d_weight = filters.weight_gradient(x, gradient) if _wanted(ctx, 1) else None
    return d_x, d_weight
