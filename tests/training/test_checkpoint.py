"""Checkpoints cost a fit little time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from aloof.training import checkpoint as module
from aloof.training.checkpoint import Checkpoint, CheckpointFile

STATE = {"network.weight": torch.ones(1000)}


class Clock:
    """Time that passes when it is told to, and while something is written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds_of_a_write: float) -> None:
        self.now = 0.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        write = module.write_file

        def slow(*args: object, **options: object) -> None:
            write(*args, **options)  # type: ignore[arg-type]
            self.now += seconds_of_a_write

        monkeypatch.setattr(module, "write_file", slow)


def test_a_slow_write_is_a_twentieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, 3.0)
    file = CheckpointFile(tmp_path / "fit.ckpt", "owner")
    assert file.affords(STATE), "so few numbers are written at once"
    file.write(Checkpoint(10, STATE))
    clock.now += 59.0
    assert not file.affords(STATE)
    clock.now += 2.0
    assert file.affords(STATE)
    assert not file.affords({"network.weight": torch.ones(2000)}), "twice as much takes longer"


def test_a_fast_write_is_always_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch, 0.01)
    file = CheckpointFile(tmp_path / "fit.ckpt", "owner")
    for epoch in (10, 20, 30):
        assert file.affords(STATE)
        file.write(Checkpoint(epoch, STATE))
    found = CheckpointFile(tmp_path / "fit.ckpt", "owner").read()
    assert found is not None
    assert found.epoch == 30
    assert torch.equal(found.tensors["network.weight"], STATE["network.weight"])


def test_so_much_that_it_must_be_slow_waits_for_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is known of the disk then; a gigabyte a second is taken for granted."""
    clock = Clock(monkeypatch, 0.0)
    file = CheckpointFile(tmp_path / "fit.ckpt", "owner")
    large = {"network.weight": torch.empty(10**9, device="meta")}
    clock.now += 70.0
    assert not file.affords(large)
    clock.now += 20.0
    assert file.affords(large)
