"""The trainer by itself, with a learner that is nothing but a regression."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.exceptions import StaleCheckpointError
from aloof.networks import Linear
from aloof.training import Batch, Learner, Phase, Run, Schedule, Setup, Stack, Task
from aloof.training.seeds import seeded
from aloof.training.trainer import _StackRun

CPU = torch.device("cpu")


class Slope(nn.Module):
    stackable = True

    def __init__(self) -> None:
        super().__init__()
        self.layer = Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer(x)
        return y.squeeze(-1)


class Regression(Learner):
    """Labels are numbers to fit; it also counts its epochs, in a state of its own."""

    def __init__(self, setup: Setup, weight: float = 1.0) -> None:
        (made,) = setup.build(lambda: [Slope()])
        self._stack, self._setup, self._weight = setup.stack(made, setup.example), setup, weight
        self.epochs = torch.zeros(len(setup.seeds), 1)

    @property
    def stacks(self) -> Mapping[str, Stack]:
        return {"slope": self._stack}

    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        assert batch.labels is not None
        error = self._stack(rows[0], training=True) - batch.labels
        # In odd epochs another computation, in even ones another number.
        factor = phase.numbers["factor"] if phase.kind else 1.0
        return (self._weight * (factor * error.square()).mean(1),)

    def phase(self, epoch: int) -> Phase:
        return Phase(kind=epoch % 2, numbers={"factor": torch.tensor(0.5)}, complete=epoch > 1)

    def after_epoch(self, epoch: int) -> None:
        self.epochs += 1

    def held_out_loss(self) -> NDArray[np.float64]:
        # Best in the fourth epoch for the first member, in the sixth for the second.
        best = torch.tensor([[4.0], [6.0]])[: len(self.epochs)]
        return (self.epochs - best).abs()[:, 0].double().numpy()

    def settings(self) -> object:
        return self._weight

    def state(self) -> dict[str, Tensor]:
        return {"epochs": self.epochs}

    def load(self, state: Mapping[str, Tensor]) -> None:
        self.epochs.copy_(state["epochs"])

    def select(self, members: slice) -> tuple[dict[str, Tensor], Tensor]:
        return self._stack.select(members).state(), self.epochs[members].clone()


def rows() -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).normal(size=(40, 3)))


def task(seeds: Sequence[int] = (1, 2), **changes: Any) -> Task:
    labels = np.random.default_rng(1).integers(-3, 4, 40)
    return Task(**{"rows": np.arange(40), "labels": labels, "seeds": seeds, **changes})


def schedule(**changes: Any) -> Schedule:
    return Schedule(**{"max_epochs": 6, "batch_size": 16, "learning_rate": 0.05, **changes})


def test_it_is_adam_with_weight_decay_and_milestones() -> None:
    """Six epochs equal torch's own optimiser, step by step."""
    how = schedule(weight_decay=0.1, milestones=(2, 4), max_grad_norm=0.5, betas=(0.5, 0.9))
    run = _StackRun([rows()], [task([7])], Regression, how, CPU)
    seen: list[tuple[Batch, Phase]] = []

    def step(batch: Batch, phase: Phase, rate: Tensor) -> Tensor:
        seen.append((batch, phase))
        return run._step(batch, phase, rate)

    for epoch in range(how.max_epochs):
        run._epoch(epoch, step)
    from aloof.training import Stream, derive

    with seeded(derive(7, Stream.INITIALISE), CPU):
        twin = Slope().double()
    optimizer = torch.optim.Adam(twin.parameters(), lr=0.05, betas=(0.5, 0.9))
    n_steps = len(seen) // how.max_epochs
    for number, (batch, phase) in enumerate(seen):
        epoch = number // n_steps
        optimizer.param_groups[0]["lr"] = 0.05 * 0.1 ** ((epoch >= 2) + (epoch >= 4))
        assert batch.labels is not None
        error = twin(rows()[batch.rows[0]]) - batch.labels[0]
        optimizer.zero_grad()
        ((0.5 if phase.kind else 1.0) * error.square()).mean().backward()
        for parameter in twin.parameters():  # decay first, then the norm of all together
            parameter.grad.add_(parameter.detach(), alpha=0.1)
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        optimizer.step()
    for name, value in twin.named_parameters():
        torch.testing.assert_close(run.learner.stacks["slope"].parameters[name][0], value)


def test_member_equals_the_model_trained_alone_also_with_few_rows_an_epoch() -> None:
    for few in (None, 24):
        changes = {"rows_per_epoch": few}
        both = Run([rows()], device=CPU).train([task(**changes)], Regression, schedule())[0]
        alone = Run([rows()], device=CPU).train([task([2], **changes)], Regression, schedule())
        for name, value in alone[0].members[0].items():
            torch.testing.assert_close(both.members[0][name][1:], value, rtol=1e-9, atol=1e-12)


def test_stopping_early_restores_networks_and_the_learners_own_state(tmp_path: Path) -> None:
    held = {"held_out": np.arange(3)}
    how = schedule(max_epochs=20, patience=3)
    (stopped,) = Run([rows()], device=CPU).train([task(**held)], Regression, how)
    assert stopped.best_epoch.tolist() == [4, 6]
    assert stopped.members[1][:, 0].tolist() == [4, 6]
    assert len(stopped.history["loss"]) == 9
    (short,) = Run([rows()], device=CPU).train([task()], Regression, schedule(max_epochs=4))
    for name, value in short.members[0].items():
        assert torch.equal(stopped.members[0][name][0], value[0])
    path = tmp_path / "fit.ckpt"

    class Stop(Exception):
        pass

    def stop(report: Any) -> None:
        if report.epoch == 8:
            raise Stop

    monkeyed = Run([rows()], device=CPU, checkpoint=path, n_epochs=20, on_epoch=stop)
    with pytest.raises(Stop):
        _every_epoch(monkeyed, [task(**held)], how)
    (again,) = _every_epoch(Run([rows()], device=CPU, checkpoint=path), [task(**held)], how)
    assert again.best_epoch.tolist() == [4, 6]
    for name, value in stopped.members[0].items():
        assert torch.equal(again.members[0][name], value)


def _every_epoch(run: Run, tasks: list[Task], how: Schedule) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aloof.training.trainer._CHECKPOINT_EVERY", 1)
        return run.train(tasks, Regression, how)


def test_a_checkpoint_of_other_settings_or_another_beginning_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    Run([rows()], device=CPU, checkpoint=path).train([task()], Regression, schedule())

    def other_beginning(setup: Setup) -> Regression:
        made = Regression(setup)
        with torch.no_grad():
            made.stacks["slope"].parameters["layer.bias"].add_(1.0)
        return made

    for tasks, make, how in (
        ([task(rows_per_epoch=39)], Regression, schedule()),
        ([task(labels=np.zeros(40, int))], Regression, schedule()),
        ([task()], lambda setup: Regression(setup, 2.0), schedule()),
        ([task()], other_beginning, schedule()),
        ([task()], Regression, schedule(weight_decay=0.1)),
        ([task()], Regression, schedule(betas=(0.5, 0.999))),
    ):
        with pytest.raises(StaleCheckpointError, match=r"fit\.ckpt\.\* next to it"):
            Run([rows()], device=CPU, checkpoint=path).train(tasks, make, how)


def test_a_stack_that_is_done_is_gone() -> None:
    """No cycle keeps its matrices until the garbage collector comes by."""
    run = Run([rows()], device=CPU)
    gone: list[Any] = []

    def make(setup: Setup) -> Regression:
        made = Regression(setup)
        gone.append(weakref.ref(made))
        return made

    gc.collect()
    gc.disable()
    try:
        run.train([task()], make, schedule())
        assert gone[0]() is None
    finally:
        gc.enable()


def test_patience_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="patience must be at least 1"):
        Run([rows()], device=CPU).train(
            [task(held_out=np.arange(3))], Regression, schedule(patience=0)
        )


def test_copies_are_trained_apart_from_what_they_were_copied_from() -> None:
    with seeded(0, CPU):
        made = [Slope().double() for _ in range(2)]
    x = rows()[:4].expand(2, 4, 3)
    stack = Stack(made, engine="loop", example=[x], device=CPU)
    before = {name: value.clone() for name, value in stack.state().items()}
    copies = stack.copies(3)
    assert copies.n_members == 6
    torch.testing.assert_close(
        copies(x.repeat_interleave(3, 0)), stack(x).repeat_interleave(3, 0)
    )
    for value in copies.parameters.values():
        assert value.requires_grad
        with torch.no_grad():
            value.add_(1.0)
    for name, value in stack.state().items():
        assert torch.equal(value, before[name])
