from __future__ import annotations

import pytest
import torch

from aloof.training import Schedule
from aloof.training.clipping import clip_rows_
from aloof.vae import TrainingConfig


def test_kl_weight_grows_linearly_and_stays() -> None:
    config = TrainingConfig(annealing_epochs=4)
    assert [config.annealing(e) for e in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    assert TrainingConfig(annealing_epochs=0).annealing(0) == 1.0


def test_learning_rate_decays_after_the_warm_up_only() -> None:
    settings = {"max_epochs": 200, "warmup_epochs": 50, "learning_rate": 1.0}
    constant, step, cosine = (
        TrainingConfig(lr_schedule=name, **settings).schedule  # type: ignore[arg-type]
        for name in ("constant", "step", "cosine")
    )
    assert {constant.rate(e) for e in range(200)} == {1.0}
    assert [step.rate(e) for e in (0, 49, 99)] == [1.0, 1.0, 1.0]
    assert step.rate(100) == pytest.approx(0.1)
    assert step.rate(199) == pytest.approx(0.01)
    assert [cosine.rate(e) for e in (0, 49, 50)] == [1.0, 1.0, 1.0]
    assert cosine.rate(125) == pytest.approx(0.5)
    assert 0 < cosine.rate(199) < 0.001


def test_steps_may_be_given() -> None:
    given = TrainingConfig(learning_rate=1.0, lr_schedule="step", milestones=(50, 100))
    rates = [given.schedule.rate(epoch) for epoch in (49, 50, 99, 100, 149)]
    assert rates == pytest.approx([1.0, 0.1, 0.1, 0.01, 0.01])
    with pytest.raises(ValueError, match="milestones only apply to lr_schedule='step'"):
        TrainingConfig(lr_schedule="cosine", milestones=(50,))


def test_each_member_is_clipped_by_itself() -> None:
    gradient = torch.tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]])
    clip_rows_(gradient, 5.0)
    torch.testing.assert_close(gradient, torch.tensor([[3.0, 4.0], [0.3, 0.4], [3.0, 4.0]]))


def test_milestones_and_cosine_go_together() -> None:
    schedule = Schedule(max_epochs=9, learning_rate=1.0, milestones=(3, 6), cosine_from=6)
    assert [schedule.rate(epoch) for epoch in (0, 2)] == [1.0, 1.0]
    assert [schedule.rate(epoch) for epoch in (3, 5, 6)] == pytest.approx([0.1, 0.1, 0.01])
    assert 0 < schedule.rate(8) < 0.01
