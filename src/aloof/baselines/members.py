"""The members of a deep baseline: how they score rows, and what they minimise on them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from itertools import groupby
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from torch import Tensor

from aloof.labels import ANOMALY, UNLABELLED
from aloof.problem import Problem
from aloof.scoring import RowReader, over_rows
from aloof.training import Batch, Learner, Phase, Run, Setup, Stack, Task
from aloof.training.rows import gather

__all__ = [
    "Fitted",
    "LearningMembers",
    "Members",
    "RowLearner",
    "balanced_task",
    "digest_of",
    "mixed_task",
    "over_data",
]

_CHUNK = 256  # rows scored at once


class Members(ABC):
    """Networks of K members that score rows ``(members, n, ...)``.

    Parameters
    ----------
    stacks
        All networks, by name.
    tensors
        What else each member has, ``(members, ...)``.

    Attributes
    ----------
    stacks, tensors
        As given.
    """

    def __init__(self, stacks: Mapping[str, Stack], **tensors: Tensor) -> None:
        self.stacks, self.tensors = dict(stacks), tensors

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return next(iter(self.stacks.values())).n_members

    @abstractmethod
    def score(self, x: Tensor) -> Tensor:
        """Return how anomalous each row is ``(members, n)``; higher is worse."""

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes of rows, ``(members, n, size)``."""
        code: Tensor = self.stacks["encoder"](x)
        return code

    def select(self, members: slice) -> Self:
        """Return some of the members, with tensors of their own."""
        stacks = {name: stack.select(members) for name, stack in self.stacks.items()}
        return self._with(stacks, {k: v[members].clone() for k, v in self.tensors.items()})

    def to(self, device: torch.device, dtype: torch.dtype) -> Self:
        """Return a copy on `device` with floating-point tensors of `dtype`, to score."""
        stacks = {name: stack.to(device, dtype) for name, stack in self.stacks.items()}
        return self._with(stacks, {k: v.to(device, dtype) for k, v in self.tensors.items()})

    def _with(self, stacks: dict[str, Stack], tensors: dict[str, Tensor]) -> Self:
        other = copy(self)
        other.stacks, other.tensors = stacks, tensors
        return other


class LearningMembers(Members):
    """Members that learn what is a mean over rows.

    Numbers that the loss depends on are plain attributes: checkpoints of others are refused by
    them. What is set and not learned is one of `tensors`, ``(members, ...)``, and changed in
    place: then it is selected, moved and kept in checkpoints, and a recorded step sees it.
    """

    # Random numbers that the loss of a row takes.
    noise_size: int = 0

    @abstractmethod
    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return what is minimised, for each row ``(members, n)``.

        Parameters
        ----------
        x
            Rows.
        labels
            1 anomaly, 0 normal, -1 unlabelled, ``(members, n)``.
        noise
            Standard normal, ``(members, n, noise_size)``.
        """

    def after_epoch(self, epoch: int, setup: Setup) -> None:
        """Set, in place, what is not learned by gradients; see `by_task`."""

    def by_task(self, setup: Setup) -> Iterator[tuple[Task, slice, Self]]:
        """Yield every task with the places of its members and those members."""
        start = 0
        for task, members in groupby(setup.tasks):  # they stand side by side
            part = slice(start, start := start + len(list(members)))
            yield task, part, self.select(part)


class RowLearner(Learner):
    """`LearningMembers` as a learner.

    Parameters
    ----------
    make
        Makes the members.
    setup
        What they are made for.
    """

    def __init__(self, make: Callable[[Setup], LearningMembers], setup: Setup) -> None:
        self.members, self._setup = make(setup), setup
        self.noise_size = self.members.noise_size

    @property
    def stacks(self) -> Mapping[str, Stack]:
        """All networks, by name."""
        return self.members.stacks

    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        """Return the mean over the rows of a batch; extra rows are anomalies."""
        x, noise, labels = rows[0], batch.noise, batch.labels
        if labels is None:
            labels = torch.full(x.shape[:2], UNLABELLED, device=x.device)
        if batch.extra_noise is not None:
            noise = torch.cat([noise, batch.extra_noise[0]], 1)
            anomalies = labels.new_full(noise.shape[:2], ANOMALY)[:, batch.n_rows :]
            labels = torch.cat([labels[:, : batch.n_rows], anomalies], 1)
        return (self.members.row_loss(x, labels, noise).mean(1),)

    def phase(self, epoch: int) -> Phase:
        """Return that extra rows, where there are any, join every batch."""
        return Phase(extra_interval=1)

    def after_epoch(self, epoch: int) -> None:
        """Set what members do not learn by gradients."""
        self.members.after_epoch(epoch, self._setup)

    def select(self, members: slice) -> Members:
        """Return some members."""
        return self.members.select(members)

    def held_out_loss(self) -> NDArray[np.float64]:
        """Return minus each member's AUROC on the rows that its task holds out.

        NaN, which is never better, for a member whose scores are not finite: its loss will not
        be either.
        """
        return np.concatenate(
            [
                self._judged(members, task)
                for task, _, members in self.members.by_task(self._setup)
            ]
        )

    def _judged(self, members: Members, task: Task) -> NDArray[np.float64]:
        rows = np.concatenate([task.held_out, task.held_out_extra])
        truth = np.repeat([0, 1], [len(task.held_out), len(task.held_out_extra)])
        scores = over_data(members.score, self._setup, rows, members.n_members).cpu().numpy()
        return np.array(
            [-roc_auc_score(truth, s) if np.isfinite(s).all() else np.nan for s in scores]
        )

    def settings(self) -> object:
        """Return the numbers that the members' loss depends on."""
        own = vars(self.members).items()
        numbers = {name: repr(v) for name, v in own if name not in ("stacks", "tensors")}
        return type(self.members).__qualname__, sorted(numbers.items())

    def state(self) -> dict[str, Tensor]:
        """Return what members have beside networks."""
        return self.members.tensors

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up where `state` was taken, in place."""
        for name, value in self.members.tensors.items():
            value.copy_(state[name])


class Fitted:
    """The trained members of one problem.

    Parameters
    ----------
    members
        What was trained.
    history
        Curves ``(epochs, members)`` by name.
    device, dtype
        Where and in what to score.

    Attributes
    ----------
    members, history
        As given.
    """

    def __init__(
        self,
        members: Members,
        history: Mapping[str, NDArray[np.float64]],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.members, self.history = members.to(device, dtype), history
        self._device, self._dtype = device, dtype

    def select(self, members: slice) -> Fitted:
        """Return some of the members."""
        history = {  # the rate is the same for all
            name: curve if curve.ndim == 1 else curve[:, members]
            for name, curve in self.history.items()
        }
        own = self.members.select(members)
        return Fitted(own, history, self._device, self._dtype)

    def score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's scores ``(members, n)``; higher is worse.

        The score of an ensemble is the mean over members.

        Parameters
        ----------
        X
            Rows; images are bytes, or numbers in [0, 1].
        """
        return self._applied(self.members.score, X)

    def encode(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's codes of rows, ``(members, n, size)``."""
        return self._applied(self.members.encode, X)

    def _applied(
        self, function: Callable[[Tensor], Tensor], X: NDArray[Any]
    ) -> NDArray[np.float64]:
        data = [torch.from_numpy(np.ascontiguousarray(X))]
        return _over(
            function,
            lambda chunk: gather(data, torch.arange(len(X))[chunk]),
            len(X),
            self.members.n_members,
            self._device,
            self._dtype,
        )


def over_data(
    function: Callable[[Tensor], Tensor],
    where: Setup | Run,
    rows: NDArray[np.int64],
    n_members: int,
) -> Tensor:
    """Apply a function of ``(members, n, ...)`` to some rows of the data, for all members.

    Returns
    -------
    Tensor ``(members, len(rows), ...)`` on the device of the data.
    """
    first = where.data[0].dtype
    dtype = first if first.is_floating_point else torch.float32
    chosen = torch.from_numpy(rows).to(where.device)
    found = _over(
        function,
        lambda chunk: gather(where.data, chosen[chunk]),
        len(rows),
        n_members,
        where.device,
        dtype,
    )
    return torch.from_numpy(found).to(where.device, dtype)


def _over(
    function: Callable[[Tensor], Tensor],
    rows: RowReader,
    n_rows: int,
    n_members: int,
    device: torch.device,
    dtype: torch.dtype,
) -> NDArray[np.float64]:
    return over_rows(
        function, rows, n_rows, _CHUNK, n_members=n_members, device=device, dtype=dtype
    )


def mixed_task(problem: Problem) -> Task:
    """Return a task whose batches are drawn from normal rows and anomalies alike.

    Both pass through batch normalisation together.
    """
    return Task(
        rows=np.concatenate([problem.normal, problem.anomaly]),
        labels=np.concatenate(
            [_normal_labels(problem), np.full(len(problem.anomaly), ANOMALY)]
        ),
        held_out=problem.validation_normal,
        held_out_extra=problem.validation_anomaly,
        seeds=problem.seeds,
        setting=digest_of(problem),
    )


def digest_of(problem: Problem) -> str:
    """Return what tells the normal rows of a problem from those of others."""
    return hashlib.sha256(np.ascontiguousarray(problem.normal, np.int64).tobytes()).hexdigest()


def balanced_task(problem: Problem) -> Task:
    """Return a task whose batches are half anomalies, all of them equally often."""
    return Task(
        rows=problem.normal,
        labels=_normal_labels(problem),
        extra=problem.anomaly,
        seeds=problem.seeds,
    )


def _normal_labels(problem: Problem) -> NDArray[np.int64]:
    known = np.zeros(len(problem.normal), bool) if problem.known is None else problem.known
    return np.where(known, 0, UNLABELLED)
