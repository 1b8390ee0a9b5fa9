"""The loop that trains members of many problems at once, as few stacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from aloof.baselines.fitting import Schedule
from aloof.baselines.images.members import Learners
from aloof.baselines.images.problem import ImageProblem, ImageSchedule, seeds_of
from aloof.baselines.images.results import FittedImages
from aloof.exceptions import DivergenceError
from aloof.training import EpochReport, Problem, ProgressCallback, Stack
from aloof.training.adam import Adam
from aloof.training.batches import Batch, Batches
from aloof.training.replay import Replay, Step
from aloof.training.rows import gather

__all__ = ["Builder", "Progress", "Run", "stacks_of"]

Builder = Callable[[Sequence[ImageProblem]], Learners]
"""From problems to untrained members, in the order of the problems and their seeds."""


def stacks_of(problems: Sequence[ImageProblem], batch_size: int) -> list[list[int]]:
    """Return the numbers of the problems that can be trained together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number, problem in enumerate(problems):
        groups.setdefault(problem.shape(batch_size), []).append(number)
    return list(groups.values())


class Progress:
    """Epochs, counted over all stacks of a run.

    Parameters
    ----------
    callback
        Called after each epoch.
    total
        Epochs to do.
    """

    def __init__(self, callback: ProgressCallback | None, total: int) -> None:
        self._callback, self._total, self._done = callback, total, 0

    def add(self, n_members: int, loss: float) -> None:
        """Count an epoch, and report."""
        self._done += 1
        if self._callback is not None:
            self._callback(EpochReport(self._done, self._total, n_members, loss))


@dataclass(frozen=True, eq=False)
class Run:
    """What the stacks of a run have in common.

    Attributes
    ----------
    data
        The images that all problems index.
    schedule
        Batch size and precision.
    device
        Where to compute.
    progress
        Told of every epoch.
    """

    data: Tensor
    schedule: ImageSchedule
    device: torch.device
    progress: Progress

    def fit(
        self, problems: Sequence[ImageProblem], build: Builder, schedule: Schedule
    ) -> list[FittedImages]:
        """Train what `build` makes of the problems; return a result for each, in order."""
        results: dict[int, FittedImages] = {}
        for numbers in stacks_of(problems, self.schedule.batch_size):
            own = [problems[number] for number in numbers]
            members = build(own)
            curve = _Trainer(members, own, schedule, self).fit()
            start = 0
            for number, problem in zip(numbers, own, strict=True):
                part = slice(start, start + len(problem.seeds))
                start = part.stop
                results[number] = FittedImages(
                    members.select(part), curve[:, part], self.device
                )
        return [results[number] for number in range(len(problems))]


class _Trainer:
    """The training of one stack, in place.

    A batch of a member is drawn from its normal rows and labelled anomalies alike, so that
    both pass through batch normalisation together. What a member learns does not depend on
    what it is stacked with, up to floating-point rounding.
    """

    def __init__(
        self,
        members: Learners,
        problems: Sequence[ImageProblem],
        schedule: Schedule,
        run: Run,
    ) -> None:
        self._members, self._schedule, self._run = members, schedule, run
        self._device = device = run.device
        batch_size = run.schedule.batch_size
        # A batch holds places in each member's own list of rows.
        sizes = [len(p.normal) + len(p.anomaly) for p in problems for _ in p.seeds]
        places = {n: Problem(np.arange(n), seeds=()) for n in set(sizes)}
        self._rows = _lists([problem.rows for problem in problems], problems, device)
        self._labels = _lists([problem.labels for problem in problems], problems, device)
        self._batches = Batches(
            [places[n] for n in sizes],
            seeds_of(problems),
            batch_size=batch_size,
            anomaly_batch_size=0,
            latent_dim=members.noise_size,
            device=device,
            dtype=torch.float32,
        )
        mixes_rows = any(stack.mixes_rows for stack in members.stacks)
        if self._batches.n_normal == 1 and mixes_rows:
            raise ValueError(
                "Batch normalisation needs at least two rows in a batch; raise batch_size "
                f"(now {batch_size}) or bring more rows."
            )
        self._matrix, self._leaves = _flattened(members.stacks)
        self._optimizer = Adam(self._matrix)

    def fit(self) -> NDArray[np.float64]:
        """Train; return the mean loss of each epoch and member, ``(epochs, members)``."""
        n_members = self._members.n_members
        step: Step = self._step
        loops = any(stack.engine == "loop" for stack in self._members.stacks)
        if self._device.type == "cuda" and not loops:
            step = Replay(self._step)
        nothing = torch.zeros((), device=self._device)
        curve = np.empty((self._schedule.max_epochs, n_members))
        for epoch in range(len(curve)):
            rate = torch.tensor(self._schedule.rate(epoch), device=self._device)
            # The sum stays on the device: the host waits once an epoch, not once a step.
            total = torch.zeros(n_members, device=self._device)
            for batch in self._batches.epoch(epoch, anomaly_interval=None):
                total += step(batch, nothing, rate, None)
            if self._device.type == "cuda" and epoch + 1 < len(curve):
                self._batches.begin(epoch + 1, anomaly_interval=None)
            curve[epoch] = total.cpu().double().numpy() / self._batches.n_steps
            if not np.isfinite(curve[epoch]).all():
                raise DivergenceError(
                    f"The loss of a member is not finite after epoch {epoch + 1}. Lower the "
                    f"learning rate (now {self._schedule.rate(epoch):g})."
                )
            self._run.progress.add(n_members, float(curve[epoch].mean()))
        return curve

    def _step(self, batch: Batch, _: Tensor, rate: Tensor, __: int | None) -> Tensor:
        """Update every member once; return its loss."""
        (x,) = gather([self._run.data], self._rows.gather(1, batch.rows))
        labels = self._labels.gather(1, batch.rows)
        with self._autocast():
            loss = self._members.loss(x, labels, batch.noise).mean(1)
        # Members are independent: the gradient of the sum is each member's own.
        parts = torch.autograd.grad(loss.sum(), self._leaves, materialize_grads=True)
        gradient = torch.cat([part.flatten(1) for part in parts], 1)
        gradient.add_(self._matrix, alpha=self._schedule.weight_decay)
        self._optimizer.step(gradient, rate)
        return loss.detach().float()

    def _autocast(self) -> AbstractContextManager[object]:
        if self._run.schedule.precision == "float32":
            return nullcontext()
        return torch.autocast(self._device.type, torch.bfloat16)


def _lists(
    values: Sequence[NDArray[np.int64]], problems: Sequence[ImageProblem], device: torch.device
) -> Tensor:
    """Return one list for each member, the short ones filled up, ``(members, longest)``."""
    lists = [
        torch.from_numpy(own)
        for own, problem in zip(values, problems, strict=True)
        for _ in problem.seeds
    ]
    return pad_sequence(lists, batch_first=True).to(device)


def _flattened(stacks: Sequence[Stack]) -> tuple[Tensor, list[Tensor]]:
    """Move all parameters into one matrix with a row for each member: one update, not many.

    Returns
    -------
    The matrix, and the parameters: leaves of the graph that share its memory, in the order of
    its columns.
    """
    values = [value for stack in stacks for value in stack.parameters.values()]
    matrix = torch.cat([value.detach().flatten(1) for value in values], 1)
    leaves, start = [], 0
    for stack in stacks:
        for name, value in stack.parameters.items():
            columns = matrix[:, start : start + value[0].numel()]
            leaves.append(columns.view(value.shape).requires_grad_())
            stack.parameters[name] = leaves[-1]
            start += columns.shape[1]
        stack.hold(stack.parameters, stack.buffers)
    return matrix, leaves
