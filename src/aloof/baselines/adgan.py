"""ADGAN: how well the generator of a GAN can be brought to make a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Any, ClassVar

import torch
from torch import Tensor

from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, mixed_task
from aloof.baselines.networks import Networks, networks_for
from aloof.estimators._parameters import Check, integer, real
from aloof.problem import Problem
from aloof.training import Engine, Run, Schedule, Setup, Stack, Stream, Task, Trained, derive
from aloof.training.adam import Adam
from aloof.training.seeds import generator
from aloof.training.stacks import flatten

__all__ = ["ADGAN", "AdversarialMembers", "Search", "gradient_penalty"]

_CRITIC_SLOPE = 0.2  # of its leaky ReLU, as DCGANs have it
_TRAINING_BETAS = (0.0, 0.9)
_SEARCH_BETAS = (0.5, 0.999)
_NUMBERS = 8  # that a search holds for each parameter: itself, gradients, moments, and copies


def gradient_penalty(critic: Stack, x: Tensor) -> Tensor:
    """Return the squared difference of a critic's slope from one, ``(members, n)``.

    Parameters
    ----------
    critic
        One number for each row. It must be possible to differentiate it twice.
    x
        Rows ``(members, n, ...)``; no gradient reaches them.
    """
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(x, training=True).sum(), x, create_graph=True)
    norm = (slope.flatten(2).square().sum(-1) + 1e-12).sqrt()  # without a pole at zero
    return (norm - 1.0).square()


@dataclass(frozen=True)
class Search:
    """How codes are searched for, and generators adapted, to make a row.

    Attributes
    ----------
    steps
        Of gradient descent, both of code and generator.
    code_rate, generator_rate
        Of Adam.
    """

    steps: int
    code_rate: float
    generator_rate: float

    def __call__(self, generators: Stack, starts: Tensor, x: Tensor) -> Tensor:
        """Return the squared error that is left, a mean over starts, ``(members, n)``.

        Every row has copies of the generator for itself, one for each start; the generators
        that are passed stay as they are.

        Parameters
        ----------
        generators
            From codes to rows.
        starts
            Codes to begin with, ``(members, starts, size)``.
        x
            Rows ``(members, n, ...)``.
        """
        members, n = x.shape[:2]
        n_starts = starts.shape[1]
        wanted = x.unsqueeze(2).expand(members, n, n_starts, *x.shape[2:])
        wanted = wanted.reshape(-1, 1, *x.shape[2:])
        code = starts.unsqueeze(1).expand(members, n, *starts.shape[1:]).flatten(0, 2).clone()
        with torch.enable_grad():
            copies = generators.copies(n * n_starts)
            matrix, weights = flatten({"generator": copies})
            code.requires_grad_()
            movers = Adam(code.detach(), _SEARCH_BETAS), Adam(matrix, _SEARCH_BETAS)
            for _ in range(self.steps):
                error = _error(copies, code, wanted)
                d_code, *parts = torch.autograd.grad(error.sum(), [code, *weights])
                movers[0].step([d_code], self.code_rate)
                movers[1].step(parts, self.generator_rate)
        with torch.no_grad():
            return _error(copies, code, wanted).view(members, n, n_starts).mean(-1)


def _error(generators: Stack, code: Tensor, wanted: Tensor) -> Tensor:
    made: Tensor = generators(code.unsqueeze(1))
    return (made - wanted).square().flatten(1).mean(1)


class AdversarialMembers(LearningMembers):
    """Generators and critics; the score is what a search for a row leaves.

    Each member has codes to begin the search with, ``(members, starts, size)``, the same for
    all rows: scores depend on nothing but the row.

    Attributes
    ----------
    penalty
        Weight of the critic's slope in its loss.
    search
        Of scores.
    """

    penalty: float
    search: Search

    @classmethod
    def build(
        cls,
        generators: Networks,
        critics: Networks,
        setup: Setup,
        *,
        penalty: float,
        n_starts: int,
        search: Search,
    ) -> AdversarialMembers:
        """Initialise members."""
        made, judges = setup.build(
            lambda: [generators.decoder(), critics.classifier(normalise=False)]
        )
        size = generators.size
        starts = [
            torch.randn(
                n_starts,
                size,
                generator=generator(derive(seed, Stream.SEARCH), torch.device("cpu")),
                dtype=setup.dtype,
            )
            for seed in setup.seeds
        ]
        # Our kernels can be differentiated once; what vmap and the loop run is torch's own.
        engine: Engine = "loop" if len(generators.shape) == 3 else "vmap"
        members = cls(
            {
                "generator": setup.stack(made, [torch.zeros(2, size, dtype=setup.dtype)]),
                "critic": replace(setup, engine=engine).stack(judges, setup.example),
            },
            starts=torch.stack(starts).to(setup.device),
        )
        members.noise_size = size + 1
        members.penalty, members.search = penalty, search
        return members

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the loss of the critic; its gradient is that of the generator, too.

        Each has a gradient of its own loss alone: to the critic, what is made is given; to the
        generator, the critic is. The generator's loss adds nothing to the value.
        """
        critic = self.stacks["critic"]
        code, between = noise[..., :-1], torch.special.ndtr(noise[..., -1])
        made = self.stacks["generator"](code, training=True).to(x.dtype)
        given = made.detach()
        n = x.shape[1]
        said: Tensor = critic(torch.cat([x, given], 1), training=True).squeeze(-1)
        between = between.view(*between.shape, *[1] * (x.dim() - 2))
        steepness = gradient_penalty(critic, between * x + (1.0 - between) * given)
        loss = said[:, n:] - said[:, :n] + self.penalty * steepness
        praise: Tensor = critic(made, training=True, frozen=True).squeeze(-1)
        return loss - (praise - praise.detach())

    def score(self, x: Tensor) -> Tensor:
        """Return the squared error that the search leaves."""
        generators, starts = self.stacks["generator"], self.tensors["starts"]
        parts = torch.split(x, self._rows_at_once(x), 1)
        return torch.cat([self.search(generators, starts, part) for part in parts], 1)

    def _rows_at_once(self, x: Tensor) -> int:
        """Return the rows whose copies of the generator fit into memory together."""
        own = sum(part.nbytes for part in self.stacks["generator"].parameters.values())
        room = 2**28
        if x.is_cuda:
            room = torch.cuda.get_device_properties(x.device).total_memory // 8
        return max(1, room // (_NUMBERS * own * self.tensors["starts"].shape[1]))


@dataclass(kw_only=True, repr=False, eq=False)
class ADGAN(DeepBaseline):
    """Anomaly detection with a GAN: the error of the best that its generator can make.

    A generator and a critic learn normal rows. To score a row, codes are drawn, and code and
    generator are moved by a few steps of gradient descent towards the row, anew for each row
    and each code. The score is the squared error that is left, a mean over the codes.

    Parameters
    ----------
    penalty
        Weight of the squared difference of the critic's slope from one.
    n_starts
        Codes that the search for a row begins with.
    search_steps
        Of gradient descent.
    code_rate, generator_rate
        Of Adam, in the search.

    Notes
    -----
    The other parameters are those of `DeepBaseline`; the size of a code is the last of
    `hidden`, or ``latent_dim`` of `images`. With no `images`, the generator is a DCGAN's:
    codes of 256 numbers, 3 x 3 filters, 64 channels at the last layer and up to 256 at the
    first, of 4 x 4 pixels or a few more. The rate does not fall.

    The training is a Wasserstein GAN with a gradient penalty. Its numbers and those of the
    search are those of Golan and El-Yaniv, whose run of ADGAN on CatsVsDogs is the one that is
    reported. What differs from theirs: critic and generator take their steps
    at the same time, one each, where they alternate and the critic takes two; the critic is not
    normalised, and pools where theirs has strides; the generator doubles pixels before a
    convolution, and its normalisation has the statistics of the training in the search; code
    and generator move together in a step of it; all rows have the same codes to start from.

    References
    ----------
    Deecke et al., "Image Anomaly Detection with Generative Adversarial Networks", ECML PKDD
    2018. Gulrajani et al., "Improved Training of Wasserstein GANs", NeurIPS 2017. Golan and
    El-Yaniv, "Deep Anomaly Detection Using Geometric Transformations", NeurIPS 2018.
    """

    max_epochs: int = 300
    learning_rate: float = 1e-4
    milestones: tuple[int, ...] | None = ()
    weight_decay: float = 0.0
    penalty: float = 20.0
    n_starts: int = 8
    search_steps: int = 5
    code_rate: float = 0.25
    generator_rate: float = 5e-5

    checks: ClassVar[Mapping[str, Check]] = {
        "penalty": real(0),
        "n_starts": integer(1),
        "search_steps": integer(0),
        "code_rate": real(0),
        "generator_rate": real(0),
    }

    # As many steps as Golan and El-Yaniv took: 10,000, in batches of 128.
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "cats-vs-dogs": {"max_epochs": 159},
        "cifar10": {"max_epochs": 313},
        "fashion-mnist": {"max_epochs": 264},
        "mnist": {"max_epochs": 271},
    }

    def multiplications(self, shape: Sequence[int]) -> float:
        """Return those of the generator and the critic."""
        own = replace(self, images=self._options(shape))
        return DeepBaseline.multiplications(own, shape)

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem.without_anomalies())

    def _members(self, networks: Networks, setup: Setup) -> AdversarialMembers:
        critic = {**self._options(networks.shape), "normalise": False, "slope": _CRITIC_SLOPE}
        return AdversarialMembers.build(
            networks,
            networks_for(networks.shape, self.hidden, critic),
            setup,
            penalty=self.penalty,
            n_starts=self.n_starts,
            search=Search(self.search_steps, self.code_rate, self.generator_rate),
        )

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[AdversarialMembers]]:
        own = networks_for(networks.shape, self.hidden, self._options(networks.shape))
        return super()._train(run, own, problems)

    def _schedule(self, **changes: Any) -> Schedule:
        return replace(super()._schedule(**changes), betas=_TRAINING_BETAS)

    def _options(self, shape: Sequence[int]) -> Mapping[str, Any]:
        """Return the options of networks for images; rows of numbers have none."""
        if self.images is not None or len(shape) == 1:
            return self.images or {}
        halvings = max(1, int(log2(min(shape[1:]) / 4)))
        filters = (64,) * (halvings - 3) + (64, 128, 256)[:halvings]
        return {"filters": filters, "hidden": (), "kernel": 3, "slope": 0.0, "latent_dim": 256}
