"""The rows that all members index: where they lie, and how a batch of them is taken."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["gather", "place"]

# Of the device's free memory; the rest is for networks and activations.
_LARGEST_SHARE = 0.5


def place(data: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Return the parts on `device`, or where they are if they would fill it.

    Parts that stay behind may be files mapped into memory: a batch at a time is read.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        if sum(part.nbytes for part in data) > _LARGEST_SHARE * free:
            return list(data)
    return [part.to(device) for part in data]


def gather(data: Sequence[Tensor], rows: Tensor) -> list[Tensor]:
    """Return some rows of each part, on the device of `rows`.

    Rows that are bytes are pixels: they come as float32 in [0, 1], and take a quarter of the
    memory until then. Context comes as it is.

    Examples
    --------
    >>> image = torch.tensor([[0, 51, 255]], dtype=torch.uint8)
    >>> gather([image], torch.tensor([0]))
    [tensor([[0.0000, 0.2000, 1.0000]])]
    """
    first, *context = (_taken(part, rows) for part in data)
    return [first.float() / 255 if first.dtype == torch.uint8 else first, *context]


def _taken(part: Tensor, rows: Tensor) -> Tensor:
    if part.device == rows.device:
        return part[rows]
    return part[rows.to(part.device)].to(rows.device, non_blocking=True)
