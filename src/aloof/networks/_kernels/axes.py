"""Axes in another order: filters for a matrix product, pixels for a dense layer."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["inside_out"]


@triton.jit
def _inside_out(
    x, y, stride,
    X: tl.constexpr, Y: tl.constexpr, Z: tl.constexpr, BX: tl.constexpr, BZ: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(0).to(tl.int64)
    middle = tl.program_id(2)
    blocks: tl.constexpr = (Z + BZ - 1) // BZ
    first = ((tl.program_id(1) // blocks) * BX + tl.arange(0, BX))[:, None]
    last = ((tl.program_id(1) % blocks) * BZ + tl.arange(0, BZ))[None, :]
    there = (first < X) & (last < Z)
    tile = tl.load(x + member * stride + (first * Y + middle) * Z + last, mask=there)
    place = member * X * Y * Z + (last * Y + middle) * X + first
    tl.store(y + place, tile.to(y.dtype.element_ty), mask=there)


def inside_out(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ``(members, a, b, c)`` as contiguous ``(members, c, b, a)`` of another dtype.

    Tiles are read and written in the order of memory, where torch's copy reads across it.
    """
    members, outer, middle, inner = x.shape
    if not x[0].is_contiguous():  # parameters are: views of a matrix, members far apart
        x = x.contiguous()
    y = x.new_empty(members, inner, middle, outer, dtype=dtype)
    rows, cols = (min(64, max(16, int(triton.next_power_of_2(n)))) for n in (outer, inner))
    blocks = triton.cdiv(outer, rows) * triton.cdiv(inner, cols)
    _inside_out[(members, blocks, middle)](
        x, y, x.stride(0), outer, middle, inner, rows, cols, num_warps=4
    )
    return y
