"""How much a network computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

__all__ = ["count_multiplications"]


def count_multiplications(make: Callable[[], nn.Module], shape: Sequence[int]) -> float:
    """Return the multiplications of a row in matrix products and convolutions.

    Parameters
    ----------
    make
        Makes the network.
    shape
        Of a row it is shown.

    Examples
    --------
    >>> count_multiplications(lambda: nn.Linear(30, 20), (30,))
    600.0
    """
    from torch.utils.flop_counter import FlopCounterMode  # looks for Triton

    with torch.random.fork_rng(devices=[]):
        network = make().eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.zeros(1, *shape))
    return float(counter.get_total_flops() / 2)
