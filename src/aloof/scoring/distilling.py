"""Fewer members that give the scores of all of them.

Members of an ensemble disagree most where they know least, and their mean is better than any
of them. A member that is trained further to give the ensemble's scores, instead of its own,
comes close to it in a fraction of the time [1]_. It learns from normal rows and from many that
are not quite: with columns of other rows, with values moved, with noise, between and beyond
two rows. Its scores stay those of a VAE: they can be explained, calibrated and saved.

References
----------
.. [1] Hinton, Vinyals & Dean, "Distilling the knowledge in a neural network", 2015.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.objectives import gaussian_kl
from aloof.scoring.aggregate_prior import AggregatePrior
from aloof.scoring.direction_penalty import DirectionPenalty
from aloof.scoring.scorer import Scorer
from aloof.training import Batch, Learner, Phase, Run, Schedule, Setup, Stack, Stream, Task
from aloof.training.seeds import derive
from aloof.vae import Ensemble, FitResult, Objective, log_likelihood

__all__ = ["Distilled", "distil", "perturbed"]

_N_ROWS = 20_000  # to learn from
_SCHEDULE = Schedule(
    max_epochs=24, batch_size=256, learning_rate=1e-3, cosine_from=0, max_grad_norm=10.0
)


@dataclass(frozen=True)
class Distilled:
    """Members that give the scores of more.

    Attributes
    ----------
    members
        Which of the ensemble they began as.
    result
        They themselves, and how they learned.
    prior, penalty
        What their codes are compared with.
    """

    members: list[int]
    result: FitResult
    prior: AggregatePrior | None
    penalty: DirectionPenalty | None


def distil(
    scorer: Scorer,
    ensemble: Ensemble,
    prior: AggregatePrior | None,
    penalty: DirectionPenalty | None,
    rows: NDArray[np.float32],
    seeds: Sequence[int],
    n_members: int,
    *,
    wanted: Callable[[NDArray[np.float32]], NDArray[np.float64]] | None = None,
) -> Distilled:
    """Train a few members to give the scores of all, or to rank rows as others do.

    Parameters
    ----------
    scorer
        What gives the scores.
    ensemble, prior, penalty
        What it was made from.
    rows
        Mostly normal ones, scaled, ``(n, n_features)``.
    seeds
        Of all members.
    n_members
        How many to keep: those that agree best with what is wanted.
    wanted
        Anomaly scores of such rows, in a unit of their own; None: the mean over all members.
    """
    rng = np.random.default_rng(derive(seeds[0], Stream.DISTIL))
    pool = perturbed(rows, _N_ROWS, rng)
    scores = -scorer.member_scores(lambda chunk: pool[chunk], len(pool))
    own = -scorer.score(lambda chunk: rows[chunk], min(len(rows), _N_ROWS))
    level = _Level.of(own)
    goal = level(torch.from_numpy(scores.mean(0)))
    if wanted is not None:
        goal = _Level.of(wanted(rows[:_N_ROWS]))(torch.from_numpy(wanted(pool)))
    far = (level(torch.from_numpy(scores)) - goal).square().mean(1)
    members = sorted(torch.argsort(far, stable=True)[:n_members].tolist())
    task = Task(rows=np.arange(len(pool)), seeds=[seeds[k] for k in members])
    start = _Start(
        Ensemble(ensemble.encoder.select(members), ensemble.decoder.select(members)),
        scorer.objective,
        None if prior is None else prior.select(members),
        None if penalty is None else penalty.select(members),
        level,
    )
    run = Run([torch.from_numpy(pool), goal.float()], device=torch.device("cpu"))
    (trained,) = run.train([task], partial(_Imitation, start), _SCHEDULE)
    found, prior = trained.members
    result = FitResult(found, trained.history, trained.best_epoch)
    return Distilled(members, result, prior, start.penalty)


def perturbed(
    rows: NDArray[np.float32], n: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return about `n` rows: some as they are, others changed in several ways.

    Parameters
    ----------
    rows
        Scaled to a variance of about 1, ``(n, d)``.
    n
        How many rows to return.
    rng
        What draws them.
    """
    d, size = rows.shape[1], n // 5

    def some() -> NDArray[np.float32]:
        return rows[rng.integers(len(rows), size=size)]

    def chosen(power: int, most: float) -> NDArray[np.bool_]:
        """Choose columns of each row: mostly few, at times many."""
        share = most * rng.random((size, 1)) ** power + 1 / d
        found: NDArray[np.bool_] = rng.random((size, d)) < share
        return found

    def spread(least: float, most: float) -> NDArray[np.float64]:
        return np.exp(rng.uniform(np.log(least), np.log(most), (size, 1)))

    noise = rng.standard_normal((2, size, d))
    first, second = some(), some()
    parts = [
        some(),
        np.where(chosen(2, 0.8), some(), some()),
        some() + chosen(3, 0.5) * noise[0] * spread(0.5, 6.0),
        some() + noise[1] * spread(0.05, 2.0),
        first + (second - first) * rng.uniform(-0.7, 1.7, (size, 1)),
    ]
    return np.concatenate(parts).astype(np.float32)


@dataclass(frozen=True)
class _Level:
    """Scores as members compare them: evenly among normal rows, by ratios far from them."""

    middle: float
    unit: float

    @classmethod
    def of(cls, scores: NDArray[np.float64]) -> _Level:
        middle = float(np.median(scores))
        unit = float(np.median(np.abs(scores - middle)))
        return cls(middle, max(unit, 1e-6 * abs(middle), 1e-12))

    def __call__(self, scores: Tensor) -> Tensor:
        return torch.asinh((scores - self.middle) / self.unit)


@dataclass(frozen=True)
class _Start:
    """The members before they are trained further."""

    ensemble: Ensemble
    objective: Objective
    prior: AggregatePrior | None
    penalty: DirectionPenalty | None
    level: _Level


class _Codes(nn.Module):
    """What codes are compared with, as something that learns."""

    stackable = True

    def __init__(self, mean: Tensor, log_var: Tensor) -> None:
        super().__init__()
        self.mean, self.log_var = (nn.Parameter(part.clone()) for part in (mean, log_var))


class _Imitation(Learner):
    """Members that learn scores.

    Parameters
    ----------
    start
        What they are in the beginning.
    setup
        What they learn from: rows, and the scores they should have.
    """

    def __init__(self, start: _Start, setup: Setup) -> None:
        self._start = start
        self._ensemble = Ensemble(
            Stack.joined([start.ensemble.encoder]), Stack.joined([start.ensemble.decoder])
        )
        self._codes: Stack | None = None
        if start.prior is not None:
            codes = [
                _Codes(*pair)
                for pair in zip(start.prior.mean, start.prior.log_var, strict=True)
            ]
            self._codes = setup.stack(codes, [])

    @property
    def stacks(self) -> Mapping[str, Stack]:
        """Networks, and codes."""
        codes = {} if self._codes is None else {"codes": self._codes}
        return {**self._ensemble.stacks, **codes}

    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        """Return how far scores are from those wanted."""
        x, wanted = rows
        start = self._start
        mean, log_var = self._ensemble.encode([x], training=False)
        score = -log_likelihood(start.objective, x, self._ensemble.decoder(mean))
        prior = self._prior()
        divergence = (
            gaussian_kl(mean, log_var) if prior is None else prior.divergence(mean, log_var)
        )
        score = score + start.objective.beta_kl * divergence
        if start.penalty is not None:
            score = score + start.penalty.charge(mean)
        return ((start.level(score) - wanted).square().mean(1),)

    def select(self, members: slice) -> tuple[Ensemble, AggregatePrior | None]:
        """Return some members, and what their codes are compared with."""
        if (prior := self._prior()) is None:
            return self._ensemble.select(members), None
        own = prior.select(members)
        own = AggregatePrior(own.mean.detach().clone(), own.log_var.detach().clone())
        return self._ensemble.select(members), own

    def _prior(self) -> AggregatePrior | None:
        if self._codes is None:
            return None
        held = self._codes.parameters
        return AggregatePrior(held["mean"], held["log_var"])
