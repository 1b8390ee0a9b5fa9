"""Which rows are seen when: nothing is left out, and nobody is preferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from aloof.training import Task
from aloof.training.batches import Batches

NOISE = 3


def batches(n: int, n_extra: int, seeds: list[int], **changes: Any) -> Batches:
    one = Task(
        rows=np.arange(n), extra=np.arange(n, n + n_extra), labels=np.arange(n) % 7, seeds=seeds
    )
    options: dict[str, Any] = {"batch_size": 32, "extra_size": 8, "extra_samples": 2, **changes}
    return Batches(
        [one] * len(seeds),
        seeds,
        **options,
        noise_size=NOISE,
        device=torch.device("cpu"),
        dtype=torch.float32,
    )


@pytest.mark.parametrize("n", [2, 31, 32, 33, 64, 100, 129])
def test_an_epoch_sees_every_row_in_equal_batches(n: int) -> None:
    made = batches(n, 3, [1, 2])
    epoch = list(made.epoch(0, extra_interval=None))
    assert len({tuple(batch.rows.shape) for batch in epoch}) == 1
    for member in range(2):
        seen = torch.cat([batch.rows[member] for batch in epoch])
        counts = np.bincount(seen.numpy(), minlength=n)
        assert counts.min() == 1
        assert counts.sum() - n < made.n_steps


@pytest.mark.parametrize("n_extra", [1, 3, 8, 40])
def test_few_extra_rows_are_used_equally_often(n_extra: int) -> None:
    epoch = list(batches(100, n_extra, [1]).epoch(0, extra_interval=1))
    seen = torch.cat([batch.rows[0, batch.n_rows :] for batch in epoch]).numpy()
    assert seen.min() >= 100, "another row among the extra ones"
    counts = np.bincount(seen - 100, minlength=n_extra)
    assert counts.max() - counts.min() <= 1


def test_extra_rows_join_every_so_many_batches() -> None:
    epoch = list(batches(320, 5, [1]).epoch(0, extra_interval=3))
    joined = [batch.extra_noise is not None for batch in epoch]
    assert joined == [step % 3 == 0 for step in range(10)]
    assert epoch[0].rows.shape == (1, 32 + 8)
    assert epoch[0].extra_noise is not None
    assert epoch[0].extra_noise.shape == (2, 1, 8, NOISE)
    assert epoch[1].rows.shape == (1, 32)


def test_draws_depend_on_seed_and_epoch_alone() -> None:
    together = list(batches(100, 5, [1, 2]).epoch(4, extra_interval=1))
    alone = list(batches(100, 5, [2]).epoch(4, extra_interval=1))
    later = list(batches(100, 5, [2]).epoch(5, extra_interval=1))
    for both, one, other in zip(together, alone, later, strict=True):
        assert torch.equal(both.rows[1], one.rows[0])
        assert torch.equal(both.noise[1], one.noise[0])
        assert both.seeds[1] == one.seeds[0]
        assert not torch.equal(one.rows, other.rows)
        assert not torch.equal(one.noise, other.noise)


@pytest.mark.parametrize(("epoch", "interval"), [(4, 2), (4, 1), (3, 2)])
def test_what_was_begun_ahead_of_time_is_the_same(
    monkeypatch: pytest.MonkeyPatch, epoch: int, interval: int
) -> None:
    expected = list(batches(100, 5, [1, 2]).epoch(4, extra_interval=2))
    made, drawn = batches(100, 5, [1, 2]), []
    original = made._drawn
    monkeypatch.setattr(made, "_drawn", lambda *a: drawn.append(a) or original(*a))
    made.begin(epoch, extra_interval=interval)
    for one, other in zip(made.epoch(4, extra_interval=2), expected, strict=True):
        assert torch.equal(one.rows, other.rows)
        assert torch.equal(one.noise, other.noise)
        assert (one.extra_noise is None) == (other.extra_noise is None)
    assert drawn == list(dict.fromkeys([(epoch, interval), (4, 2)])), "nothing is drawn twice"


def test_chances_are_even_and_each_member_has_its_own() -> None:
    shapes = [(20,), (3, 2)]
    together = list(batches(100, 5, [1, 2], dropped=shapes).epoch(0, extra_interval=2))
    alone = list(batches(100, 5, [2], dropped=shapes).epoch(0, extra_interval=2))
    for both, one in zip(together, alone, strict=True):
        assert [part.shape for part in both.chances] == [
            (2, both.rows.shape[1], *shape) for shape in shapes
        ]
        for own, other in zip(both.chances, one.chances, strict=True):
            assert torch.equal(own[1], other[0])
            assert not torch.equal(own[0], own[1])
    words = torch.cat([batch.chances[0][0] for batch in together])
    lost = (words < 0.3).double().mean().item()
    assert lost == pytest.approx(0.3, abs=0.03)
    assert not torch.equal(together[0].chances[0][0, 0], together[1].chances[0][0, 0])


def test_labels_come_with_their_rows() -> None:
    for batch in batches(100, 5, [1, 2]).epoch(0, extra_interval=1):
        assert batch.labels is not None
        assert torch.equal(batch.labels, batch.rows[:, : batch.n_rows] % 7)


def test_extra_rows_are_as_many_as_others_unless_told() -> None:
    for batch in batches(100, 5, [1], extra_size=None).epoch(0, extra_interval=1):
        assert batch.rows.shape[1] == 2 * batch.n_rows
        assert (batch.rows[0] >= 100).sum() == batch.n_rows
