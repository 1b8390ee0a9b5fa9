"""What is trained: the networks of some members, and what they minimise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.training.batches import Batch
from aloof.training.seeds import Stream, derive, seeded
from aloof.training.stack import Engine, Stack
from aloof.training.task import Task

__all__ = ["Learner", "LearnerFactory", "Phase", "Setup"]


@dataclass(frozen=True, eq=False)
class Setup:
    """What the members of one stack are made for.

    Attributes
    ----------
    tasks
        The task of each member.
    seeds
        The seed of each member.
    data
        The rows that all tasks index, and their context.
    example
        A few of them, as networks take them.
    device, dtype, engine
        Where and how to compute.
    """

    tasks: Sequence[Task]
    seeds: Sequence[int]
    data: Sequence[Tensor]
    example: Sequence[Tensor]
    device: torch.device
    dtype: torch.dtype
    engine: Engine

    def build(self, factory: Callable[[], Sequence[nn.Module]]) -> list[list[nn.Module]]:
        """Make the networks of every member from its own seed.

        Returns
        -------
        For each network that `factory` makes, those of all members.
        """
        made = []
        for seed in self.seeds:
            with seeded(derive(seed, Stream.INITIALISE), torch.device("cpu")):
                made.append([network.to(self.dtype) for network in factory()])
        return [list(networks) for networks in zip(*made, strict=True)]

    def stack(self, networks: Sequence[nn.Module], example: Sequence[Tensor]) -> Stack:
        """Stack one network of every member; `example` are inputs ``(n, ...)`` of a member."""
        inputs = [part.expand(len(self.seeds), *part.shape) for part in example]
        return Stack(networks, engine=self.engine, example=inputs, device=self.device)


@dataclass(frozen=True)
class Phase:
    """What is special about an epoch.

    Attributes
    ----------
    extra_interval
        Extra rows join every so many batches; None: none.
    numbers
        Tensors that the loss depends on, of the same shapes in every epoch.
    kind
        What makes the loss another computation.
    complete
        Whether the loss is the one that members are judged by, so that they may stop.
    """

    extra_interval: int | None = None
    numbers: Mapping[str, Tensor] = field(default_factory=dict)
    kind: Hashable = None
    complete: bool = True


class Learner(ABC):
    """Members that are trained together.

    A learner has networks, says what is minimised on a batch, and whatever its phases need.
    Everything else (batches, optimiser, precision, replay on a GPU, checkpoints, stopping) is
    the trainer's. Members must not influence each other, and all random numbers come with the
    batch: then member k is what it would be if it were trained alone.
    """

    # Random numbers that the loss of a row takes, and how often for each of the extra rows.
    noise_size: int = 0
    extra_samples: int = 1
    # Extra rows in a batch that has any; None: as many as other rows.
    extra_size: int | None = None
    # What `loss` returns; the first one is minimised.
    curves: tuple[str, ...] = ("loss",)

    @property
    @abstractmethod
    def stacks(self) -> Mapping[str, Stack]:
        """All networks, by name."""

    @abstractmethod
    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        """Return what `curves` names, each ``(members,)``, of a batch.

        Parameters
        ----------
        rows
            Data ``(members, n, ...)`` and its context.
        batch
            Labels and noise.
        phase
            The epoch's.
        """

    @abstractmethod
    def select(self, members: slice) -> Any:
        """Return what is left of some members after the training, with tensors of their own."""

    def phase(self, epoch: int) -> Phase:
        """Return what is special about an epoch, counted from 0."""
        return Phase()

    def summary(
        self, sums: Mapping[str, NDArray[np.float64]], n_steps: int, n_extra: int, phase: Phase
    ) -> dict[str, NDArray[np.float64]]:
        """Return an epoch's point of each curve, ``(members,)``.

        Parameters
        ----------
        sums
            Of what `loss` returned, over the batches.
        n_steps, n_extra
            Batches, and batches with extra rows.
        phase
            The epoch's.
        """
        return {name: total / n_steps for name, total in sums.items()}

    def after_epoch(self, epoch: int) -> None:  # noqa: B027 - few have anything to do
        """Do what has to be done between epochs."""

    def held_out_loss(self) -> NDArray[np.float64]:
        """Return the loss of each member on the rows its task holds out."""
        raise NotImplementedError(f"{type(self).__name__} cannot stop early.")

    def settings(self) -> object:
        """Return what its results depend on beside tasks, networks and schedule."""
        return None

    def state(self) -> dict[str, Tensor]:
        """Return what it learns beside its networks, ``(members, ...)``, by name."""
        return {}

    def load(self, state: Mapping[str, Tensor]) -> None:  # noqa: B027 - nor to load
        """Take up where `state` was taken."""


LearnerFactory = Callable[[Setup], Learner]
"""Makes the untrained members of a stack."""
