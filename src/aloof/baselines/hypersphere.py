"""What Deep SVDD and Deep SAD share: pre-training, the centre, the distance to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast

import torch
from torch import Tensor

from aloof.baselines.autoencoder import AutoencoderMembers
from aloof.baselines.deep import MILESTONES, DeepBaseline, epochs_of
from aloof.baselines.members import (
    LearningMembers,
    RowLearner,
    digest_of,
    mixed_task,
    over_data,
)
from aloof.baselines.networks import Networks
from aloof.estimators._parameters import Check, integer, real
from aloof.problem import Problem
from aloof.training import Run, Schedule, Setup, Stack, Task, Trained

__all__ = ["HypersphereBaseline", "Spheres", "centre_of"]

_NEAREST_TO_ZERO = 0.1

_Key = tuple[str, int]  # normal rows, and a seed


def centre_of(codes: Tensor) -> Tensor:
    """Return the mean code, ``(..., n, size)`` to ``(..., size)``.

    No coordinate of it is nearer to zero than 0.1: there, all-zero weights would meet it.
    """
    centre = codes.mean(-2)
    sign = torch.where(centre < 0, -1.0, 1.0).to(centre.dtype)
    return torch.where(centre.abs() < _NEAREST_TO_ZERO, sign * _NEAREST_TO_ZERO, centre)


class Spheres(LearningMembers):
    """Bias-free encoders and a centre for each, ``(members, size)``; the score is the distance.

    Parameters
    ----------
    encoder
        The networks.
    centre
        A point of each representation.
    """

    def __init__(self, encoder: Stack, centre: Tensor) -> None:
        super().__init__({"encoder": encoder}, centre=centre)

    def distance(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the squared distance of each row to the centre, ``(members, n)``."""
        code: Tensor = self.stacks["encoder"](x, training=training)
        return (code - self.tensors["centre"].unsqueeze(1)).square().sum(-1)

    def score(self, x: Tensor) -> Tensor:
        """Return the squared distance."""
        return self.distance(x, training=False)


@dataclass(kw_only=True, repr=False, eq=False)
class HypersphereBaseline(DeepBaseline):
    """The distance to a centre in the representation of a pre-trained, bias-free encoder.

    The autoencoders it is pre-trained with learn from normal rows alone. The authors of Deep
    SAD leave labelled anomalies in; left out, one autoencoder serves all problems with the same
    normal rows and seed, whatever their anomalies.

    Parameters
    ----------
    pretrain_epochs
        Passes of the autoencoder whose encoder is the starting point; 0: start from random
        weights. The paper's "ill-trained" autoencoders have 10.
    pretrain_learning_rate, pretrain_milestones, pretrain_weight_decay
        Of the autoencoder, as `learning_rate` and so on.

    Notes
    -----
    The other parameters are those of `DeepBaseline`.
    """

    pretrain_epochs: int = 150
    pretrain_learning_rate: float = 1e-4
    pretrain_milestones: tuple[int, ...] | None = None
    pretrain_weight_decay: float = 5e-4
    learning_rate: float = 1e-4

    checks: ClassVar[Mapping[str, Check]] = {
        "pretrain_epochs": integer(0),
        "pretrain_learning_rate": real(0, above=True),
        "pretrain_milestones": MILESTONES,
        "pretrain_weight_decay": real(0),
    }

    @abstractmethod
    def _spheres(self, encoder: Stack, centre: Tensor) -> Spheres:
        """Return members that minimise the method's loss."""

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem)

    def _pretraining(self) -> Schedule:
        return self._lasting(
            self.pretrain_epochs,
            self.pretrain_milestones,
            learning_rate=self.pretrain_learning_rate,
            weight_decay=self.pretrain_weight_decay,
        )

    def _n_epochs(self, data: Tensor, problems: Sequence[Problem]) -> int:
        first = [mixed_task(problem) for problem in _distinct(problems).values()]
        return super()._n_epochs(data, problems) + epochs_of(first, self._pretraining())

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[Spheres]]:
        first = _distinct(problems)
        build = partial(AutoencoderMembers.build, networks, bias=False)
        pretrained = run.train(
            [mixed_task(problem) for problem in first.values()],
            partial(RowLearner, build),
            self._pretraining(),
        )
        encoders = {
            key: cast(Stack, trained.members.stacks["encoder"])
            for key, trained in zip(first, pretrained, strict=True)
        }
        del pretrained  # the decoders are done
        tasks = [self._task(problem) for problem in problems]
        learner = partial(RowLearner, partial(self._started, encoders, first))
        return run.train(tasks, learner, self._schedule())

    def _started(
        self, encoders: Mapping[_Key, Stack], first: Mapping[_Key, Problem], setup: Setup
    ) -> Spheres:
        """Return members that begin with encoders of trained autoencoders."""
        keys = [(str(t.setting), s) for t, s in zip(setup.tasks, setup.seeds, strict=True)]
        centres = {
            key: centre_of(over_data(encoders[key], setup, first[key].normal, 1))[0]
            for key in dict.fromkeys(keys)
        }
        encoder = Stack.joined([encoders[key] for key in keys])
        return self._spheres(encoder, torch.stack([centres[key] for key in keys]))


def _distinct(problems: Sequence[Problem]) -> dict[_Key, Problem]:
    """Return problems of one member and no anomaly, one for each normal rows and seed."""
    return {
        (digest_of(problem), seed): replace(problem.without_anomalies(), seeds=(seed,))
        for problem in problems
        for seed in problem.seeds
    }
