"""What follows a convolution: normalise, leaky ReLU, 2x2 maximum; and its gradient."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["activate", "activate_backward", "sum_gradient"]


@triton.jit
def _window(
    y, number, real, c, scale, shift, slope,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, POOL: tl.constexpr, CORNER: tl.constexpr,
):  # fmt: skip
    """Load one of a window's four pixels; return it, its activation, its place and if it is."""
    if POOL:
        rows: tl.constexpr = (H + 1) // 2
        cols: tl.constexpr = (W + 1) // 2
        r = (number // cols) % rows * 2 + CORNER // 2
        s = number % cols * 2 + CORNER % 2
        there = real & (r < H) & (s < W)
        at = ((number // (rows * cols)) * H + r) * W + s
    else:
        there = real
        at = number
    mask = there[:, None] & (c < C)[None, :]
    where = at[:, None] * C + c[None, :]
    value = tl.load(y + where, mask=mask, other=0.0).to(tl.float32)
    linear = value * scale[None, :] + shift[None, :]
    return value, tl.where(linear > 0, linear, slope * linear), where, mask


@triton.jit
def _gradients(a0, a1, a2, a3, gradient, slope, POOL: tl.constexpr):
    """Return the gradient of the four pixels before the activation: the largest has it."""
    g0 = tl.where(a0 > 0, gradient, slope * gradient)
    if POOL:
        largest = tl.maximum(tl.maximum(a0, a1), tl.maximum(a2, a3))
        is0 = a0 == largest
        is1 = (a1 == largest) & (is0 == 0)
        is2 = (a2 == largest) & (is0 == 0) & (is1 == 0)
        is3 = (is0 == 0) & (is1 == 0) & (is2 == 0)
        g0 = tl.where(is0, g0, 0.0)
        g1 = tl.where(is1, tl.where(a1 > 0, gradient, slope * gradient), 0.0)
        g2 = tl.where(is2, tl.where(a2 > 0, gradient, slope * gradient), 0.0)
        g3 = tl.where(is3, tl.where(a3 > 0, gradient, slope * gradient), 0.0)
        return g0, g1, g2, g3
    return g0, g0, g0, g0


@triton.jit
def _output_place(number, real, H: tl.constexpr, W: tl.constexpr, POOL: tl.constexpr):
    """Return where a window's result lies, and whether there is one: odd rims have none."""
    if POOL:
        rows: tl.constexpr = (H + 1) // 2
        cols: tl.constexpr = (W + 1) // 2
        r = (number // cols) % rows
        s = number % cols
        there = real & (2 * r + 1 < H) & (2 * s + 1 < W)
        return ((number // (rows * cols)) * (H // 2) + r) * (W // 2) + s, there
    return number, real


@triton.jit
def _activate(
    y, out, scales, shifts, slope, n_windows, n_in, n_out,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, BQ: tl.constexpr,
    POOL: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    number = tl.program_id(0) * BQ + tl.arange(0, BQ)
    real = number < n_windows
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    scale = tl.load(scales + member * C + c, mask=c < C, other=0.0)
    shift = tl.load(shifts + member * C + c, mask=c < C, other=0.0)
    y += member * n_in * C
    _, best, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 0)
    if POOL:
        _, a1, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 1)
        _, a2, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 2)
        _, a3, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 3)
        best = tl.maximum(tl.maximum(best, a1), tl.maximum(a2, a3))
    place, there = _output_place(number, real, H, W, POOL)
    where = member * n_out * C + place[:, None] * C + c[None, :]
    mask = there[:, None] & (c < C)[None, :]
    tl.store(out + where, best.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _sum_gradient(
    y, g, scales, shifts, sums, products, slope, n_windows, n_in, n_out, SPAN,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, BQ: tl.constexpr,
    POOL: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    scale = tl.load(scales + member * C + c, mask=c < C, other=0.0)
    shift = tl.load(shifts + member * C + c, mask=c < C, other=0.0)
    y += member * n_in * C
    g += member * n_out * C
    total = tl.zeros((BQ, BC), tl.float32)  # added up once, at the end
    product = tl.zeros((BQ, BC), tl.float32)
    first = tl.program_id(0) * SPAN
    last = tl.minimum(first + SPAN, n_windows)
    for start in range(first, last, BQ):
        number = start + tl.arange(0, BQ)
        real = number < last
        place, there = _output_place(number, real, H, W, POOL)
        mask = there[:, None] & (c < C)[None, :]
        gradient = tl.load(g + place[:, None] * C + c[None, :], mask=mask, other=0.0)
        gradient = gradient.to(tl.float32)
        v0, a0, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 0)
        v1, a1, v2, a2, v3, a3 = v0, a0, v0, a0, v0, a0
        if POOL:
            v1, a1, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 1)
            v2, a2, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 2)
            v3, a3, _, _ = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 3)
        g0, g1, g2, g3 = _gradients(a0, a1, a2, a3, gradient, slope, POOL)
        total += g0
        product += g0 * v0
        if POOL:
            total += g1 + g2 + g3
            product += g1 * v1 + g2 * v2 + g3 * v3
    place = (tl.program_id(0) * tl.num_programs(1) + member) * C + c
    tl.store(sums + place, tl.sum(total, 0), mask=c < C)
    tl.store(products + place, tl.sum(product, 0), mask=c < C)


@triton.jit
def _activate_backward(
    y, g, out, scales, shifts, tilts, offsets, slope, n_windows, n_in, n_out,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, BQ: tl.constexpr,
    POOL: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    number = tl.program_id(0) * BQ + tl.arange(0, BQ)
    real = number < n_windows
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    scale = tl.load(scales + member * C + c, mask=c < C, other=0.0)
    shift = tl.load(shifts + member * C + c, mask=c < C, other=0.0)
    tilt = tl.load(tilts + member * C + c, mask=c < C, other=0.0)[None, :]
    offset = tl.load(offsets + member * C + c, mask=c < C, other=0.0)[None, :]
    factor = scale[None, :]
    y += member * n_in * C
    g += member * n_out * C
    out += member * n_in * C
    place, there = _output_place(number, real, H, W, POOL)
    mask = there[:, None] & (c < C)[None, :]
    gradient = tl.load(g + place[:, None] * C + c[None, :], mask=mask, other=0.0)
    gradient = gradient.to(tl.float32)
    v0, a0, w0, m0 = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 0)
    v1, a1, w1, m1, v2, a2, w2, m2, v3, a3, w3, m3 = (
        v0,
        a0,
        w0,
        m0,
        v0,
        a0,
        w0,
        m0,
        v0,
        a0,
        w0,
        m0,
    )
    if POOL:
        v1, a1, w1, m1 = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 1)
        v2, a2, w2, m2 = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 2)
        v3, a3, w3, m3 = _window(y, number, real, c, scale, shift, slope, H, W, C, POOL, 3)
    g0, g1, g2, g3 = _gradients(a0, a1, a2, a3, gradient, slope, POOL)
    kind = out.dtype.element_ty
    tl.store(out + w0, (factor * g0 - tilt * v0 - offset).to(kind), mask=m0)
    if POOL:
        tl.store(out + w1, (factor * g1 - tilt * v1 - offset).to(kind), mask=m1)
        tl.store(out + w2, (factor * g2 - tilt * v2 - offset).to(kind), mask=m2)
        tl.store(out + w3, (factor * g3 - tilt * v3 - offset).to(kind), mask=m3)


def activate(y: Tensor, scale: Tensor, shift: Tensor, *, slope: float, pool: bool) -> Tensor:
    """Return the leaky ReLU of ``scale * y + shift``, and of each 2x2 window the largest.

    `scale` and `shift` are ``(members, channels)``, float32.
    """
    members, n, height, width, channels = y.shape
    shape = (members, n, height // 2, width // 2, channels) if pool else y.shape
    out = y.new_empty(shape)
    windows, block, strip, columns = _windows(y, pool)
    _activate[(triton.cdiv(windows, block), members, columns)](
        y, out, scale, shift, slope, windows, n * height * width, out[0].numel() // channels,
        height, width, channels, strip, block, pool,
    )  # fmt: skip
    return out


def sum_gradient(
    y: Tensor, gradient: Tensor, scale: Tensor, shift: Tensor, *, slope: float, pool: bool
) -> tuple[Tensor, Tensor]:
    """Return the sums over pixels of d = dL/d(scale y + shift), and of d times y."""
    members, n, height, width, channels = y.shape
    windows, block, strip, columns = _windows(y, pool)
    block = max(4, block // 2)  # two sums for each
    programs = max(1, 2112 // (members * columns))
    span = triton.cdiv(triton.cdiv(windows, programs), block) * block
    splits = triton.cdiv(windows, span)
    parts = y.new_empty(2, splits, members, channels, dtype=torch.float32)
    _sum_gradient[(splits, members, columns)](
        y, gradient, scale, shift, parts[0], parts[1], slope, windows, n * height * width,
        gradient[0].numel() // channels, span,
        height, width, channels, strip, block, pool,
    )  # fmt: skip
    total, product = parts.sum(1)
    return total, product


def activate_backward(
    y: Tensor,
    gradient: Tensor,
    scale: Tensor,
    shift: Tensor,
    tilt: Tensor,
    offset: Tensor,
    *,
    slope: float,
    pool: bool,
) -> Tensor:
    """Return ``scale * d - tilt * y - offset``, with d as in `sum_gradient`."""
    _, n, height, width, channels = y.shape
    out = torch.empty_like(y)
    windows, block, strip, columns = _windows(y, pool)
    _activate_backward[(triton.cdiv(windows, block), len(y), columns)](
        y, gradient, out, scale, shift, tilt, offset, slope, windows, n * height * width,
        gradient[0].numel() // channels,
        height, width, channels, strip, block, pool,
    )  # fmt: skip
    return out


def _windows(y: Tensor, pool: bool) -> tuple[int, int, int, int]:
    """Return how many windows there are; windows and channels of a program; columns of them."""
    _, n, height, width, channels = y.shape
    windows = n * ((height + 1) // 2) * ((width + 1) // 2) if pool else n * height * width
    strip = min(int(triton.next_power_of_2(channels)), 128)
    size = (1024 if pool else 4096) // strip
    return windows, max(4, size), strip, triton.cdiv(channels, strip)
