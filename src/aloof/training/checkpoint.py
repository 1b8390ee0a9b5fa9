"""A fit on disk, so that a killed one continues to the same bits.

One safetensors file with everything the next epoch depends on. Random generators need no
place in it: they are derived from the seeds and the epoch's number.
"""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Sequence
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
    "check_target",
    "discard_checkpoints",
    "fingerprint",
    "read_checkpoint",
    "write_checkpoint",
]

_FORMAT = "aloof-checkpoint-2"


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


def write_checkpoint(path: Path, checkpoint: Checkpoint, owner: str) -> None:
    """Write a checkpoint of the fit with fingerprint `owner`, atomically."""
    metadata = {
        "format": _FORMAT,
        "owner": owner,
        "epoch": json.dumps(checkpoint.epoch),
    }
    save = partial(save_tensors, tensors=checkpoint.tensors, metadata=metadata)
    write_file(path, save, CheckpointError, sync=False, parents=True)


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


def read_checkpoint(path: Path, owner: str) -> Checkpoint | None:
    """Read the checkpoint of the fit with fingerprint `owner`; None where there is none."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise StaleCheckpointError(
            f"Cannot read the checkpoint {path} ({error}). Delete it to start the fit over."
        ) from error
    if metadata.get("format") != _FORMAT or metadata.get("owner") != owner:
        raise StaleCheckpointError(
            f"{path} belongs to a fit with other data, settings or seed. To start over, "
            f"delete it and {path.name}.* next to it; or name another checkpoint."
        )
    return Checkpoint(int(metadata["epoch"]), tensors)
