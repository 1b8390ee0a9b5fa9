"""Train VAEs: problems in, ensembles out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.networks import Architecture
from aloof.training import ProgressCallback, Run, Trained, joined_history, stacks_of
from aloof.vae.config import TrainingConfig
from aloof.vae.ensemble import Ensemble
from aloof.vae.learner import VAELearner
from aloof.vae.problem import VAEProblem
from aloof.vae.warmup import share_warmups

__all__ = ["FitResult", "count_epochs", "train"]


@dataclass(frozen=True)
class FitResult:
    """A trained problem.

    Attributes
    ----------
    ensemble
        Its members.
    history
        Curves ``(epochs, members)`` by name; see `VAELearner.summary`.
    best_epoch
        The epoch each member's state is from, counted from 1.
    warmup
        The plain VAEs that the members were before anomalies joined, where other problems
        share that warm-up; None where none does.
    """

    ensemble: Ensemble
    history: dict[str, NDArray[np.float64]]
    best_epoch: NDArray[np.int64]
    warmup: FitResult | None = None

    @classmethod
    def of(cls, trained: Trained[Ensemble], warmup: FitResult | None = None) -> FitResult:
        """Return what was trained, as the result of a problem."""
        return cls(trained.members, trained.history, trained.best_epoch, warmup)

    @classmethod
    def joined(cls, parts: Sequence[FitResult]) -> FitResult:
        """Return one result for members that learned problems of their own."""
        return cls(
            Ensemble.joined([part.ensemble for part in parts]),
            joined_history([part.history for part in parts]),
            np.concatenate([part.best_epoch for part in parts]),
        )


def train(
    data: Sequence[Tensor],
    problems: Sequence[VAEProblem],
    architecture: Architecture,
    config: TrainingConfig,
    *,
    device: torch.device,
    start: Sequence[Mapping[str, Tensor]] | None = None,
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[FitResult]:
    """Train every member of every problem.

    Problems whose batches have the same shape are trained as one stack. A member's result
    does not depend on what it is stacked with: it is that of the member trained alone, up
    to floating-point rounding. Problems that differ only in what anomalies teach share one
    warm-up.

    Parameters
    ----------
    data
        The rows all problems index, ``(n, ...)``, and their context, if any.
    problems
        What to learn.
    architecture
        What makes a member's networks.
    config
        The schedule.
    device
        Where to compute.
    start
        For each problem the `Ensemble.state` to begin with, in place of fresh networks; there
        is no warm-up to share then. Not with a checkpoint, which does not know of it.
    checkpoint
        File to keep the state in; if it holds the state of this very fit, that fit is
        continued. Further stacks add a number to the name. The files are left behind, so
        that a run of several calls can be resumed; see `aloof.training.discard_checkpoints`.
    on_epoch
        Called after each epoch.

    Returns
    -------
    One result for each problem, in order.
    """
    if start is not None and checkpoint is not None:
        raise ValueError("A fit that begins with given networks has no checkpoint.")
    run = Run(
        data,
        device=device,
        checkpoint=checkpoint,
        n_epochs=count_epochs(problems, config),
        on_epoch=on_epoch,
    )
    if start is not None:
        networks = [{f"network.{k}": v for k, v in state.items()} for state in start]
        trained = run.train(
            [problem.task() for problem in problems],
            partial(VAELearner, architecture, config),
            config.schedule,
            start=networks,
        )
        return [FitResult(each.members, each.history, each.best_epoch) for each in trained]
    warmups = share_warmups(problems, config)
    warmup = replace(config, max_epochs=config.warmup_epochs, warmup_epochs=0)
    begun = run.train(
        [problem.task() for problem in warmups.problems],
        partial(VAELearner, architecture, warmup),
        # The rate is that of the whole: it decays after the warm-up, not during it.
        replace(config.schedule, max_epochs=config.warmup_epochs),
        keep_state=True,
    )
    trained = run.train(
        [problem.task() for problem in problems],
        partial(VAELearner, architecture, config),
        config.schedule,
        start=[None if number is None else begun[number].state for number in warmups.of],
        first_epoch=config.warmup_epochs,
    )
    first = [FitResult.of(each) for each in begun]
    return [
        FitResult.of(each, None if number is None else first[number])
        for each, number in zip(trained, warmups.of, strict=True)
    ]


def count_epochs(problems: Sequence[VAEProblem], config: TrainingConfig) -> int:
    """Return the epochs that `train` will report, over all stacks."""
    warmups = share_warmups(problems, config)
    first = stacks_of([p.task() for p in warmups.problems], config.batch_size)
    begun = [number is not None for number in warmups.of]
    stacks = stacks_of([p.task() for p in problems], config.batch_size, begun)
    n_begun = sum(begun[numbers[0]] for numbers in stacks)
    return len(stacks) * config.max_epochs + (len(first) - n_begun) * config.warmup_epochs
