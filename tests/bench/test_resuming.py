"""Trainings that go on where they were stopped."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest

from aloof.bench.resuming import resumed
from aloof.exceptions import AloofWarning, StaleCheckpointError


class Networks:
    """What a training holds in memory."""


def test_a_second_try_has_the_memory_of_the_first(tmp_path: Path) -> None:
    tries: list[weakref.ref[Networks]] = []

    def train(checkpoint: Path) -> bool:
        networks = Networks()
        tries.append(weakref.ref(networks))
        if len(tries) == 1:
            checkpoint.touch()
            raise StaleCheckpointError("It is of another fit.")
        assert not checkpoint.exists()
        return tries[0]() is None

    with pytest.warns(AloofWarning, match="starting over"):
        assert resumed(train, tmp_path / "fit.ckpt")
    assert len(tries) == 2
