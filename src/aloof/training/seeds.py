"""Randomness as a function of (seed, purpose): nothing global, nothing to carry along.

A member's stream for an epoch is derived from its seed and the epoch's number. So a
member draws the same numbers alone or in a stack, and a resumed fit needs no saved
generator to continue to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import numpy as np
import torch

__all__ = ["Stream", "derive", "generator", "seeded"]


class Stream(IntEnum):
    """What a derived seed is for."""

    MEMBER = 0
    INITIALISE = 1
    EPOCH = 2
    VALIDATE = 3
    SPLIT = 4
    DROP = 5
    SEARCH = 6
    DISTIL = 7
    PRETEXT = 8


def derive(seed: int, stream: Stream, index: int = 0) -> int:
    """Return the 63-bit seed of one stream of `seed`."""
    sequence = np.random.SeedSequence(seed, spawn_key=(int(stream), index))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))


def generator(seed: int, device: torch.device) -> torch.Generator:
    """Return a private generator on `device`."""
    private = torch.Generator(device)
    private.manual_seed(seed)
    return private


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Run code that draws from torch's global generators; leave them as they were."""
    kind = device.type if device.type in ("cuda", "mps") else "cuda"
    devices = [device.index or 0] if device.type == kind else []
    with torch.random.fork_rng(devices=devices, device_type=kind):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.default_generators[device.index or 0].manual_seed(seed)
        elif device.type == "mps":
            torch.mps.manual_seed(seed)
        yield
