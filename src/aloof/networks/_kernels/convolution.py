"""Convolutions of many members, and the gradient of their weights.

A convolution is a matrix product whose left side is never written down: each program gathers
the pixels it needs.

A convolution of an image whose pixels were doubled (each repeated 2x2 times) is one of the
small image: a filter of 5x5 meets only 3x3 different pixels, though other sums of its weights
in each of the four corners of a doubled pixel. So it has four times the channels, 36 products
where there were 100, and the doubled image is never written. Its result is *folded*: an image
``(2 h, 2 w, c)``, addressed as a small one ``(h, w, 4 c)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["convolve", "convolve_weight"]


# How an image lies in memory; the last two are twice as high and wide as they are addressed.
_PLAIN, _FOLDED, _PLANAR = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)


@triton.jit
def _pixel(row, col, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, LAYOUT: tl.constexpr):
    """Return where a pixel begins; `row` counts through all images."""
    if LAYOUT == _FOLDED:
        return (4 * row * W + 2 * col) * (C // 4)
    if LAYOUT == _PLANAR:
        return (row // H * (C // 4) * H + row % H) * 4 * W + 2 * col
    return (row * W + col) * C


@triton.jit
def _channel(i, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, LAYOUT: tl.constexpr):
    """Return where a channel lies from there: the lower corners are a large row further."""
    if LAYOUT == _FOLDED:
        return i // (C // 2) * (2 * W * (C // 4)) + i % (C // 2)
    if LAYOUT == _PLANAR:
        corner = i // (C // 4)
        return i % (C // 4) * (4 * H * W) + corner // 2 * (2 * W) + corner % 2
    return i


@triton.jit
def _weight(
    tap, i, o,
    CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    """Return where a weight lies; turned, the last tap is the first and `out` comes first."""
    if TURNED:
        return ((K * K - 1 - tap) * CO + o) * CI + i
    return (tap * CI + i) * CO + o


@triton.jit
def _convolve(
    x, w, b, y, sums, squares, P,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PAD: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr, BIAS: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
    LAYOUT_X: tl.constexpr, LAYOUT_Y: tl.constexpr, SIDE: tl.constexpr, TURNED: tl.constexpr,
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
            at = _pixel(line[:, None] + down[None, :], c, H, W, CI, LAYOUT_X)
            at += _channel(i % CI, H, W, CI, LAYOUT_X)[None, :]
            left = tl.load(x + at, mask=inside, other=0.0)
            there = (i < K * K * CI)[:, None] & known[None, :]
            where = _weight(
                (i // CI)[:, None], (i % CI)[:, None], o[None, :], CI, CO, K, TURNED
            )
            tap = tl.load(w + where, mask=there, other=0.0)
            total = tl.dot(left, tap, total, input_precision=PRECISION)
    else:
        # One loop over taps and blocks of channels: loads of the next overlap with products.
        # A corner of a folded image has SIDE x SIDE of the K x K taps.
        corners: tl.constexpr = 4 if LAYOUT_X != _PLAIN and SIDE < K else 1
        n_blocks: tl.constexpr = CI // corners // BC
        for step in range(corners * SIDE * SIDE * n_blocks):
            tap_down = step // n_blocks % (SIDE * SIDE) // SIDE
            tap_right = step // n_blocks % SIDE
            first = step % n_blocks * BC
            if SIDE < K and LAYOUT_Y != _PLAIN:
                corner = tl.program_id(1) * BN // (CO // 4)
                tap_down += corner // 2
                tap_right += corner % 2
            if SIDE < K and LAYOUT_X != _PLAIN:
                corner = step // (SIDE * SIDE * n_blocks)
                first += corner * (CI // 4)
                tap_down += 1 - corner // 2
                tap_right += 1 - corner % 2
            down = tap_down - PAD
            right = tap_right - PAD
            inside = real & (row + down >= 0) & (row + down < H)
            inside = inside & (col + right >= 0) & (col + right < W)
            at = _pixel(line + down, col + right, H, W, CI, LAYOUT_X)
            at += _channel(first, H, W, CI, LAYOUT_X)
            # Said, because the compiler cannot tell where pixels are folded: without it, loads
            # are narrow and overlap with nothing, which doubles the time.
            at = tl.multiple_of(at, 8)
            i = tl.arange(0, BC)
            left = tl.load(x + at[:, None] + i[None, :], mask=inside[:, None], other=0.0)
            number = tap_down * K + tap_right
            where = _weight(number, (first + i)[:, None], o[None, :], CI, CO, K, TURNED)
            tap = tl.load(w + where, mask=known[None, :], other=0.0)
            total = tl.dot(left, tap, total, input_precision=PRECISION)
    if BIAS:
        n_biases: tl.constexpr = CO // 4 if LAYOUT_Y != _PLAIN else CO
        bias = tl.load(b + member * n_biases + o % n_biases, mask=known, other=0.0)
        total += bias.to(tl.float32)[None, :]
    if SUMS:
        counted = tl.where(real[:, None], total, 0.0)
        place = (tl.program_id(0) * tl.num_programs(2) + member) * CO + o
        tl.store(sums + place, tl.sum(counted, 0), mask=known)
        tl.store(squares + place, tl.sum(counted * counted, 0), mask=known)
    out = y + member * P * CO + _pixel(line, col, H, W, CO, LAYOUT_Y)[:, None]
    out += _channel(o, H, W, CO, LAYOUT_Y)[None, :]
    tl.store(out, total.to(y.dtype.element_ty), mask=real[:, None] & known[None, :])


@triton.jit
def _convolve_weight(
    x, g, out, P, SPAN,
    H: tl.constexpr, W: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, K: tl.constexpr,
    PAD: tl.constexpr, BP: tl.constexpr, BI: tl.constexpr, BN: tl.constexpr,
    FLAT: tl.constexpr, PRECISION: tl.constexpr, LAYOUT: tl.constexpr, SIDE: tl.constexpr,
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
    at_channel = _channel(o, H, W, CO, LAYOUT)
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
        place = _pixel(line, col, H, W, CO, LAYOUT)[:, None] + at_channel[None, :]
        gradient = tl.load(g + place, mask=there, other=0.0)
        total = tl.dot(tl.trans(left), gradient, total, input_precision=PRECISION)
    place = (tl.program_id(0) * tl.num_programs(2) + member) * K * K * CI + i[:, None]
    there = (i < K * K * CI)[:, None] & known[None, :]
    tl.store(out + place * CO + o[None, :], total, mask=there)


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
    turned: bool = False,
    planar: bool = False,
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
    turned
        Whether the weight is that of a convolution whose gradient this is: its taps are met
        from last to first, and it is ``(members, taps, out, in)``.
    planar
        Whether the image twice as high and wide is not folded but ``(channels, height,
        width)``; it has fewer than 8 channels.

    Returns
    -------
    The result ``(members, n, h, w, out)``, the larger image where it doubles; and for each
    member and channel the sum and the sum of squares (empty where not asked for).
    """
    members, n, *image = x.shape
    height, width, n_in = [*image[1:], image[0]] if halves and planar else image
    if halves:
        height, width, n_in = height // 2, width // 2, 4 * n_in
    n_out, kernel = weight.shape[2 if turned else 3], round(weight.shape[1] ** 0.5)
    pixels = n * height * width
    flat = _is_flat(n_in) or (halves and n_in < 32)
    tile = _tile(n_in, n_out // 4 if doubles and side else n_out, turned=turned)
    if x.dtype == torch.float32:  # twice the memory, three times the products
        tile = _Tile(128, min(tile.channels, 64), min(tile.depth, 32), 4)
    if halves:  # upper and lower corners lie apart
        tile = replace(tile, depth=max(16, min(tile.depth, n_in // 2)))
    whole = (n_in // 4) % tile.depth == 0 if halves else (n_out // 4) % tile.channels == 0
    if side is None or not whole:  # a block with several corners needs all taps
        side = kernel
    if flat:
        depth, wide = min(32, _power(kernel**2 * n_in)), tile.channels > 64
        tile = _Tile(128 if wide else 256, tile.channels, depth, 8 if wide else 4)
    grid = (triton.cdiv(pixels, tile.pixels), triton.cdiv(n_out, tile.channels), members)
    # Parameters are views of a matrix of all parameters: members lie far apart.
    bias = None if bias is None else bias.contiguous()
    shape = (2 * height, 2 * width, n_out // 4) if doubles else (height, width, n_out)
    if doubles and planar:
        shape = (n_out // 4, 2 * height, 2 * width)
    plain, layout = _PLAIN.value, _PLANAR.value if planar else _FOLDED.value
    y = x.new_empty(members, n, *shape)
    parts = x.new_empty(2, grid[0] if sums else 0, members, n_out, dtype=torch.float32)
    _convolve[grid](
        x, weight, x if bias is None else bias, y, parts[0], parts[1], pixels,
        height, width, n_in, n_out, kernel, pad, tile.pixels, tile.depth,
        tile.channels, flat, bias is not None, sums, _precision(x),
        layout if halves else plain, layout if doubles else plain, side, turned,
        num_warps=tile.warps, num_stages=tile.stages,
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
    planar: bool = False,
) -> Tensor:
    """Return the gradient of `convolve`'s weight, ``(members, taps, in, out)``, float32."""
    members, n, height, width, n_in = x.shape
    pixels = n * height * width
    n_out = gradient[0].numel() // pixels
    layout = (_PLANAR.value if planar else _FOLDED.value) if doubles else _PLAIN.value
    if n_out < 16 <= n_in and not doubles:
        # The same product the other way round has the longer sides.
        turned = convolve_weight(gradient, x, kernel=kernel, pad=kernel - 1 - pad)
        return turned.flip(1).transpose(2, 3)
    flat = _is_flat(n_in)
    tile = _weight_tile(n_in, n_out // 4 if doubles and side else n_out, kernel, x.dtype)
    if side is None or flat or (n_out // 4) % tile.channels:
        side = kernel
    blocks = triton.cdiv(kernel**2 * n_in, tile.depth) * triton.cdiv(n_out, tile.channels)
    programs = 4224 if n_in < 64 else 1056
    splits = min(triton.cdiv(programs, blocks * members), triton.cdiv(pixels, 8 * tile.pixels))
    span = triton.cdiv(triton.cdiv(pixels, splits), tile.pixels) * tile.pixels
    splits = triton.cdiv(pixels, span)
    out = x.new_empty(splits, members, kernel**2, n_in, n_out, dtype=torch.float32)
    _convolve_weight[(splits, blocks, members)](
        x, gradient, out, pixels, span, height, width, n_in, n_out, kernel, pad,
        tile.pixels, tile.depth, tile.channels, flat, _precision(x), layout, side,
        num_warps=tile.warps, num_stages=tile.stages,
    )  # fmt: skip
    return out.sum(0) if splits > 1 else out[0]


@dataclass(frozen=True)
class _Tile:
    """What a program multiplies at a time.

    Attributes
    ----------
    pixels, channels
        Pixels, and channels of the result.
    depth
        Channels of `x`; of a flat product, taps times channels.
    warps, stages
        Warps, and how many tiles are loaded at a time.
    """

    pixels: int
    channels: int
    depth: int
    warps: int
    stages: int = 3


def _tile(n_in: int, n_out: int, *, turned: bool) -> _Tile:
    """Return the fastest tile of those tried on an H200 with the paper's networks."""
    depth = min(n_in, 64)
    if n_out <= 32:
        return _Tile(256, _power(n_out), min(n_in, 32), 4)
    if n_out <= 64:
        return _Tile(128, 64, depth, 4)
    if turned and n_out >= 256 <= n_in:
        return _Tile(128, 256, depth, 8)
    return _Tile(128, 128, depth, 4)


def _weight_tile(n_in: int, n_out: int, kernel: int, dtype: torch.dtype) -> _Tile:
    """Return that of a gradient of weights: pixels are what is summed over."""
    channels = min(_power(n_out), 128)
    if _is_flat(n_in):
        depth = min(128, _power(kernel**2 * n_in))
        pixels = 128 if n_in < 64 else 64
        return _Tile(pixels, channels, depth, *((4, 3) if depth == 128 else (2, 2)))
    if n_in < 64:
        return _Tile(128, channels, n_in, 2, 2)
    if n_in < 128 or channels < 128 or dtype == torch.float32:  # takes twice the memory
        return _Tile(64, channels, 64, 4)
    return _Tile(64, 256, 128, 8) if n_out % 256 == 0 else _Tile(64, 128, 128, 4)


def _is_flat(n_in: int) -> bool:
    return n_in < 16 or n_in & (n_in - 1) != 0


def _power(n: int) -> int:
    return max(16, int(triton.next_power_of_2(n)))


def _precision(x: Tensor) -> Any:
    """Return how float32 is multiplied: in three parts, which keeps its precision."""
    return "tf32x3" if x.dtype == torch.float32 else "tf32"
