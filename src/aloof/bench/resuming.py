"""Trainings of a study that go on where they were stopped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from aloof.exceptions import AloofWarning, StaleCheckpointError
from aloof.training import discard_checkpoints

__all__ = ["resumed", "will_go_on"]

_T = TypeVar("_T")


def will_go_on(folder: Path) -> bool:
    """Return whether a folder of results holds a training that was stopped."""
    return any(folder.rglob("*.ckpt*"))


def resumed(train: Callable[..., _T], checkpoint: Path) -> _T:
    """Train from a checkpoint, or from the beginning if it is of another training.

    The checkpoint is left behind: discard it once the results are written down.

    Parameters
    ----------
    train
        Trains, with ``checkpoint=``.
    checkpoint
        The file.
    """
    try:
        return train(checkpoint=checkpoint)
    except StaleCheckpointError:
        pass  # and with it, what the first try has put into memory
    words = "An interrupted run used other cases, data or settings; starting over."
    warnings.warn(words, AloofWarning, stacklevel=2)
    discard_checkpoints(checkpoint)
    return train(checkpoint=checkpoint)
