"""Gradient clipping for stacked members."""

from __future__ import annotations

from torch import Tensor

__all__ = ["clip_rows_", "clipped_shares"]


def clip_rows_(gradient: Tensor, max_norm: float) -> None:
    """Scale each member's gradient, a row, down to a norm of at most `max_norm`."""
    gradient.mul_(clipped_shares(gradient.norm(dim=1, keepdim=True), max_norm))


def clipped_shares(norms: Tensor, max_norm: float) -> Tensor:
    """Return what to scale gradients of these norms by: 1 where none is too large."""
    return (max_norm / (norms + 1e-6)).clamp_(max=1.0)
