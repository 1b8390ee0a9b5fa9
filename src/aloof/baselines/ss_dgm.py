"""SS-DGM: a classifier inside a deep generative model (M1+M2 of Kingma et al.)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from aloof.baselines.contract import LabelUse
from aloof.baselines.deep import DeepBaseline, epochs_of
from aloof.baselines.members import (
    LearningMembers,
    Members,
    RowLearner,
    balanced_task,
    mixed_task,
    over_data,
)
from aloof.baselines.networks import Networks, Perceptron
from aloof.estimators._parameters import Check, integer, or_none, real
from aloof.labels import ANOMALY, UNLABELLED
from aloof.objectives import elbo, gaussian, reparameterize
from aloof.problem import Problem
from aloof.training import Run, Schedule, Setup, Stack, Stream, Task, Trained, derive
from aloof.vae import Ensemble, Objective, TrainingConfig, VAELearner, VAEProblem

__all__ = [
    "SSDGM",
    "CodeClassifiers",
    "GenerativeMembers",
    "LabelledGenerativeModel",
    "StandardCodes",
    "semi_supervised_bound",
]


def semi_supervised_bound(
    joint: Tensor, log_q: Tensor, labels: Tensor, weight: float | Tensor
) -> Tensor:
    """Return what M2 maximises, for each row ``(..., n)``.

    For a labelled row, this is the bound of log p(x, y) and `weight` times log q(y | x). For an
    unlabelled one, it is the bound of log p(x): the sum over y, weighted by the classifier, and
    the classifier's entropy.

    Parameters
    ----------
    joint
        Bounds of log p(x, y) for y = 0 and y = 1, ``(2, ..., n)``.
    log_q
        log q(y | x), ``(2, ..., n)``.
    labels
        1, 0 and -1, ``(..., n)``.
    weight
        Of the classifier.
    """
    unlabelled = (log_q.exp() * (joint - log_q)).sum(0)
    normal, anomaly = (joint + weight * log_q).unbind(0)
    labelled = torch.where(labels == ANOMALY, anomaly, normal)
    return torch.where(labels == UNLABELLED, unlabelled, labelled)


class LabelledGenerativeModel(nn.Module):
    r"""M2: :math:`p(x, y, z) = p(y)\,p(z)\,p(x | y, z)` with a classifier :math:`q(y | x)`.

    Parameters
    ----------
    n_features
        Size of x.
    width
        Of the hidden layers, and of z.
    anomaly_share
        The prior :math:`p(y = 1)`.
    """

    log_prior: Tensor

    def __init__(self, n_features: int, width: int, anomaly_share: float) -> None:
        super().__init__()
        self.classifier = Perceptron((n_features, width, 1), normalise=False)
        self.encoder = Perceptron((n_features + 1, width, 2 * width), normalise=False)
        self.decoder = Perceptron((width + 1, width, n_features), normalise=False)
        prior = torch.tensor([math.log1p(-anomaly_share), math.log(anomaly_share)])
        self.register_buffer("log_prior", prior)

    def logit(self, x: Tensor) -> Tensor:
        """Return the log-odds of :math:`q(y = 1 | x)` for rows ``(n, n_features)``."""
        logit: Tensor = self.classifier(x).squeeze(-1)
        return logit

    def joint_bounds(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return lower bounds of log p(x, y) for y = 0 and y = 1, ``(2, n)``.

        Parameters
        ----------
        x
            Rows, ``(n, n_features)``.
        noise
            Standard normal, ``(n, width)``; both labels share it.
        """
        y = torch.arange(2.0, dtype=x.dtype, device=x.device)
        y = y.reshape(2, 1, 1).expand(2, len(x), 1)
        x = x.expand(2, *x.shape)
        mean, log_var = self.encoder(torch.cat([x, y], -1)).chunk(2, -1)
        z = reparameterize(mean, log_var, noise)
        output = self.decoder(torch.cat([z, y], -1))
        likelihood = gaussian(x, output, x.new_zeros(()), reduction="sum")
        return elbo(likelihood, mean, log_var) + self.log_prior.unsqueeze(-1)

    def objective(self, x: Tensor, labels: Tensor, noise: Tensor, weight: float) -> Tensor:
        """Return the `semi_supervised_bound` of rows.

        Parameters
        ----------
        x, noise
            As in `joint_bounds`.
        labels
            1, 0 and -1, ``(n,)``.
        weight
            Of the classifier.
        """
        logit = self.logit(x)
        log_q = logsigmoid(torch.stack([-logit, logit]))
        return semi_supervised_bound(self.joint_bounds(x, noise), log_q, labels, weight)


class _RowModel(nn.Module):
    """`LabelledGenerativeModel` as a function of what there is of a row."""

    def __init__(self, size: int, anomaly_share: float, weight: float) -> None:
        super().__init__()
        self.model = LabelledGenerativeModel(size, size, anomaly_share)
        self._weight = weight

    def forward(
        self, x: Tensor, labels: Tensor | None = None, noise: Tensor | None = None
    ) -> Tensor:
        if labels is None or noise is None:
            return self.model.logit(x)
        return self.model.objective(x, labels, noise, self._weight)


class CodeClassifiers(LearningMembers):
    """M2 of some members; rows are codes ``(members, n, size)``.

    Attributes
    ----------
    weight
        Of the classifier.
    """

    weight: float

    @classmethod
    def build(
        cls, size: int, anomaly_share: float, weight: float, setup: Setup
    ) -> CodeClassifiers:
        """Initialise members."""
        (made,) = setup.build(lambda: [_RowModel(size, anomaly_share, weight)])
        codes = torch.zeros(2, size, dtype=setup.dtype)
        example = [codes, torch.zeros(2, dtype=torch.int64), codes]
        members = cls({"classifier": setup.stack(made, example)})
        members.noise_size, members.weight = size, weight
        return members

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return minus what `LabelledGenerativeModel.objective` maximises."""
        gain: Tensor = self.stacks["classifier"](x, labels, noise, training=True)
        return -gain

    def score(self, x: Tensor) -> Tensor:
        """Return the logit."""
        logit: Tensor = self.stacks["classifier"](x)
        return logit


@dataclass(frozen=True, eq=False)
class StandardCodes:
    """M1 of some members: posterior means, standardised on the rows learned from.

    Attributes
    ----------
    encoder
        The VAEs' encoders.
    mean, scale
        Of each member's codes, ``(members, 1, size)``.
    """

    encoder: Stack
    mean: Tensor
    scale: Tensor

    @classmethod
    def measured(cls, encoder: Stack, run: Run, problem: Problem) -> StandardCodes:
        """Learn mean and scale from all rows of a problem."""
        rows = mixed_task(problem).rows
        codes = over_data(lambda x: encoder(x)[0], run, rows, encoder.n_members)
        scale, mean = torch.std_mean(codes, 1, correction=0, keepdim=True)
        return cls(encoder, mean, torch.where(scale > 0, scale, torch.ones_like(scale)))

    def __call__(self, x: Tensor) -> Tensor:
        """Return the codes of rows, ``(members, n, size)``."""
        code: Tensor = self.encoder(x)[0]
        return (code - self.mean) / self.scale


class GenerativeMembers(Members):
    """M1 and M2 of some members; the score is M2's logit of M1's codes.

    Parameters
    ----------
    codes
        M1.
    classifier
        M2.
    """

    def __init__(self, codes: StandardCodes, classifier: Stack) -> None:
        stacks = {"encoder": codes.encoder, "classifier": classifier}
        super().__init__(stacks, mean=codes.mean, scale=codes.scale)

    def encode(self, x: Tensor) -> Tensor:
        """Return the standardised codes."""
        return StandardCodes(self.stacks["encoder"], **self.tensors)(x)

    def score(self, x: Tensor) -> Tensor:
        """Return the logit."""
        logit: Tensor = self.stacks["classifier"](self.encode(x))
        return logit


@dataclass(kw_only=True, repr=False, eq=False)
class SSDGM(DeepBaseline):
    """Semi-supervised deep generative model; the score is its classifier's logit.

    M1 is a VAE of all rows. M2 models its standardised codes together with the label, and sums
    over the label where there is none. Every batch of M2 is half labelled anomalies, all of
    them equally often.

    Parameters
    ----------
    anomaly_share
        Prior probability that a row is an anomaly.
    classifier_weight
        Weight of the cross-entropy of labelled rows.
    pretrain_epochs, pretrain_learning_rate, beta_kl
        Of M1; None: those of M2.

    Notes
    -----
    The other parameters are those of `DeepBaseline`; codes of M2 are as large as those of M1.
    An epoch of half-anomalous batches has twice the steps of another's, hence half the epochs.
    Rows labelled 0 are labelled rows of class 0.

    References
    ----------
    Kingma et al., "Semi-Supervised Learning with Deep Generative Models", NeurIPS 2014.
    """

    max_epochs: int = 75
    anomaly_share: float = 0.05
    classifier_weight: float = 1.0
    pretrain_epochs: int | None = None
    pretrain_learning_rate: float | None = None
    beta_kl: float = 0.01

    checks: ClassVar[Mapping[str, Check]] = {
        "anomaly_share": real(0, 1, above=True, below=True),
        "classifier_weight": real(0),
        "pretrain_epochs": or_none(integer(1)),
        "pretrain_learning_rate": or_none(real(0, above=True)),
    }

    label_use: ClassVar[LabelUse] = "required"

    def _task(self, problem: Problem) -> Task:
        return balanced_task(problem)

    def _schedule(self, **changes: Any) -> Schedule:
        # The other half of a batch are anomalies; small networks, sums of squares.
        half = max(1, self.batch_size // 2)
        return super()._schedule(batch_size=half, precision="float32", **changes)

    def _first(self) -> TrainingConfig:
        epochs, rate = self.pretrain_epochs, self.pretrain_learning_rate
        epochs = self.max_epochs if epochs is None else epochs
        return TrainingConfig(
            max_epochs=epochs,
            warmup_epochs=0,
            annealing_epochs=2 * epochs // 15,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate if rate is None else rate,
            precision=self.precision,
        )

    def _n_epochs(self, data: Tensor, problems: Sequence[Problem]) -> int:
        first = [self._all_rows(problem).task() for problem in problems]
        return epochs_of(first, self._first().schedule) + super()._n_epochs(data, problems)

    def _all_rows(self, problem: Problem) -> VAEProblem:
        """Return what M1 learns: all rows, taken as normal."""
        return VAEProblem(
            normal=mixed_task(problem).rows,
            seeds=[derive(seed, Stream.MEMBER) for seed in problem.seeds],
            objective=Objective(method="vae", beta_kl=self.beta_kl),
        )

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[GenerativeMembers]]:
        first = [
            StandardCodes.measured(trained.members.encoder, run, problem)
            for problem, trained in zip(
                problems, self._first_models(run, networks, problems), strict=True
            )
        ]
        tasks, blocks, start = [], [], 0
        for problem, codes in zip(problems, first, strict=True):
            rows = mixed_task(problem).rows
            blocks.append(over_data(codes, run, rows, len(problem.seeds)).flatten(0, 1))
            for seed in problem.seeds:  # every member has codes of its own
                places = np.arange(start, start + len(rows))
                normal, anomaly = np.split(places, [len(problem.normal)])
                known = problem.known
                own = Problem(normal=normal, anomaly=anomaly, known=known, seeds=(seed,))
                tasks.append(self._task(own))
                start += len(rows)
        build = partial(
            CodeClassifiers.build, networks.size, self.anomaly_share, self.classifier_weight
        )
        second = run.on_data([torch.cat(blocks)])
        trained = iter(second.train(tasks, partial(RowLearner, build), self._schedule()))
        results = []
        for problem, codes in zip(problems, first, strict=True):
            parts = [next(trained) for _ in problem.seeds]
            classifier = Stack.joined([part.members.stacks["classifier"] for part in parts])
            results.append(Trained.joined(GenerativeMembers(codes, classifier), parts))
        return results

    def _first_models(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[Ensemble]]:
        config = self._first()
        return run.train(
            [self._all_rows(problem).task() for problem in problems],
            partial(VAELearner, networks.vae(), config),
            config.schedule,
        )
