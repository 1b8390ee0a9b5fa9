"""The one training loop: all members of all tasks, stacked, whatever they learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.exceptions import DivergenceError
from aloof.threads import threads_for
from aloof.training.adam import Adam
from aloof.training.batches import Batch, Batches
from aloof.training.checkpoint import (
    Checkpoint,
    CheckpointFile,
    check_target,
    fingerprint,
)
from aloof.training.device import on
from aloof.training.history import History
from aloof.training.learner import Learner, LearnerFactory, Phase, Setup
from aloof.training.progress import EpochReport, ProgressCallback
from aloof.training.replay import Replay, Step
from aloof.training.rows import gather, place
from aloof.training.schedule import Schedule
from aloof.training.stacks import flatten, load_state, state_of
from aloof.training.stopping import EarlyStopping
from aloof.training.task import Task

__all__ = ["Run", "Trained", "joined_history", "stacks_of"]

_CHECKPOINT_EVERY = 10  # epochs, or as soon as so many seconds have passed
_CHECKPOINT_SECONDS = 60.0

_State = dict[str, Tensor]
_Loss = Callable[..., tuple[Tensor, ...]]
_Members = TypeVar("_Members")


@dataclass(frozen=True, eq=False)
class Trained(Generic[_Members]):
    """A task that was learned.

    Attributes
    ----------
    members
        What the learner made of the members that learned it; see `Learner.select`.
    history
        Curves ``(epochs, members)`` by name; see `Learner.summary`.
    best_epoch
        The epoch each member's state is from, counted from 1.
    state
        Networks, optimiser and history, to begin another run from; None unless asked for.
    """

    members: _Members
    history: dict[str, NDArray[np.float64]]
    best_epoch: NDArray[np.int64]
    state: _State | None

    @classmethod
    def joined(cls, members: _Members, parts: Sequence[Trained[Any]]) -> Trained[_Members]:
        """Return one result for members that learned tasks of their own."""
        history = joined_history([part.history for part in parts])
        return cls(members, history, np.concatenate([p.best_epoch for p in parts]), None)


def joined_history(
    parts: Sequence[Mapping[str, NDArray[np.float64]]],
) -> dict[str, NDArray[np.float64]]:
    """Return the curves of members that learned tasks of their own, side by side."""
    return {
        name: np.concatenate([part[name] for part in parts], 1) if curve.ndim == 2 else curve
        for name, curve in parts[0].items()
    }


def stacks_of(
    tasks: Sequence[Task], batch_size: int, begun: Sequence[bool] | None = None
) -> list[list[int]]:
    """Return the numbers of the tasks that can be trained together.

    Parameters
    ----------
    tasks
        All of them.
    batch_size
        Most rows in a batch.
    begun
        Which of them have a state to begin from: all or none of a stack.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, task in enumerate(tasks):
        begins = begun is not None and begun[number]
        groups.setdefault((begins, task.shape(batch_size)), []).append(number)
    return list(groups.values())


class Run:
    """Training in one phase or several: rows, device, checkpoints and progress.

    Parameters
    ----------
    data
        The rows all tasks index, ``(n, ...)``, and their context, if any.
    device
        Where to compute.
    checkpoint
        File to keep the state in; if it holds the state of this very run, that run is
        continued. Further stacks add a number to the name. The files are left behind, so that
        a run of several calls can be resumed; see `discard_checkpoints`.
    n_epochs
        Epochs of all stacks of all phases, for progress.
    on_epoch
        Called after each epoch.
    """

    def __init__(
        self,
        data: Sequence[Tensor],
        *,
        device: torch.device,
        checkpoint: Path | None = None,
        n_epochs: int = 0,
        on_epoch: ProgressCallback | None = None,
    ) -> None:
        if checkpoint is not None:
            check_target(checkpoint)
        self.data = place(data, device)
        self.device = device
        self._paths = _paths(checkpoint)
        self._progress = _Progress(on_epoch, n_epochs)

    def on_data(self, data: Sequence[Tensor]) -> Run:
        """Return the same run with other rows."""
        other = object.__new__(Run)
        other.__dict__.update(self.__dict__)
        other.data = place(data, self.device)
        return other

    def train(
        self,
        tasks: Sequence[Task],
        learner: LearnerFactory,
        schedule: Schedule,
        *,
        start: Sequence[_State | None] | None = None,
        first_epoch: int = 0,
        keep_state: bool = False,
    ) -> list[Trained[Any]]:
        """Train every member of every task.

        Tasks whose batches have the same shape are trained as one stack. A member's result does
        not depend on what it is stacked with: it is that of the member trained alone, up to
        floating-point rounding. On a CPU, where a loop over members gains nothing from a stack
        and needs memory for all of them, each task is trained by itself.

        Parameters
        ----------
        tasks
            What to learn from.
        learner
            Makes the members of a stack.
        schedule
            How long and how fast.
        start
            For each task the `Trained.state` to begin from, at `first_epoch`; None: the
            beginning. It may hold networks alone.
        first_epoch
            Epochs that such a state has behind it.
        keep_state
            Whether results hold their state; it takes three times the networks' memory.

        Returns
        -------
        One result for each task, in order.
        """
        results: dict[int, Trained[Any]] = {}
        starts = [None] * len(tasks) if start is None else start
        begun = [state is not None for state in starts]

        def stack_run(numbers: Sequence[int]) -> _StackRun:
            own = [tasks[number] for number in numbers]
            return _StackRun(self.data, own, learner, schedule, self.device)

        with on(self.device):
            for together in stacks_of(tasks, schedule.batch_size, begun):
                for numbers in self._parts(together, stack_run):
                    states = [state for n in numbers if (state := starts[n]) is not None]
                    stack = stack_run(numbers)
                    self._progress.share = Fraction(len(numbers), len(together))
                    with threads_for(stack.multiplications):
                        trained = stack.fit(
                            next(self._paths),
                            self._progress,
                            _joined(states) if states else None,
                            first_epoch,
                            keep_state=keep_state,
                        )
                    results.update(zip(numbers, trained, strict=True))
        return [results[number] for number in range(len(tasks))]

    def _parts(
        self, together: list[int], stack_run: Callable[[Sequence[int]], _StackRun]
    ) -> list[list[int]]:
        """Return which of the tasks that could be one stack are trained at once."""
        if self.device.type != "cpu" or len(together) == 1:
            return [together]
        loops = stack_run(together[:2]).loops  # a single network would always be looped over
        return [[n] for n in together] if loops else [together]


class _Progress:
    """Epochs, counted over all stacks.

    Attributes
    ----------
    share
        What an epoch counts: less than one where only a part of a stack is trained.
    """

    def __init__(self, callback: ProgressCallback | None, total: int) -> None:
        self._callback = callback
        self._total = total
        self._done = Fraction(0)
        self.share = Fraction(1)

    def skip(self, epochs: int) -> None:
        """Count epochs that were trained before."""
        self._done += epochs * self.share

    def add(self, epochs: int, n_members: int, loss: float) -> None:
        """Count epochs, and report."""
        self.skip(epochs)
        if self._callback is not None:
            self._callback(EpochReport(int(self._done), self._total, n_members, loss))


class _StackRun:
    """The training of one stack."""

    def __init__(
        self,
        data: Sequence[Tensor],
        tasks: Sequence[Task],
        make: LearnerFactory,
        schedule: Schedule,
        device: torch.device,
    ) -> None:
        self.data, self.tasks, self.schedule, self.device = data, tasks, schedule, device
        owners = [task for task in tasks for _ in task.seeds]
        seeds = [seed for task in tasks for seed in task.seeds]
        dtype = data[0].dtype if data[0].is_floating_point() else torch.float32
        example = gather(data, torch.arange(2))
        self.learner: Learner = make(
            Setup(owners, seeds, data, example, device, dtype, schedule.engine)
        )
        self.batches = Batches(
            owners,
            seeds,
            batch_size=schedule.batch_size,
            extra_size=self.learner.extra_size,
            noise_size=self.learner.noise_size,
            extra_samples=self.learner.extra_samples,
            dropped=[data[number].shape[1:] for number, _ in self._dropout()],
            device=device,
            dtype=dtype,
        )
        stacks = self.learner.stacks.values()
        if self.batches.n_rows == 1 and any(stack.mixes_rows for stack in stacks):
            raise ValueError(
                "Batch normalisation needs at least two rows in a batch. Raise batch_size "
                f"(now {schedule.batch_size}) or add rows."
            )
        self.n_members = len(seeds)
        self.matrix, self.parameters = flatten(self.learner.stacks)
        self.optimizer = Adam(self.matrix, schedule.betas)
        self.loss: _Loss = (
            _compiled(self.learner.loss) if schedule.compile else self.learner.loss
        )
        self.stopping = (
            EarlyStopping(self.n_members, schedule.patience)
            if schedule.patience is not None and len(tasks[0].held_out)
            else None
        )
        self.history = History()
        self.loops = any(stack.engine == "loop" for stack in stacks)
        # Networks that draw from the host's seeds in every step cannot be replayed.
        self.replays = device.type == "cuda" and not self.loops

    def fit(
        self,
        path: Path | None,
        progress: _Progress,
        start: _State | None,
        first_epoch: int,
        *,
        keep_state: bool,
    ) -> list[Trained[Any]]:
        """Train, from a checkpoint or from the state at the end of another run."""
        max_epochs = self.schedule.max_epochs
        file, first, loss = None, 0, float("nan")
        if path is not None:
            owner = fingerprint(self.data, self.tasks, self.schedule, self.learner)
            file = CheckpointFile(path, owner)
            first = self._resume(file)
        skipped = 0 if start is None else first_epoch
        if start is not None and (first < skipped or not first):
            self._load(start)
            first = skipped
        epoch = first
        progress.skip(first - skipped)
        step = self.stepper()
        while epoch < max_epochs:
            if self.stopping is not None and self.stopping.all_stopped:
                break
            loss = self._epoch(epoch, step)
            epoch += 1
            try:
                progress.add(1, self.n_members, loss)
            except BaseException:  # who is told may end the fit here; it goes on from here
                self._keep(file, epoch, at_any_cost=True)
                raise
            slow = file is not None and file.seconds > _CHECKPOINT_SECONDS
            if slow or epoch % _CHECKPOINT_EVERY == 0:
                self._keep(file, epoch)
        if max_epochs and (epoch < max_epochs or first == epoch):
            progress.add(max_epochs - epoch, self.n_members, loss)
        if epoch > first:  # another phase may begin from here, and must find the same bits
            self._keep(file, epoch, at_any_cost=True)
        self.batches.forget()
        return self._results(epoch, self._state() if keep_state else None)

    @property
    def multiplications(self) -> float:
        """About how many there are in a step; convolutions use each weight in many places."""
        places = math.prod(self.data[0].shape[2:])
        return float(self.matrix.numel() * self.batches.n_rows * places)

    def stepper(self) -> Step:
        """Return what does a step; not kept here, because what it records holds memory."""
        return Replay(self._step) if self.replays else self._step

    def _epoch(self, epoch: int, step: Step) -> float:
        """Train one epoch; return its mean loss."""
        rate = self.schedule.rate(epoch)
        learning_rate = torch.tensor(rate, device=self.device)
        phase = self.learner.phase(epoch)
        # Sums stay on the device: the host waits once an epoch, not once a step.
        sums = torch.zeros(len(self.learner.curves), self.n_members, device=self.device)
        n_extra = 0
        for batch in self.batches.epoch(epoch, extra_interval=self._interval(phase)):
            sums += step(batch, phase, learning_rate)
            n_extra += batch.extra_noise is not None
        if self.device.type == "cuda" and epoch + 1 < self.schedule.max_epochs:
            interval = self._interval(self.learner.phase(epoch + 1))
            self.batches.begin(epoch + 1, extra_interval=interval)
        totals = dict(zip(self.learner.curves, sums.cpu().double().numpy(), strict=True))
        total = totals[self.learner.curves[0]]
        if not np.isfinite(total).all():
            bad = np.flatnonzero(~np.isfinite(total))
            raise DivergenceError(
                f"The loss of {len(bad)} of {len(total)} members is not finite in epoch "
                f"{epoch + 1}. Lower learning_rate (now {rate:g}){self._clipping()}, and "
                "check the data for extreme values."
            )
        self.learner.after_epoch(epoch)
        record = self.learner.summary(totals, self.batches.n_steps, n_extra, phase)
        record["learning_rate"] = np.asarray(rate, np.float64)
        if self.stopping is not None:
            record["validation"] = self.learner.held_out_loss()
            if phase.complete:
                self.stopping.update(record["validation"], epoch, self._learned())
        self.history.append(record)
        return float(record["loss"].mean())

    def _clipping(self) -> str:
        norm = self.schedule.max_grad_norm
        return "" if norm is None else f" or max_grad_norm (now {norm:g})"

    def _interval(self, phase: Phase) -> int | None:
        """Return how often extra rows join the batches of an epoch; None: never."""
        return phase.extra_interval if len(self.tasks[0].extra) else None

    def _step(self, batch: Batch, phase: Phase, rate: Tensor) -> Tensor:
        """Update every member once; return what the learner returns of the batch."""
        rows = gather(self.data, batch.rows)
        for (number, share), chances in zip(self._dropout(), batch.chances, strict=True):
            rows[number].masked_fill_(chances < share, 0)
        with self._autocast():
            parts = self.loss(rows, batch, phase)
        # _Members are independent: the gradient of the sum is each member's own.
        gradients = torch.autograd.grad(parts[0].sum(), self.parameters, materialize_grads=True)
        self.optimizer.step(
            gradients,
            rate,
            weight_decay=self.schedule.weight_decay,
            max_norm=self.schedule.max_grad_norm,
        )
        return torch.stack(parts).detach().float()

    def _dropout(self) -> list[tuple[int, float]]:
        """Return the parts of the data that are seen in part, and what share is lost."""
        shares = enumerate(self.schedule.context_dropout, 1)
        return [(number, share) for number, share in shares if share]

    def _autocast(self) -> AbstractContextManager[object]:
        if self.schedule.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def _learned(self) -> _State:
        """Return all that members learn, ``(members, ...)`` by name."""
        tensors = {f"network.{k}": v for k, v in state_of(self.learner.stacks).items()}
        return tensors | {f"learner.{k}": v for k, v in self.learner.state().items()}

    def _state(self) -> _State:
        tensors = self._learned()
        tensors |= {f"optimizer.{k}": v for k, v in self.optimizer.state.items()}
        for name, values in self.history.curves().items():
            tensors[f"history.{name}"] = torch.from_numpy(values)
        if self.stopping is not None:
            for name, value in self.stopping.state().items():
                tensors[f"stopping.{name}"] = value
        return tensors

    def _keep(
        self, file: CheckpointFile | None, epoch: int, *, at_any_cost: bool = False
    ) -> None:
        """Write the state after so many epochs, unless that would take long."""
        if file is None:
            return
        state = self._state()
        if at_any_cost or file.affords(state):
            file.write(Checkpoint(epoch, state))

    def _resume(self, file: CheckpointFile) -> int:
        """Continue from the checkpoint, if there is one; return the epochs done."""
        checkpoint = file.read()
        if checkpoint is None:
            return 0
        self._load(checkpoint.tensors)
        return checkpoint.epoch

    def _load(self, state: Mapping[str, Tensor]) -> None:
        """Take up where `_state` was taken, or what `_learned` returned."""
        parts = _by_part(state)
        load_state(self.learner.stacks, parts["network"])
        self.learner.load(parts.get("learner", {}))
        if "optimizer" not in parts:  # of the best epochs, or of a run that ended
            return
        self.optimizer.load(parts["optimizer"])
        self.history = History(
            {name: value.numpy() for name, value in parts["history"].items()}
        )
        if self.stopping is not None:
            self.stopping.load(parts["stopping"], self.device)

    def _results(self, n_epochs: int, state: _State | None) -> list[Trained[Any]]:
        best_epoch = np.full(self.n_members, n_epochs)
        if self.stopping is not None and self.stopping.best is not None:
            best, best_epoch = self.stopping.best
            self._load(best)
        results, start = [], 0
        for task in self.tasks:
            own = slice(start, start + len(task.seeds))
            start = own.stop
            results.append(
                Trained(
                    self.learner.select(own),
                    self.history.curves(own),
                    best_epoch[own],
                    state and {name: _members(name, v, own) for name, v in state.items()},
                )
            )
        return results


def _compiled(loss: _Loss) -> _Loss:
    """Compile a loss for this stack.

    torch keeps compiled versions with a function's code and gives up after eight of them: a run
    with stacks of many sizes would soon fall back to eager execution, so each stack has
    versions of its own. torch before 2.12 cannot do that.
    """
    options: dict[str, Any] = {"isolate_recompiles": True}
    try:
        compiled: _Loss = torch.compile(loss, **options)
    except TypeError:
        compiled = torch.compile(loss)
    return compiled


def _paths(checkpoint: Path | None) -> Iterator[Path | None]:
    """Yield the checkpoint of each stack; all but the first have a number."""
    yield checkpoint
    for index in count(1):
        yield checkpoint and checkpoint.with_name(f"{checkpoint.name}.{index}")


def _by_part(state: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in state.items():
        part, rest = name.split(".", 1)
        parts.setdefault(part, {})[rest] = value
    return parts


# Which parts of a state are the same for all members of a stack.
_COMMON = ("optimizer.step", "history.learning_rate")


def _members(name: str, value: Tensor, own: slice) -> Tensor:
    """Return some members' part of a tensor of the state."""
    if name in _COMMON:
        return value
    return value[:, own] if name.startswith("history.") else value[own]


def _joined(states: Sequence[_State]) -> _State:
    """Return the state of the members of several tasks together."""
    return {
        name: value
        if name in _COMMON
        else torch.cat([s[name] for s in states], 1 if name.startswith("history.") else 0)
        for name, value in states[0].items()
    }
