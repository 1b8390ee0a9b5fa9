"""Patches of normal images that are remembered: others are compared with the nearest."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["BLOCK", "coreset", "distances", "oddness", "spreads"]

BLOCK = 2048
_PROJECTED = 48  # dimensions that distances are measured in while patches are chosen
_NEAREST = 3  # of a bank that a row is compared with
_AROUND = 5  # others of the bank that are near one of it
_NARROWEST = 0.1  # of what is usual: what lies closer together does so by chance


def coreset(rows: Tensor, n: int, seed: int) -> NDArray[np.int64]:
    """Return rows that lie near all others: each next one is the farthest from those chosen.

    Distances are measured in a random projection, which keeps them nearly as they are.

    Parameters
    ----------
    rows
        ``(n_rows, size)``.
    n
        How many to choose at most.
    seed
        The same seed, the same rows.
    """
    if len(rows) <= n:
        return np.arange(len(rows))
    random = torch.Generator().manual_seed(seed)
    size = rows.shape[1]
    if size > _PROJECTED:
        turn = torch.randn(size, _PROJECTED, generator=random) / _PROJECTED**0.5
        rows = rows.float() @ turn.to(rows.device)
    squares = rows.square().sum(1)
    place = int(torch.randint(len(rows), (), generator=random))
    nearest = torch.full_like(squares, torch.inf)
    chosen = np.empty(n, np.int64)
    for k in range(n):
        chosen[k] = place
        far = squares - 2 * (rows @ rows[place]) + squares[place]
        nearest = torch.minimum(nearest, far)
        place = int(nearest.argmax())
    return chosen


def distances(
    rows: Tensor,
    bank: Tensor,
    *,
    own: Tensor | None = None,
    owners: Tensor | None = None,
    block: int = BLOCK,
) -> Tensor:
    """Return the mean square over the features of the distance to the nearest in a bank.

    Parameters
    ----------
    rows
        ``(n, size)``.
    bank
        ``(n_bank, size)``.
    own, owners
        The image each row is from, and each of the bank: rows are not compared with patches
        of their own image.
    block
        How many rows are compared at a time.
    """
    squares = bank.square().sum(1)
    found = []
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        far = torch.addmm(squares, some, bank.T, alpha=-2)
        if own is not None and owners is not None:
            far[own[start : start + block, None] == owners] = torch.inf
        # Which is nearest is found by products; how near, by differences, which round less.
        apart = (some - bank.index_select(0, far.argmin(1))).square().mean(1)
        if own is not None:
            apart[far.amin(1) == torch.inf] = torch.inf
        found.append(apart)
    return torch.cat(found)


def spreads(bank: Tensor) -> Tensor:
    """Return how far each of a bank is from the nearest others, on average.

    Where normal patches differ much, what is kept of them lies far apart.
    """
    n = min(_AROUND, len(bank) - 1)
    if n < 1:
        return torch.ones(len(bank), device=bank.device)
    found = [
        torch.cdist(part, bank).topk(n + 1, 1, largest=False).values[:, 1:].mean(1)
        for part in torch.split(bank, BLOCK)
    ]
    apart: Tensor = torch.cat(found) / float(bank.shape[1]) ** 0.5
    return apart.clamp_min(max(_NARROWEST * float(apart.median()), 1e-6))


def oddness(
    rows: Tensor,
    bank: Tensor,
    spread: Tensor,
    *,
    own: Tensor | None = None,
    owners: Tensor | None = None,
    block: int = BLOCK,
) -> Tensor:
    """Return how far rows are from the nearest in a bank, for how far apart those lie.

    Parameters
    ----------
    rows, bank, own, owners, block
        As in `distances`.
    spread
        Of the bank; see `spreads`.
    """
    squares, n = bank.square().sum(1), min(_NEAREST, len(bank))
    found = []
    for start in range(0, len(rows), block):
        some = rows[start : start + block]
        far = torch.addmm(squares, some, bank.T, alpha=-2)
        if own is not None and owners is not None:
            far[own[start : start + block, None] == owners] = torch.inf
        lowest, nearest = far.topk(n, 1, largest=False)
        near = bank.index_select(0, nearest.flatten()).reshape(-1, n, bank.shape[1])
        apart = (some[:, None] - near).square().mean(2).sqrt().mean(1)
        wide = spread.index_select(0, nearest.flatten()).reshape(-1, n).mean(1)
        odd = apart / wide
        if own is not None:
            odd[lowest[:, -1] == torch.inf] = torch.inf
        found.append(odd)
    return torch.cat(found)
