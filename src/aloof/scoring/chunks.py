"""The one way rows go through trained networks: in chunks of one size, the last one padded.

A matrix product may round a row differently in a batch of another size; so every chunk has as
many rows as the others, whatever there is to fill it with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.threads import threads_for
from aloof.training.device import on

__all__ = ["RowReader", "in_chunks", "over_rows", "read_one", "read_parts"]

_Rows = NDArray[Any] | Tensor
RowReader = Callable[[slice], _Rows | Sequence[_Rows]]
"""Returns the rows of a slice, ``(n, *shape)``; with their context, if they have any."""


def read_parts(rows: RowReader, chunk: slice) -> list[_Rows]:
    """Return the rows of a slice and their context, as a list."""
    found = rows(chunk)
    return [found] if isinstance(found, np.ndarray | Tensor) else list(found)


def read_one(rows: RowReader, row: int, chunk: slice) -> list[_Rows]:
    """Return one row and its context, whatever slice is asked for."""
    return read_parts(rows, slice(row, row + 1))


def in_chunks(
    rows: RowReader,
    n_rows: int,
    size: int,
    *,
    n_members: int,
    device: torch.device,
    dtype: torch.dtype,
    weights: float = math.inf,
) -> Iterator[tuple[slice, list[Tensor]]]:
    """Yield slices with their rows and context ``(members, size, ...)``, the last one padded.

    Integers (words, say) stay integers. No gradient is kept between the chunks.

    Parameters
    ----------
    rows, n_rows
        What reads them, and how many there are.
    size
        Of a chunk.
    n_members
        Every member sees the same rows.
    device, dtype
        Where and in what to compute.
    weights
        That a row meets: with few, one thread does all.
    """
    for start in range(0, n_rows, size):
        stop = min(start + size, n_rows)
        parts = []
        for block in read_parts(rows, slice(start, stop)):
            x = _padded(block, size)
            x = x.to(device, dtype if x.is_floating_point() else None)
            parts.append(x.expand(n_members, *x.shape))
        with torch.no_grad(), on(device), threads_for(weights * size):
            yield slice(start, stop), parts


def over_rows(
    function: Callable[..., Tensor],
    rows: RowReader,
    n_rows: int,
    size: int,
    *,
    n_members: int,
    device: torch.device,
    dtype: torch.dtype,
) -> NDArray[np.float64]:
    """Return a function of ``(members, n, ...)`` of all rows, ``(members, n_rows, ...)``.

    Parameters
    ----------
    function
        Takes rows and their context.
    rows, n_rows, size, n_members, device, dtype
        As in `in_chunks`.
    """
    found = []
    for chunk, parts in in_chunks(
        rows, n_rows, size, n_members=n_members, device=device, dtype=dtype
    ):
        values = function(*parts)[:, : chunk.stop - chunk.start]
        found.append(values.cpu().double().numpy())
    return np.concatenate(found, 1)


def _padded(block: _Rows, size: int) -> Tensor:
    if isinstance(block, Tensor):
        x = block.new_zeros(size, *block.shape[1:])
        x[: len(block)] = block
        return x
    padded = np.zeros((size, *block.shape[1:]), block.dtype)
    padded[: len(block)] = block
    return torch.from_numpy(padded)
