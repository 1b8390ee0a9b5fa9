"""Warm-ups that are the same computation: trained once, and shared.

Before anomalies join, every method is the plain VAE. Problems that have the same normal rows,
seeds and KL weight are then the same, whatever their method, anomalies or other numbers: a
comparison of three methods, or of five shares of labelled anomalies, has one warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from aloof.vae.config import TrainingConfig
from aloof.vae.problem import VAEProblem

__all__ = ["SharedWarmups", "share_warmups"]


@dataclass(frozen=True)
class SharedWarmups:
    """What to train first, and for whom.

    Attributes
    ----------
    problems
        The warm-ups: problems of the plain VAE.
    of
        For each of the original problems, the number of its warm-up, or None.
    """

    problems: Sequence[VAEProblem]
    of: Sequence[int | None]


def share_warmups(problems: Sequence[VAEProblem], config: TrainingConfig) -> SharedWarmups:
    """Find the problems that can share a warm-up; those that are alone have none."""
    nothing = SharedWarmups([], [None] * len(problems))
    if not config.warmup_epochs or config.warmup_epochs >= config.max_epochs:
        return nothing
    if config.separate_encoder or config.patience is not None:
        return nothing
    alike: dict[tuple[object, ...], list[int]] = {}
    for number, problem in enumerate(problems):
        if problem.uses_anomalies:
            alike.setdefault(_key(problem), []).append(number)
    warmups: list[VAEProblem] = []
    of: list[int | None] = [None] * len(problems)
    for numbers in alike.values():
        if len(numbers) < 2:
            continue
        for number in numbers:
            of[number] = len(warmups)
        first = problems[numbers[0]]
        objective = replace(first.objective, method="vae", n_samples=1, jitter=0.0)
        warmups.append(replace(first, objective=objective, anomaly=first.anomaly[:0]))
    return SharedWarmups(warmups, of)


def _key(problem: VAEProblem) -> tuple[object, ...]:
    objective = problem.objective
    return (
        np.ascontiguousarray(problem.normal, np.int64).tobytes(),
        tuple(problem.seeds),
        problem.rows_per_epoch,
        objective.beta_kl,
        objective.likelihood,
        objective.reduction,
    )
