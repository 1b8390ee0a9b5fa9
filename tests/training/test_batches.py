"""Which rows are seen when: nothing is left out, and nobody is preferred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from problems import CPU, LATENT, problem

from aloof.training.batches import Batches
from aloof.training.objective import Objective


def batches(n: int, n_anomaly: int, seeds: list[int], **changes: Any) -> Batches:
    one = problem(seeds, n, n_anomaly, objective=Objective("mml", n_samples=2))
    sizes: dict[str, Any] = {"batch_size": 32, "anomaly_batch_size": 8, **changes}
    return Batches(
        [one] * len(seeds), seeds, **sizes, latent_dim=LATENT, device=CPU, dtype=torch.float32
    )


@pytest.mark.parametrize("n", [2, 31, 32, 33, 64, 100, 129])
def test_an_epoch_sees_every_row_in_equal_batches(n: int) -> None:
    made = batches(n, 3, [1, 2])
    epoch = list(made.epoch(0, anomaly_interval=None))
    assert len({tuple(batch.rows.shape) for batch in epoch}) == 1
    for member in range(2):
        seen = torch.cat([batch.rows[member] for batch in epoch])
        counts = np.bincount(seen.numpy(), minlength=n)
        assert counts.min() == 1
        assert counts.sum() - n < made.n_steps


@pytest.mark.parametrize("n_anomaly", [1, 3, 8, 40])
def test_few_anomalies_are_used_equally_often(n_anomaly: int) -> None:
    epoch = list(batches(100, n_anomaly, [1]).epoch(0, anomaly_interval=1))
    seen = torch.cat([batch.rows[0, batch.n_normal :] for batch in epoch]).numpy()
    assert seen.min() >= 100, "a normal row among the anomalies"
    counts = np.bincount(seen - 100, minlength=n_anomaly)
    assert counts.max() - counts.min() <= 1


def test_anomalies_join_every_so_many_batches() -> None:
    epoch = list(batches(320, 5, [1]).epoch(0, anomaly_interval=3))
    joined = [batch.anomaly_noise is not None for batch in epoch]
    assert joined == [step % 3 == 0 for step in range(10)]
    assert epoch[0].rows.shape == (1, 32 + 8)
    assert epoch[0].anomaly_noise is not None
    assert epoch[0].anomaly_noise.shape == (2, 1, 8, LATENT)
    assert epoch[1].rows.shape == (1, 32)


def test_draws_depend_on_seed_and_epoch_alone() -> None:
    together = list(batches(100, 5, [1, 2]).epoch(4, anomaly_interval=1))
    alone = list(batches(100, 5, [2]).epoch(4, anomaly_interval=1))
    later = list(batches(100, 5, [2]).epoch(5, anomaly_interval=1))
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
    expected = list(batches(100, 5, [1, 2]).epoch(4, anomaly_interval=2))
    made, drawn = batches(100, 5, [1, 2]), []
    original = made._drawn
    monkeypatch.setattr(made, "_drawn", lambda *a: drawn.append(a) or original(*a))
    made.begin(epoch, anomaly_interval=interval)
    for one, other in zip(made.epoch(4, anomaly_interval=2), expected, strict=True):
        assert torch.equal(one.rows, other.rows)
        assert torch.equal(one.noise, other.noise)
        assert (one.anomaly_noise is None) == (other.anomaly_noise is None)
    assert drawn == list(dict.fromkeys([(epoch, interval), (4, 2)])), "nothing is drawn twice"


def test_chances_are_even_and_each_member_has_its_own() -> None:
    shapes = [(20,), (3, 2)]
    together = list(batches(100, 5, [1, 2], dropped=shapes).epoch(0, anomaly_interval=2))
    alone = list(batches(100, 5, [2], dropped=shapes).epoch(0, anomaly_interval=2))
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
