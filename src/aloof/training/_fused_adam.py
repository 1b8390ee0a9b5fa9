"""Adam of many members on a GPU: one pass over memory, in Triton.

torch's own takes one gradient for all, with each member's norm clipped already. To join the
parts of a gradient, and to scale its rows, takes as long again as Adam itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

__all__ = ["fused_adam_"]

_BLOCK = 1024


@triton.jit
def _adam(
    matrix, mean, square, gradient, shares, steps, first, n, width,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = i < n
    place = member * width + first + i
    g = tl.load(gradient + member * n + i, mask=real, other=0.0) * tl.load(shares + member)
    m = tl.load(mean + place, mask=real, other=0.0)
    v = tl.load(square + place, mask=real, other=0.0)
    m += (1 - BETA1) * (g - m)
    v = BETA2 * v + (1 - BETA2) * g * g
    p = tl.load(matrix + place, mask=real, other=0.0)
    p -= tl.load(steps) * m / (tl.sqrt(v) * tl.load(steps + 1) + EPS)
    tl.store(mean + place, m, mask=real)
    tl.store(square + place, v, mask=real)
    tl.store(matrix + place, p, mask=real)


def fused_adam_(
    matrix: Tensor,
    mean: Tensor,
    square: Tensor,
    gradients: Sequence[Tensor],
    shares: Tensor,
    steps: Tensor,
    *,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Update a matrix and its moments in place.

    Parameters
    ----------
    matrix, mean, square
        ``(members, n)``, float32.
    gradients
        Of the matrix, ``(members, columns)`` each, in the order of columns.
    shares
        How much of a member's gradient counts, ``(members,)``.
    steps
        The rate over its bias correction, and one over the root of that of squares, ``(2,)``.
    betas, eps
        As in Adam.
    """
    first = 0
    for gradient in gradients:
        n = gradient[0].numel()
        _adam[(triton.cdiv(n, _BLOCK), len(matrix))](
            matrix, mean, square, gradient.contiguous(), shares, steps,
            first, n, matrix.shape[1], *betas, eps, _BLOCK,
        )  # fmt: skip
        first += n
    if first != matrix.shape[1]:
        raise ValueError(f"Gradients have {first} columns, the matrix {matrix.shape[1]}.")
