"""Rows that are seen in part, so that networks do not rely on single numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from aloof.training.seeds import generator

__all__ = ["drop_"]

_APART = 2**62  # from the seeds of networks that draw numbers themselves


def drop_(rows: Tensor, share: float, seeds: Sequence[int]) -> None:
    """Set numbers of a batch to zero, in place.

    Parameters
    ----------
    rows
        ``(members, rows, ...)``.
    share
        The chance of each number.
    seeds
        One for each member: what it loses does not depend on what it is stacked with.
    """
    if not share:
        return
    chance = torch.empty(rows.shape, device=rows.device)
    for own, seed in zip(chance, seeds, strict=True):
        private = generator((seed + _APART) % 2**63, rows.device)
        torch.rand(own.shape, generator=private, out=own)
    rows.masked_fill_(chance < share, 0)
