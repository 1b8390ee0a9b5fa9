"""GPU kernels for a convolutional stage of many members at once, in Triton.

Tensors are ``(members, rows, height, width, channels)``. A convolution is a matrix product
whose left side is never written down: each program gathers the pixels it needs. Batch
normalisation needs sums over all pixels: the convolution adds them up while it has its result
at hand; what follows it (normalise, leaky ReLU, 2x2 maximum) is one pass over memory, and its
gradient two.

The module is imported where there is a GPU. ``TRITON_INTERPRET=1`` runs it on a CPU, slowly,
which is how it is tested.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["activate", "activate_backward", "convolve", "convolve_weight", "sum_gradient"]


@triton.jit
def _convolve(
    x, w, b, y, sums, squares, P,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PAD: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr, BIAS: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(2).to(tl.int64)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    col = p % W
    row = (p // W) % H
    real = p < P
    known = o < CO
    x += member * P * CI
    w += member * K * K * CI * CO
    total = tl.zeros((BP, BN), tl.float32)
    if FLAT:  # few channels: taps and channels are one axis
        for start in tl.static_range(0, K * K * CI, BC):
            i = start + tl.arange(0, BC)
            down = i // CI // K - PAD
            right = i // CI % K - PAD
            r = row[:, None] + down[None, :]
            c = col[:, None] + right[None, :]
            inside = real[:, None] & (i < K * K * CI)[None, :]
            inside = inside & (r >= 0) & (r < H) & (c >= 0) & (c < W)
            at = (p[:, None] + (down * W + right)[None, :]) * CI + (i % CI)[None, :]
            left = tl.load(x + at, mask=inside, other=0.0)
            there = (i < K * K * CI)[:, None] & known[None, :]
            tap = tl.load(w + i[:, None] * CO + o[None, :], mask=there, other=0.0)
            total = tl.dot(left, tap, total, input_precision=PRECISION)
    else:
        for number in range(K * K):
            down = number // K - PAD
            right = number % K - PAD
            inside = real & (row + down >= 0) & (row + down < H)
            inside = inside & (col + right >= 0) & (col + right < W)
            at = (p + down * W + right) * CI
            for start in range(0, CI, BC):
                i = start + tl.arange(0, BC)
                left = tl.load(x + at[:, None] + i[None, :], mask=inside[:, None], other=0.0)
                where = (number * CI + i)[:, None] * CO + o[None, :]
                tap = tl.load(w + where, mask=known[None, :], other=0.0)
                total = tl.dot(left, tap, total, input_precision=PRECISION)
    if BIAS:
        bias = tl.load(b + member * CO + o, mask=known, other=0.0).to(tl.float32)
        total += bias[None, :]
    if SUMS:
        counted = tl.where(real[:, None], total, 0.0)
        place = (tl.program_id(0) * tl.num_programs(2) + member) * CO + o
        tl.store(sums + place, tl.sum(counted, 0), mask=known)
        tl.store(squares + place, tl.sum(counted * counted, 0), mask=known)
    out = y + member * P * CO + p[:, None] * CO + o[None, :]
    tl.store(out, total.to(y.dtype.element_ty), mask=real[:, None] & known[None, :])


@triton.jit
def _convolve_weight(
    x, g, out, P, SPAN,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PAD: tl.constexpr, BP: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(2).to(tl.int64)
    first = tl.program_id(0) * SPAN
    last = tl.minimum(first + SPAN, P)
    n_blocks: tl.constexpr = (K * K * CI + BI - 1) // BI
    block = tl.program_id(1) % n_blocks
    o = (tl.program_id(1) // n_blocks) * BN + tl.arange(0, BN)
    i = block * BI + tl.arange(0, BI)
    known = o < CO
    x += member * P * CI
    g += member * P * CO
    total = tl.zeros((BI, BN), tl.float32)
    for start in range(first, last, BP):
        p = start + tl.arange(0, BP)
        col = p % W
        row = (p // W) % H
        real = p < last
        if FLAT:
            down = i // CI // K - PAD
            right = i // CI % K - PAD
            r = row[:, None] + down[None, :]
            c = col[:, None] + right[None, :]
            inside = real[:, None] & (i < K * K * CI)[None, :]
            inside = inside & (r >= 0) & (r < H) & (c >= 0) & (c < W)
            at = (p[:, None] + (down * W + right)[None, :]) * CI + (i % CI)[None, :]
            left = tl.load(x + at, mask=inside, other=0.0)
        else:  # one tap in the whole block
            number = (block * BI) // CI
            below = number // K - PAD
            beside = number % K - PAD
            within = real & (row + below >= 0) & (row + below < H)
            within = within & (col + beside >= 0) & (col + beside < W)
            at = ((p + below * W + beside) * CI)[:, None] + (i % CI)[None, :]
            left = tl.load(x + at, mask=within[:, None], other=0.0)
        there = real[:, None] & known[None, :]
        gradient = tl.load(g + p[:, None] * CO + o[None, :], mask=there, other=0.0)
        total = tl.dot(tl.trans(left), gradient, total, input_precision=PRECISION)
    place = (tl.program_id(0) * tl.num_programs(2) + member) * K * K * CI + i[:, None]
    there = (i < K * K * CI)[:, None] & known[None, :]
    tl.store(out + place * CO + o[None, :], total, mask=there)


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
    c = tl.arange(0, BC)
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
    c = tl.arange(0, BC)
    scale = tl.load(scales + member * C + c, mask=c < C, other=0.0)
    shift = tl.load(shifts + member * C + c, mask=c < C, other=0.0)
    y += member * n_in * C
    g += member * n_out * C
    total = tl.zeros((BC,), tl.float32)
    product = tl.zeros((BC,), tl.float32)
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
        total += tl.sum(g0, 0)
        product += tl.sum(g0 * v0, 0)
        if POOL:
            total += tl.sum(g1 + g2 + g3, 0)
            product += tl.sum(g1 * v1 + g2 * v2 + g3 * v3, 0)
    place = (tl.program_id(0) * tl.num_programs(1) + member) * C + c
    tl.store(sums + place, total, mask=c < C)
    tl.store(products + place, product, mask=c < C)


@triton.jit
def _activate_backward(
    y, g, out, scales, shifts, tilts, offsets, slope, n_windows, n_in, n_out,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, BQ: tl.constexpr,
    POOL: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    number = tl.program_id(0) * BQ + tl.arange(0, BQ)
    real = number < n_windows
    c = tl.arange(0, BC)
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


def convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, *, pad: int, sums: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Convolve ``(members, n, h, w, in)``, and add up the result over all pixels if asked.

    Parameters
    ----------
    x
        Contiguous.
    weight
        ``(members, taps, in, out)``, contiguous, of the dtype of `x`.
    bias
        ``(members, out)`` or None.
    pad
        Pixels added above and to the left; the result has the size of `x`.
    sums
        Whether to return sums.

    Returns
    -------
    The result ``(members, n, h, w, out)``, and for each member and channel the sum and the
    sum of squares (empty where not asked for).
    """
    members, n, height, width, n_in = x.shape
    n_out, kernel = weight.shape[-1], round(weight.shape[1] ** 0.5)
    pixels = n * height * width
    flat = _is_flat(n_in)
    tile = min(_power(n_out), 128)
    block, warps = (256, 4) if tile <= 32 else (128, 4 if tile <= 64 else 8)
    grid = (triton.cdiv(pixels, block), triton.cdiv(n_out, tile), members)
    # Parameters are views of a matrix of all parameters: members lie far apart.
    bias = None if bias is None else bias.contiguous()
    y = x.new_empty(members, n, height, width, n_out)
    parts = x.new_empty(2, grid[0] if sums else 0, members, n_out, dtype=torch.float32)
    _convolve[grid](
        x, weight, x if bias is None else bias, y, parts[0], parts[1], pixels,
        height, width, n_in, n_out, kernel, pad, block,
        min(32, _power(kernel**2 * n_in)) if flat else min(n_in, 64),
        tile, flat, bias is not None, sums, _precision(x), num_warps=warps, num_stages=3,
    )  # fmt: skip
    total, square = parts.sum(1)
    return y, total, square


def convolve_weight(x: Tensor, gradient: Tensor, *, kernel: int, pad: int) -> Tensor:
    """Return the gradient of `convolve`'s weight, ``(members, taps, in, out)``, float32."""
    members, n, height, width, n_in = x.shape
    n_out, pixels = gradient.shape[-1], n * height * width
    if n_out < 16 <= n_in:  # the same product the other way round has the longer sides
        turned = convolve_weight(gradient, x, kernel=kernel, pad=kernel - 1 - pad)
        return turned.flip(1).transpose(2, 3)
    flat = _is_flat(n_in)
    rows = min(32, _power(kernel**2 * n_in)) if flat else min(n_in, 64)
    tile = min(_power(n_out), 128)
    blocks = triton.cdiv(kernel**2 * n_in, rows) * triton.cdiv(n_out, tile)
    block, warps, stages, programs = (128, 2, 2, 4224) if n_in < 64 else (64, 4, 4, 1056)
    splits = min(triton.cdiv(programs, blocks * members), triton.cdiv(pixels, 8 * block))
    span = triton.cdiv(triton.cdiv(pixels, splits), block) * block
    splits = triton.cdiv(pixels, span)
    out = x.new_empty(splits, members, kernel**2, n_in, n_out, dtype=torch.float32)
    _convolve_weight[(splits, blocks, members)](
        x, gradient, out, pixels, span, height, width, n_in, n_out, kernel, pad,
        block, rows, tile, flat, _precision(x), num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out.sum(0)


def activate(y: Tensor, scale: Tensor, shift: Tensor, *, slope: float, pool: bool) -> Tensor:
    """Return the leaky ReLU of ``scale * y + shift``, and of each 2x2 window the largest.

    `scale` and `shift` are ``(members, channels)``, float32.
    """
    members, n, height, width, channels = y.shape
    shape = (members, n, height // 2, width // 2, channels) if pool else y.shape
    out = y.new_empty(shape)
    windows, block = _windows(y, pool)
    grid = (triton.cdiv(windows, block), members)
    _activate[grid](
        y, out, scale, shift, slope, windows, n * height * width, out[0].numel() // channels,
        height, width, channels, triton.next_power_of_2(channels), block, pool,
    )  # fmt: skip
    return out


def sum_gradient(
    y: Tensor, gradient: Tensor, scale: Tensor, shift: Tensor, *, slope: float, pool: bool
) -> tuple[Tensor, Tensor]:
    """Return the sums over pixels of d = dL/d(scale y + shift), and of d times y."""
    members, n, height, width, channels = y.shape
    windows, block = _windows(y, pool)
    span = triton.cdiv(triton.cdiv(windows, max(1, 2112 // members)), block) * block
    splits = triton.cdiv(windows, span)
    parts = y.new_empty(2, splits, members, channels, dtype=torch.float32)
    _sum_gradient[(splits, members)](
        y, gradient, scale, shift, parts[0], parts[1], slope, windows, n * height * width,
        gradient[0].numel() // channels, span,
        height, width, channels, triton.next_power_of_2(channels), block, pool,
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
    windows, block = _windows(y, pool)
    _activate_backward[(triton.cdiv(windows, block), len(y))](
        y, gradient, out, scale, shift, tilt, offset, slope, windows, n * height * width,
        gradient[0].numel() // channels,
        height, width, channels, triton.next_power_of_2(channels), block, pool,
    )  # fmt: skip
    return out


def _windows(y: Tensor, pool: bool) -> tuple[int, int]:
    """Return how many windows there are, and how many a program takes."""
    _, n, height, width, channels = y.shape
    windows = n * ((height + 1) // 2) * ((width + 1) // 2) if pool else n * height * width
    size = (1024 if pool else 4096) // triton.next_power_of_2(channels)
    return windows, max(4, size)


def _is_flat(n_in: int) -> bool:
    return n_in < 16 or n_in & (n_in - 1) != 0


def _power(n: int) -> int:
    return max(16, int(triton.next_power_of_2(n)))


def _precision(x: Tensor) -> Any:
    """Return how float32 is multiplied: in three parts, which keeps its precision."""
    return "tf32x3" if x.dtype == torch.float32 else "tf32"
