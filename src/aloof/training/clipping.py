"""Gradient clipping for stacked members."""

from __future__ import annotations

from torch import Tensor

__all__ = ["clip_rows_"]


def clip_rows_(gradient: Tensor, max_norm: float) -> None:
    """Scale each member's gradient, a row, down to a norm of at most `max_norm`."""
    norms = gradient.norm(dim=1, keepdim=True)
    gradient.mul_((max_norm / (norms + 1e-6)).clamp_(max=1.0))
