"""GPU kernels for a convolutional stage of many members at once, in Triton.

Tensors are ``(members, rows, height, width, channels)``. A convolution is a matrix product
whose left side is never written down: each program gathers the pixels it needs. Batch
normalisation needs sums over all pixels: the convolution adds them up while it has its result
at hand; what follows it (normalise, leaky ReLU, 2x2 maximum) is one pass over memory, and its
gradient two.

A convolution of an image whose pixels were doubled (each repeated 2x2 times) is one of the
small image: a filter of 5x5 meets only 3x3 different pixels, though other sums of its weights
in each of the four corners of a doubled pixel. So it has four times the channels, 36 products
where there were 100, and the doubled image is never written. Its result is *folded*: an image
``(2 h, 2 w, c)``, addressed as a small one ``(h, w, 4 c)``.

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
def _pixel(row, col, W: tl.constexpr, C: tl.constexpr, FOLDED: tl.constexpr):
    """Return where a pixel begins; `row` counts through all images."""
    if FOLDED:
        return (4 * row * W + 2 * col) * (C // 4)
    return (row * W + col) * C


@triton.jit
def _channel(i, W: tl.constexpr, C: tl.constexpr, FOLDED: tl.constexpr):
    """Return where a channel lies from there: the lower corners are a large row further."""
    if FOLDED:
        return i // (C // 2) * (2 * W * (C // 4)) + i % (C // 2)
    return i


@triton.jit
def _convolve(
    x, w, b, y, sums, squares, P,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PAD: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr, BIAS: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
    FOLDED_X: tl.constexpr, FOLDED_Y: tl.constexpr, SIDE: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(2).to(tl.int64)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    col = p % W
    line = p // W
    row = line % H
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
            at = _pixel(line[:, None] + down[None, :], c, W, CI, FOLDED_X)
            at += _channel(i % CI, W, CI, FOLDED_X)[None, :]
            left = tl.load(x + at, mask=inside, other=0.0)
            there = (i < K * K * CI)[:, None] & known[None, :]
            tap = tl.load(w + i[:, None] * CO + o[None, :], mask=there, other=0.0)
            total = tl.dot(left, tap, total, input_precision=PRECISION)
    else:
        # One loop over taps and blocks of channels: loads of the next overlap with products.
        # A corner of a folded image has SIDE x SIDE of the K x K taps.
        corners: tl.constexpr = 4 if FOLDED_X and SIDE < K else 1
        n_blocks: tl.constexpr = CI // corners // BC
        for step in range(corners * SIDE * SIDE * n_blocks):
            tap_down = step // n_blocks % (SIDE * SIDE) // SIDE
            tap_right = step // n_blocks % SIDE
            first = step % n_blocks * BC
            if SIDE < K and FOLDED_Y:
                corner = tl.program_id(1) * BN // (CO // 4)
                tap_down += corner // 2
                tap_right += corner % 2
            if SIDE < K and FOLDED_X:
                corner = step // (SIDE * SIDE * n_blocks)
                first += corner * (CI // 4)
                tap_down += 1 - corner // 2
                tap_right += 1 - corner % 2
            down = tap_down - PAD
            right = tap_right - PAD
            inside = real & (row + down >= 0) & (row + down < H)
            inside = inside & (col + right >= 0) & (col + right < W)
            at = _pixel(line + down, col + right, W, CI, FOLDED_X)
            at += _channel(first, W, CI, FOLDED_X)
            i = tl.arange(0, BC)
            left = tl.load(x + at[:, None] + i[None, :], mask=inside[:, None], other=0.0)
            where = ((tap_down * K + tap_right) * CI + first + i)[:, None] * CO + o[None, :]
            tap = tl.load(w + where, mask=known[None, :], other=0.0)
            total = tl.dot(left, tap, total, input_precision=PRECISION)
    if BIAS:
        n_biases: tl.constexpr = CO // 4 if FOLDED_Y else CO
        bias = tl.load(b + member * n_biases + o % n_biases, mask=known, other=0.0)
        total += bias.to(tl.float32)[None, :]
    if SUMS:
        counted = tl.where(real[:, None], total, 0.0)
        place = (tl.program_id(0) * tl.num_programs(2) + member) * CO + o
        tl.store(sums + place, tl.sum(counted, 0), mask=known)
        tl.store(squares + place, tl.sum(counted * counted, 0), mask=known)
    out = y + member * P * CO + _pixel(line, col, W, CO, FOLDED_Y)[:, None]
    out += _channel(o, W, CO, FOLDED_Y)[None, :]
    tl.store(out, total.to(y.dtype.element_ty), mask=real[:, None] & known[None, :])


@triton.jit
def _convolve_weight(
    x, g, out, P, SPAN,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PAD: tl.constexpr, BP: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr, PRECISION: tl.constexpr, FOLDED: tl.constexpr, SIDE: tl.constexpr,
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
    at_channel = _channel(o, W, CO, FOLDED)
    if SIDE < K:  # a corner of a folded image does not have this tap: nothing to add
        corner = (tl.program_id(1) // n_blocks) * BN // (CO // 4)
        below_corner = block * BI // CI // K - corner // 2
        beside_corner = block * BI // CI % K - corner % 2
        used = (below_corner >= 0) & (below_corner < SIDE)
        used = used & (beside_corner >= 0) & (beside_corner < SIDE)
        last = tl.where(used, last, first)
    total = tl.zeros((BI, BN), tl.float32)
    for start in range(first, last, BP):
        p = start + tl.arange(0, BP)
        col = p % W
        line = p // W
        row = line % H
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
        place = _pixel(line, col, W, CO, FOLDED)[:, None] + at_channel[None, :]
        gradient = tl.load(g + place, mask=there, other=0.0)
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


def convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    pad: int,
    sums: bool = False,
    doubles: bool = False,
    halves: bool = False,
    side: int | None = None,
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
    doubles, halves
        Whether the result, or `x`, is an image twice as high and wide, folded: `out`, or
        `in`, of the weight is four times its channels.
    side
        Of a folded image, how many of the taps a corner has, in height and width, from the
        first one on in an upper or left corner; the weight of the others is 0. None: all.

    Returns
    -------
    The result ``(members, n, h, w, out)``, and for each member and channel the sum and the
    sum of squares (empty where not asked for).
    """
    members, n, height, width, n_in = x.shape
    if halves:
        height, width, n_in = height // 2, width // 2, 4 * n_in
    n_out, kernel = weight.shape[-1], round(weight.shape[1] ** 0.5)
    pixels = n * height * width
    flat = _is_flat(n_in) or (halves and n_in < 32)
    tile, block, depth, warps = _tiling(n_in, n_out // 4 if doubles and side else n_out)
    if x.dtype == torch.float32:  # twice the memory, three times the products
        tile, block, depth, warps = min(tile, 64), 128, min(depth, 32), 4
    if halves:  # upper and lower corners lie apart
        depth = max(16, min(depth, n_in // 2))
    whole = (n_in // 4) % depth == 0 if halves else (n_out // 4) % tile == 0
    if side is None or not whole:  # a block with several corners needs all taps
        side = kernel
    if flat:
        block, depth, warps = 256, min(32, _power(kernel**2 * n_in)), 4
    grid = (triton.cdiv(pixels, block), triton.cdiv(n_out, tile), members)
    # Parameters are views of a matrix of all parameters: members lie far apart.
    bias = None if bias is None else bias.contiguous()
    shape = (2 * height, 2 * width, n_out // 4) if doubles else (height, width, n_out)
    y = x.new_empty(members, n, *shape)
    parts = x.new_empty(2, grid[0] if sums else 0, members, n_out, dtype=torch.float32)
    _convolve[grid](
        x, weight, x if bias is None else bias, y, parts[0], parts[1], pixels,
        height, width, n_in, n_out, kernel, pad, block, depth,
        tile, flat, bias is not None, sums, _precision(x), halves, doubles, side,
        num_warps=warps, num_stages=3,
    )  # fmt: skip
    total, square = parts.sum(1)
    if doubles:
        total, square = (part.view(members, 4, -1).sum(1) for part in (total, square))
    return y, total, square


def convolve_weight(
    x: Tensor,
    gradient: Tensor,
    *,
    kernel: int,
    pad: int,
    doubles: bool = False,
    side: int | None = None,
) -> Tensor:
    """Return the gradient of `convolve`'s weight, ``(members, taps, in, out)``, float32."""
    members, n, height, width, n_in = x.shape
    n_out, pixels = gradient.shape[-1] * (4 if doubles else 1), n * height * width
    if n_out < 16 <= n_in and not doubles:
        # The same product the other way round has the longer sides.
        turned = convolve_weight(gradient, x, kernel=kernel, pad=kernel - 1 - pad)
        return turned.flip(1).transpose(2, 3)
    flat = _is_flat(n_in)
    rows = min(128, _power(kernel**2 * n_in)) if flat else min(n_in, 64)
    tile = min(_power(n_out // 4 if doubles and side else n_out), 128)
    if side is None or flat or (n_out // 4) % tile:
        side = kernel
    blocks = triton.cdiv(kernel**2 * n_in, rows) * triton.cdiv(n_out, tile)
    block, warps, stages, programs = (128, 2, 2, 4224) if n_in < 64 else (64, 4, 3, 1056)
    if rows == 128:
        warps, stages = 4, 3
    splits = min(triton.cdiv(programs, blocks * members), triton.cdiv(pixels, 8 * block))
    span = triton.cdiv(triton.cdiv(pixels, splits), block) * block
    splits = triton.cdiv(pixels, span)
    out = x.new_empty(splits, members, kernel**2, n_in, n_out, dtype=torch.float32)
    _convolve_weight[(splits, blocks, members)](
        x, gradient, out, pixels, span, height, width, n_in, n_out, kernel, pad,
        block, rows, tile, flat, _precision(x), doubles, side,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out.sum(0) if splits > 1 else out[0]


def _tiling(n_in: int, n_out: int) -> tuple[int, int, int, int]:
    """Return channels and pixels of a program's result, channels of a product, and warps.

    The fastest of those tried on an H200 with the paper's networks.
    """
    if n_out <= 32:
        return _power(n_out), 256, min(n_in, 32), 4
    if n_out <= 64:
        return 64, 128, min(n_in, 64), 4
    if n_out >= 256 <= n_in:
        return 256, 128, min(n_in, 64), 8
    return 128, 256, min(n_in, 64), 8


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


def _is_flat(n_in: int) -> bool:
    return n_in < 16 or n_in & (n_in - 1) != 0


def _power(n: int) -> int:
    return max(16, int(triton.next_power_of_2(n)))


def _precision(x: Tensor) -> Any:
    """Return how float32 is multiplied: in three parts, which keeps its precision."""
    return "tf32x3" if x.dtype == torch.float32 else "tf32"
