"""A fit on disk, so that a killed one continues to the same bits.

One safetensors file with everything the next epoch depends on. Random generators need no
place in it: they are derived from the seeds and the epoch's number. States of many networks
take seconds to write, so they are written as seldom as that costs little.
"""

from __future__ import annotations

import glob
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
from torch import Tensor

from aloof.exceptions import CheckpointError, StaleCheckpointError
from aloof.io import write_file
from aloof.io.tensors import save_tensors
from aloof.training.learner import Learner
from aloof.training.schedule import Schedule
from aloof.training.stacks import describe, state_of
from aloof.training.task import Task

__all__ = [
    "Checkpoint",
    "CheckpointFile",
    "check_target",
    "discard_checkpoints",
    "fingerprint",
]

_FORMAT = "aloof-checkpoint-2"

# Seconds that writing may always take; what it may take of a fit's time beyond them; and how
# fast it is, until it was measured.
_CHEAP = 0.1
_SHARE = 0.05
_BYTES_PER_SECOND = 1e9


@dataclass(frozen=True)
class Checkpoint:
    """The state after an epoch.

    Attributes
    ----------
    epoch
        Epochs done.
    tensors
        Networks, optimiser, best states and history, by name.
    """

    epoch: int
    tensors: dict[str, Tensor]


def fingerprint(
    data: Sequence[Tensor], tasks: Sequence[Task], schedule: Schedule, learner: Learner
) -> str:
    """Return a hash of all that decides the result of a fit; `learner` is untrained."""
    digest = hashlib.sha256()
    digest.update(describe(learner.stacks).encode())
    digest.update(repr((type(learner).__qualname__, learner.settings())).encode())
    digest.update(repr(sorted(asdict(schedule).items())).encode())
    for task in tasks:
        rest = (task.setting, task.kind, tuple(task.seeds), task.rows_per_epoch)
        digest.update(repr(rest).encode())
        labels = () if task.labels is None else task.labels
        for rows in (task.rows, labels, task.extra, task.held_out, task.held_out_extra):
            digest.update(np.ascontiguousarray(rows, np.int64).tobytes())
            digest.update(b"|")
    begin = {**state_of(learner.stacks), **learner.state()}  # may come from another phase
    for part in (*begin.values(), *data):
        digest.update(repr((part.shape, part.dtype)).encode())
        digest.update(part.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


class CheckpointFile:
    """Where a fit keeps its state.

    Parameters
    ----------
    path
        The file.
    owner
        Fingerprint of the fit.
    """

    def __init__(self, path: Path, owner: str) -> None:
        self._path, self._owner = path, owner
        self._last = time.monotonic()
        self._speed = _BYTES_PER_SECOND

    def read(self) -> Checkpoint | None:
        """Return what is there; None: nothing."""
        from safetensors import SafetensorError, safe_open

        if not self._path.exists():
            return None
        try:
            with safe_open(self._path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}
        except (SafetensorError, OSError) as error:
            raise StaleCheckpointError(
                f"Cannot read the checkpoint {self._path} ({error}). Delete it to start the "
                "fit over."
            ) from error
        if metadata.get("format") != _FORMAT or metadata.get("owner") != self._owner:
            raise StaleCheckpointError(
                f"{self._path} belongs to a fit with other data, settings or seed. To start "
                f"over, delete it and {self._path.name}.* next to it; or name another "
                "checkpoint."
            )
        return Checkpoint(int(metadata["epoch"]), tensors)

    @property
    def seconds(self) -> float:
        """Since the file was written, or the fit began."""
        return time.monotonic() - self._last

    def affords(self, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether so much is written in a small share of the time since the last."""
        seconds = _size(tensors) / self._speed
        return seconds <= max(_CHEAP, _SHARE * self.seconds)

    def write(self, checkpoint: Checkpoint) -> None:
        """Write, atomically, and learn how long it takes."""
        started = time.monotonic()
        metadata = {
            "format": _FORMAT,
            "owner": self._owner,
            "epoch": json.dumps(checkpoint.epoch),
        }
        save = partial(save_tensors, tensors=checkpoint.tensors, metadata=metadata)
        write_file(self._path, save, CheckpointError, sync=False, parents=True)
        self._last = time.monotonic()
        self._speed = max(_size(checkpoint.tensors), 1) / max(self._last - started, 1e-6)


def check_target(path: Path) -> None:
    """Raise `CheckpointError` where no checkpoint could be written, before any training."""
    if path.is_dir():
        raise CheckpointError(f"The checkpoint {path} is a folder; name a file.")
    for parent in path.parents:
        if parent.exists():
            if not parent.is_dir():
                raise CheckpointError(
                    f"Cannot write the checkpoint {path}: {parent} is not a folder."
                )
            return


def discard_checkpoints(path: Path) -> None:
    """Remove the checkpoint of a run, and those of its further stacks."""
    path.unlink(missing_ok=True)
    for other in path.parent.glob(f"{glob.escape(path.name)}.*"):
        if other.suffix[1:].isdigit():
            other.unlink(missing_ok=True)


def _size(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values())
