"""M2 and M1+M2 of Kingma et al. (SS-DGM), as Ruff et al. ran them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, softplus

from aloof.baselines.contract import LabelUse
from aloof.baselines.deep import DeepBaseline, epochs_of
from aloof.baselines.members import LearningMembers, RowLearner, digest_of, mixed_task
from aloof.baselines.networks import Networks, Perceptron, networks_for
from aloof.baselines.ss_dgm import semi_supervised_bound
from aloof.estimators._parameters import Check, integer, one_of, or_none, real, widths
from aloof.labels import ANOMALY
from aloof.networks import MLPDecoder, MLPEncoder, count_multiplications
from aloof.objectives import bernoulli, elbo, gaussian, reparameterize
from aloof.problem import Problem
from aloof.training import Batch, Phase, Run, Schedule, Setup, Stack, Task, Trained

__all__ = ["M1M2", "M2", "GenerativeClassifiers", "PerceptronVAEs", "SeparateRows"]

_Likelihood = Literal["bernoulli", "gaussian"]
_Key = tuple[str, int]  # the rows of a problem, and a seed

# Sizes of the generative part by data set, in the code of Ruff et al.; those of CatsVsDogs are
# not there.
PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "mnist": {"hidden": (128, 64, 32)},
    "fashion-mnist": {"hidden": (256, 128, 64)},
    "cifar10": {"hidden": (512, 256, 128)},
}


def _exactly(x: Tensor) -> torch.autocast:
    """Compute in full precision: what is modelled are sums over all numbers of a row."""
    return torch.autocast(x.device.type, enabled=False)


def _posterior(encoder: Stack, x: Tensor, *, training: bool) -> tuple[Tensor, Tensor]:
    """Return mean and log-variance; as published, no variance is below one."""
    mean, raw = encoder(x, training=training)
    return mean, softplus(raw)


def _likelihood_of(kind: _Likelihood, x: Tensor, output: Tensor) -> Tensor:
    if kind == "bernoulli":
        return bernoulli(x, output, reduction="sum")
    return gaussian(x, output, 0.0, reduction="sum")


def _initialised(network: nn.Module) -> nn.Module:
    """Begin with the published weights: normal, as large as Glorot and Bengio say."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_normal_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return network


class PerceptronVAEs(LearningMembers):
    """M1 of some members: VAEs of perceptrons with ReLUs.

    Attributes
    ----------
    likelihood
        What their outputs mean.
    """

    likelihood: _Likelihood

    @classmethod
    def build(
        cls, n_inputs: int, hidden: Sequence[int], likelihood: _Likelihood, setup: Setup
    ) -> Self:
        """Initialise members; the last width is the size of the code."""
        *layers, size = hidden
        encoders, decoders = setup.build(
            lambda: [
                _initialised(MLPEncoder((n_inputs,), size, layers, slope=0.0)),
                _initialised(MLPDecoder((n_inputs,), size, layers, slope=0.0)),
            ]
        )
        row, code = (torch.zeros(2, n, dtype=setup.dtype) for n in (n_inputs, size))
        members = cls(
            {"encoder": setup.stack(encoders, [row]), "decoder": setup.stack(decoders, [code])}
        )
        members.noise_size, members.likelihood = size, likelihood
        return members

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return minus the ELBO of rows, whatever their labels."""
        x = x.flatten(2)
        with _exactly(x):
            mean, log_var = _posterior(self.stacks["encoder"], x, training=True)
            code = reparameterize(mean, log_var, noise)
            output = self.stacks["decoder"](code, training=True)
            return -elbo(_likelihood_of(self.likelihood, x, output), mean, log_var)

    def score(self, x: Tensor) -> Tensor:
        """Return minus the likelihood of rows decoded from their mean codes."""
        x = x.flatten(2)
        output = self.stacks["decoder"](self.encode(x))
        return -_likelihood_of(self.likelihood, x, output)

    def encode(self, x: Tensor) -> Tensor:
        """Return the means of codes, ``(members, n, size)``."""
        return _posterior(self.stacks["encoder"], x.flatten(2), training=False)[0]


class GenerativeClassifiers(LearningMembers):
    r"""M2 of some members, of rows or of codes of an M1; the score is the classifier's logit.

    A row is generated from its label and a latent variable, :math:`p(y)\,p(z)\,p(x | y, z)`,
    with both labels equally likely. M1 is one of the `stacks`, under the name of ``encoder``;
    its parameters are held fixed. Rows are then what M2 generates, and samples of their codes
    what it infers labels and latent variables from.

    Attributes
    ----------
    likelihood
        Of a row.
    """

    likelihood: _Likelihood

    @classmethod
    def build(
        cls,
        networks: Networks,
        baseline: M2,
        likelihood: _Likelihood,
        codes: Stack | None,
        setup: Setup,
    ) -> Self:
        """Initialise members with the parameters of a baseline.

        Parameters
        ----------
        networks
            What makes classifiers of images.
        baseline
            With the other parameters.
        likelihood
            What outputs of the generative part mean.
        codes
            Encoders of M1; None: M2 alone.
        setup
            What they are made for.
        """
        *hidden, size = baseline.hidden
        n_outputs = prod(networks.shape)
        n_inputs = n_outputs if codes is None else size

        def made() -> list[nn.Module]:
            if codes is None and len(networks.shape) == 3:
                classifier = networks.classifier(size=2)
            else:
                sizes = (n_inputs, hidden[0] if hidden else size, 2)
                classifier = Perceptron(sizes, normalise=False, slope=0.0)
            return [
                _initialised(classifier),
                _initialised(MLPEncoder((n_inputs + 2,), size, hidden, slope=0.0)),
                _initialised(MLPDecoder((n_outputs,), size + 2, hidden, slope=0.0)),
            ]

        classifiers, recognition, generation = setup.build(made)
        row, latent = (torch.zeros(2, n + 2, dtype=setup.dtype) for n in (n_inputs, size))
        seen = setup.example if codes is None else [row[:, :-2]]
        stacks = {
            "classifier": setup.stack(classifiers, seen),
            "recognition": setup.stack(recognition, [row]),
            "generation": setup.stack(generation, [latent]),
        }
        if codes is not None:
            stacks["encoder"] = codes.select(slice(None))  # without gradients
        weights = [
            baseline.classifier_weight * len(task.rows) / len(task.extra)
            for task in setup.tasks
        ]
        members = cls(
            stacks, weight=torch.tensor(weights, dtype=setup.dtype, device=setup.device)
        )
        # For both labels a latent variable and, where there is M1, a code.
        members.noise_size = 2 * (size if codes is None else 2 * size)
        members.likelihood = likelihood
        return members

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return minus the `semi_supervised_bound` of rows."""
        log_q = log_softmax(self._logits(x, training=True), -1).movedim(-1, 0)
        weight = self.tensors["weight"].unsqueeze(-1)
        with _exactly(x):
            return -semi_supervised_bound(self.joint_bounds(x, noise), log_q, labels, weight)

    def joint_bounds(self, x: Tensor, noise: Tensor) -> Tensor:
        """Return lower bounds of log p(x, y) for y = 0 and y = 1, ``(2, members, n)``."""
        target = torch.cat([x.flatten(2)] * 2, 1)  # once for each label
        n_members, n_rows = x.shape[:2]
        noise = torch.cat(noise.chunk(2, -1), 1)
        inputs = target
        if "encoder" in self.stacks:
            noise, for_codes = noise.chunk(2, -1)
            mean, log_var = _posterior(self.stacks["encoder"], target, training=False)
            inputs = reparameterize(mean, log_var, for_codes)
        label = torch.eye(2, dtype=target.dtype, device=x.device)
        label = label.repeat_interleave(n_rows, 0).expand(n_members, -1, -1)
        mean, log_var = _posterior(
            self.stacks["recognition"], torch.cat([inputs, label], -1), training=True
        )
        latent = torch.cat([reparameterize(mean, log_var, noise), label], -1)
        output = self.stacks["generation"](latent, training=True)
        bound = elbo(_likelihood_of(self.likelihood, target, output), mean, log_var)
        return (bound - math.log(2.0)).view(n_members, 2, n_rows).movedim(1, 0)

    def score(self, x: Tensor) -> Tensor:
        """Return the logit."""
        normal, anomaly = self._logits(x, training=False).unbind(-1)
        return anomaly - normal

    def encode(self, x: Tensor) -> Tensor:
        """Return the means of the codes of M1, ``(members, n, size)``."""
        if "encoder" not in self.stacks:
            raise TypeError("M2 alone has no codes; M1M2 does.")
        return _posterior(self.stacks["encoder"], x.flatten(2), training=False)[0]

    def _logits(self, x: Tensor, *, training: bool) -> Tensor:
        if "encoder" in self.stacks:
            x = self.encode(x)
        logits: Tensor = self.stacks["classifier"](x, training=training)
        return logits


class SeparateRows(RowLearner):
    """`RowLearner` whose extra rows pass through the networks on their own.

    Batch normalisation then sees them apart from the others. How many there are, and in every
    how many batches, is the kind of a task. The loss is the mean over rows plus the mean over
    extra rows.
    """

    def __init__(self, make: Any, setup: Setup) -> None:
        super().__init__(make, setup)
        self.extra_size, self._interval = cast(tuple[int, int], setup.tasks[0].kind)

    def loss(self, rows: Sequence[Tensor], batch: Batch, phase: Phase) -> tuple[Tensor, ...]:
        """Return the loss of a batch."""
        first, extra = rows[0][:, : batch.n_rows], rows[0][:, batch.n_rows :]
        (loss,) = super().loss([first], replace(batch, extra_noise=None), phase)
        if batch.extra_noise is None:
            return (loss,)
        labels = torch.full(extra.shape[:2], ANOMALY, device=extra.device)
        apart = self.members.row_loss(extra, labels, batch.extra_noise[0])
        return (loss + apart.mean(1),)

    def phase(self, epoch: int) -> Phase:
        """Return in every how many batches extra rows join."""
        return Phase(extra_interval=self._interval)


@dataclass(kw_only=True, repr=False, eq=False)
class M2(DeepBaseline):
    """M2 of Kingma et al., as Ruff et al. ran it; the score is its classifier's logit.

    A generative model of rows with a label and a latent variable. Where there is no label, it
    sums over both, weighted by what a classifier says of the row; labelled anomalies teach the
    classifier directly as well.

    Parameters
    ----------
    hidden
        Widths of the perceptrons of the generative part, also for images; the last one is the
        size of the latent variable.
    classifier_weight
        Weight of the cross-entropy of labelled anomalies, times the unlabelled rows for each of
        them.
    likelihood
        Of a row: ``"bernoulli"``, for rows in [0, 1], or ``"gaussian"`` with a variance of one.
        None: Bernoulli if all rows of a problem are in [0, 1], as images are, and Gaussian
        otherwise.

    Notes
    -----
    The other parameters are those of `DeepBaseline`; `images` and `precision` are for the
    classifier alone. It follows the published code even where that is surprising: variances of
    posteriors are never below one, both labels are equally likely, and labelled anomalies pass
    through the classifier apart from other rows, so batch normalisation sees them apart. They
    join the batches about as often as they would be drawn at random, at least two at a time
    and once a pass.
    Rows labelled 0 are taken as unlabelled.

    `aloof.baselines.SSDGM` is our own reading of M1+M2.

    References
    ----------
    Kingma et al., "Semi-Supervised Learning with Deep Generative Models", NeurIPS 2014.
    Ruff et al., "Deep Semi-Supervised Anomaly Detection", ICLR 2020.
    """

    hidden: tuple[int, ...] = (128, 64, 32)
    max_epochs: int = 50
    milestones: tuple[int, ...] | None = ()
    classifier_weight: float = 0.1
    likelihood: _Likelihood | None = None

    checks: ClassVar[Mapping[str, Check]] = {
        "hidden": widths(1),
        "classifier_weight": real(0),
        "likelihood": or_none(one_of(("bernoulli", "gaussian"))),
    }

    label_use: ClassVar[LabelUse] = "required"
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = PUBLISHED

    def likelihood_of(self, data: Tensor) -> _Likelihood:
        """Return the likelihood of rows such as these."""
        inside = not data.is_floating_point() or bool(((data >= 0) & (data <= 1)).all())
        if self.likelihood == "bernoulli" and not inside:
            raise ValueError(
                "The 'likelihood' parameter of "
                f"{type(self).__name__} is 'bernoulli', which needs rows in [0, 1]. Scale "
                "them, or set likelihood='gaussian'."
            )
        return self.likelihood or ("bernoulli" if inside else "gaussian")

    def multiplications(self, shape: Sequence[int]) -> float:
        """Return those of the classifier, and of the generative part for both labels."""
        networks = networks_for(shape, self.hidden, self.images)
        return count_multiplications(networks.classifier, shape) + 4 * self._dense(shape)

    def _dense(self, shape: Sequence[int]) -> float:
        """Return the multiplications of a perceptron from rows to a latent variable."""
        widths = (prod(shape), *self.hidden)
        make = partial(Perceptron, widths, normalise=False)
        return count_multiplications(make, widths[:1])

    def _task(self, problem: Problem) -> Task:
        share = len(problem.anomaly) / (len(problem.normal) + len(problem.anomaly))
        expected = min(self.batch_size, len(problem.normal) + len(problem.anomaly)) * share
        kind = max(2, round(expected)), max(1, round(2 / expected))
        return Task(
            rows=problem.normal,
            extra=problem.anomaly,
            seeds=problem.seeds,
            setting=digest_of(problem),
            kind=kind,
        )

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[GenerativeClassifiers]]:
        trained: dict[int, Trained[GenerativeClassifiers]] = {}
        for likelihood, which in self._by_likelihood(run.data[0], problems).items():
            own = self._train_with(likelihood, run, networks, [problems[k] for k in which])
            trained |= zip(which, own, strict=True)
        return [trained[k] for k in range(len(problems))]

    def _n_epochs(self, data: Tensor, problems: Sequence[Problem]) -> int:
        return sum(
            self._n_epochs_together([problems[k] for k in which])
            for which in self._by_likelihood(data, problems).values()
        )

    def _n_epochs_together(self, problems: Sequence[Problem]) -> int:
        """Return the epochs of all phases of problems with one likelihood."""
        return epochs_of([self._task(problem) for problem in problems], self._schedule())

    def _by_likelihood(
        self, data: Tensor, problems: Sequence[Problem]
    ) -> Mapping[_Likelihood, Sequence[int]]:
        """Return which problems have which likelihood."""
        found: dict[_Likelihood, list[int]] = {}
        for k, problem in enumerate(problems):
            found.setdefault(self.likelihood_of(_rows_in(data, problem)), []).append(k)
        return found

    def _train_with(
        self,
        likelihood: _Likelihood,
        run: Run,
        networks: Networks,
        problems: Sequence[Problem],
    ) -> Sequence[Trained[GenerativeClassifiers]]:
        codes = self._codes(run, networks, likelihood, problems)
        build = partial(self._started, networks, likelihood, codes)
        tasks = [self._task(problem) for problem in problems]
        return run.train(tasks, partial(SeparateRows, build), self._schedule())

    def _codes(
        self,
        run: Run,
        networks: Networks,
        likelihood: _Likelihood,
        problems: Sequence[Problem],
    ) -> Mapping[_Key, Stack]:
        """Return the encoders of M1 by problem and seed; none: M2 sees rows."""
        return {}

    def _started(
        self,
        networks: Networks,
        likelihood: _Likelihood,
        codes: Mapping[_Key, Stack],
        setup: Setup,
    ) -> GenerativeClassifiers:
        keys = [(_rows_of(task), s) for task, s in zip(setup.tasks, setup.seeds, strict=True)]
        first = Stack.joined([codes[key] for key in keys]) if codes else None
        return GenerativeClassifiers.build(networks, self, likelihood, first, setup)


@dataclass(kw_only=True, repr=False, eq=False)
class M1M2(M2):
    """M1+M2 of Kingma et al., as Ruff et al. ran it: `M2` on codes of a VAE.

    M1 is a VAE of perceptrons, trained on all rows. M2 then classifies the mean of a row's
    code, and generates the row from its label and a latent variable.

    Parameters
    ----------
    hidden
        Widths of the perceptrons of M1 and of the generative part of M2, also for images; the
        last one is the size of codes and of the latent variable.
    pretrain_epochs
        Of M1.

    Notes
    -----
    The other parameters are those of `M2`; there is no network of images.
    """

    pretrain_epochs: int = 100

    checks: ClassVar[Mapping[str, Check]] = {
        "images": (lambda v: v is None, "None, as its networks are perceptrons"),
        "pretrain_epochs": integer(1),
    }

    def multiplications(self, shape: Sequence[int]) -> float:
        """Return those of the generative part for both labels; its codes are small."""
        return 4 * self._dense(shape)

    def _pretraining(self) -> Schedule:
        return replace(self._schedule(), max_epochs=self.pretrain_epochs, milestones=())

    def _n_epochs_together(self, problems: Sequence[Problem]) -> int:
        first = [mixed_task(problem) for problem in problems]
        return super()._n_epochs_together(problems) + epochs_of(first, self._pretraining())

    def _codes(
        self,
        run: Run,
        networks: Networks,
        likelihood: _Likelihood,
        problems: Sequence[Problem],
    ) -> Mapping[_Key, Stack]:
        build = partial(
            PerceptronVAEs.build,
            prod(networks.shape),
            self.hidden,
            likelihood,
        )
        tasks = [mixed_task(problem) for problem in problems]
        trained = run.train(tasks, partial(RowLearner, build), self._pretraining())
        return {
            (_rows_of(self._task(problem)), seed): own.members.stacks["encoder"].select([k])
            for problem, own in zip(problems, trained, strict=True)
            for k, seed in enumerate(problem.seeds)
        }


def _rows_in(data: Tensor, problem: Problem) -> Tensor:
    """Return the rows that a problem learns from."""
    rows = np.concatenate([problem.normal, problem.anomaly])
    return data[torch.from_numpy(rows).to(data.device)]


def _rows_of(task: Task) -> str:
    """Return what tells the rows of a task from those of others."""
    return f"{task.setting} {task.extra.tobytes().hex()}"
