"""DAGMM: an autoencoder and a Gaussian mixture of its codes and errors, learned together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, mixed_task, over_data
from aloof.baselines.networks import Networks
from aloof.estimators._parameters import Check, integer, real, widths
from aloof.networks import Linear
from aloof.networks.mlp import hidden_layers
from aloof.problem import Problem
from aloof.training import Run, Setup, Task, Trained

__all__ = [
    "DAGMM",
    "PUBLISHED",
    "DAGMMMembers",
    "Mixture",
    "estimate_mixture",
    "reconstruction_features",
    "sample_energy",
]

# What Golan and El-Yaniv ran on images of 32 and 64 pixels a side.
_GOLAN = {"hidden": (), "kernel": 3, "slope": 0.0, "latent_dim": 5}
_GOLAN_NUMBERS = {
    "estimator_hidden": (64, 10),
    "n_components": 3,
    "energy_weight": 0.01,
    "penalty_weight": 0.0005,
    "batch_size": 256,
    "max_epochs": 200,
    "milestones": (),
}
PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "thyroid": {
        "hidden": (12, 4, 1),
        "learning_rate": 1e-4,
        "batch_size": 1024,
        "max_epochs": 20_000,
        "milestones": (),
    },
    "arrhythmia": {
        "hidden": (10, 2),
        "learning_rate": 1e-4,
        "batch_size": 128,
        "max_epochs": 10_000,
        "milestones": (),
    },
    "cifar10": {"images": {"filters": (64, 128, 256), **_GOLAN}, **_GOLAN_NUMBERS},
    "fashion-mnist": {"images": {"filters": (64, 128, 256), **_GOLAN}, **_GOLAN_NUMBERS},
    "cats-vs-dogs": {"images": {"filters": (64, 128, 256, 512), **_GOLAN}, **_GOLAN_NUMBERS},
}
"""Parameters by data set, as published; those of tables by Zong et al., those of images by
Golan and El-Yaniv."""

_TINY = 1e-12  # added to squared lengths
# Added to variances, times themselves and as such: codes may all be one, or lie on a line.
_RELATIVE_JITTER, _JITTER = 1e-5, 1e-6


def reconstruction_features(x: Tensor, output: Tensor) -> Tensor:
    """Return the relative distance of rows to what came of them, and the cosine between both.

    Parameters
    ----------
    x, output
        Rows ``(..., d)``.

    Returns
    -------
    Tensor ``(..., 2)``.
    """
    length, other = ((part.square().sum(-1) + _TINY).sqrt() for part in (x, output))
    distance = ((x - output).square().sum(-1) + _TINY).sqrt() / length
    cosine = (x * output).sum(-1) / (length * other)
    return torch.stack([distance, cosine], -1)


class Mixture(NamedTuple):
    """A Gaussian mixture in d dimensions.

    Attributes
    ----------
    log_weight
        ``(..., components)``.
    mean
        ``(..., components, d)``.
    factor
        Lower Cholesky factors of the covariances, ``(..., components, d, d)``.
    """

    log_weight: Tensor
    mean: Tensor
    factor: Tensor

    @property
    def variance(self) -> Tensor:
        """Return the diagonals of the covariances, ``(..., components, d)``."""
        return self.factor.square().sum(-1)


def estimate_mixture(z: Tensor, membership: Tensor) -> Mixture:
    """Return the mixture of points that belong to its components in part.

    Parameters
    ----------
    z
        Points, ``(..., n, d)``.
    membership
        Shares that add up to one, ``(..., n, components)``.
    """
    shares = membership.mT
    total = shares.sum(-1, keepdim=True).clamp(min=_TINY)
    mean = shares @ z / total
    apart = z.unsqueeze(-3) - mean.unsqueeze(-2)
    covariance = (shares.unsqueeze(-1) * apart).mT @ apart / total.unsqueeze(-1)
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    covariance = covariance + torch.diag_embed(_RELATIVE_JITTER * variance + _JITTER)
    # Unlike `cholesky` it does not wait to see whether it went well; if not, the loss is NaN.
    factor, _ = torch.linalg.cholesky_ex(covariance)
    return Mixture((total / z.shape[-2]).squeeze(-1).log(), mean, factor)


def sample_energy(z: Tensor, mixture: Mixture) -> Tensor:
    """Return minus the log-density of a mixture at points ``(..., n, d)``."""
    apart = z.unsqueeze(-3) - mixture.mean.unsqueeze(-2)
    white = torch.linalg.solve_triangular(mixture.factor, apart.mT, upper=False)
    log_det = mixture.factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    constant = mixture.log_weight - log_det - z.shape[-1] / 2 * math.log(2 * math.pi)
    return -torch.logsumexp(constant.unsqueeze(-1) - white.square().sum(-2) / 2, -2)


class _Tanh(nn.Module):
    """Linear layers with tanh between them, and a linear output."""

    stackable = True

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.body = hidden_layers(sizes[:-1], nn.Tanh)
        self.head = Linear(sizes[-2], sizes[-1])

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., n, in)`` to ``(..., n, out)``."""
        y: Tensor = self.head(self.body(x))
        return y


class _Estimator(nn.Module):
    """From points to the components they belong to; hidden numbers can be left out."""

    stackable = True

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.body = nn.ModuleList(Linear(*pair) for pair in pairwise(sizes[:-1]))
        self.head = Linear(sizes[-2], sizes[-1])

    def forward(self, z: Tensor, kept: Tensor | None = None) -> Tensor:
        """Map ``(..., n, d)`` to shares ``(..., n, components)``.

        `kept` is a factor for each hidden number, ``(..., n, their number)``.
        """
        start = 0
        for layer in self.body:
            z = torch.tanh(layer(z))
            if kept is not None:
                z = z * kept[..., start : (start := start + z.shape[-1])]
        return torch.softmax(self.head(z), -1)


class DAGMMMembers(LearningMembers):
    """Autoencoders, what says which component a row belongs to, and the mixtures.

    Attributes
    ----------
    dropout, energy_weight, penalty_weight
        As in `DAGMM`.
    """

    dropout: float
    energy_weight: float
    penalty_weight: float

    @classmethod
    def build(cls, networks: Networks, setup: Setup, baseline: DAGMM) -> Self:
        """Initialise members with the parameters of a baseline."""
        n_dims, hidden = networks.size + 2, tuple(baseline.estimator_hidden)
        n_components = baseline.n_components

        def made() -> list[nn.Module]:
            estimator = _Estimator((n_dims, *hidden, n_components))
            if len(networks.shape) == 3:
                return [networks.encoder(), networks.decoder(), estimator]
            sizes = (*networks.shape, *baseline.hidden)
            return [_Tanh(sizes), _Tanh(sizes[::-1]), estimator]

        encoders, decoders, estimators = setup.build(made)
        code, point = (torch.zeros(2, n, dtype=setup.dtype) for n in (networks.size, n_dims))
        stacks = {
            "encoder": setup.stack(encoders, setup.example),
            "decoder": setup.stack(decoders, [code]),
            "estimator": setup.stack(estimators, [point]),
        }
        places = (len(setup.seeds), n_components)
        members = cls(
            stacks,
            log_weight=torch.full(places, -math.log(n_components)).to(
                setup.device, setup.dtype
            ),
            mean=torch.zeros(*places, n_dims, device=setup.device, dtype=setup.dtype),
            factor=torch.eye(n_dims, device=setup.device, dtype=setup.dtype).repeat(
                *places, 1, 1
            ),
        )
        members.noise_size = sum(hidden)
        members.dropout = baseline.dropout
        members.energy_weight = baseline.energy_weight
        members.penalty_weight = baseline.penalty_weight
        return members

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return error, energy and penalty of rows, all taken as normal."""
        z, error = self._points(x, training=True)
        with torch.autocast(x.device.type, enabled=False):
            inputs = [z]
            if self.dropout:
                kept = noise > NormalDist().inv_cdf(self.dropout)
                inputs.append(kept.to(z.dtype) / (1.0 - self.dropout))
            membership = self.stacks["estimator"](*inputs, training=True)
            mixture = estimate_mixture(z, membership)
            penalty = mixture.variance.reciprocal().sum((-1, -2))
            energy = self.energy_weight * sample_energy(z, mixture)
            return error + energy + self.penalty_weight * penalty.unsqueeze(-1)

    def score(self, x: Tensor) -> Tensor:
        """Return the energy under the mixture of the rows that were learned from."""
        return sample_energy(self.points(x), Mixture(**self.tensors))

    def points(self, x: Tensor) -> Tensor:
        """Return codes and what tells of errors, ``(members, n, size + 2)``."""
        return self._points(x, training=False)[0]

    def measure(self, run: Run, rows: NDArray[np.int64]) -> None:
        """Set the mixture to that of some rows."""
        z = over_data(self.points, run, rows, self.n_members)
        with torch.no_grad():
            membership: Tensor = self.stacks["estimator"](z)
        mixture = estimate_mixture(z.cpu().double(), membership.cpu().double())
        for name, value in mixture._asdict().items():
            self.tensors[name].copy_(value)

    def _points(self, x: Tensor, *, training: bool) -> tuple[Tensor, Tensor]:
        """Return the points of rows, and their squared errors: sums, of images means."""
        code = self.stacks["encoder"](x, training=training)
        output = self.stacks["decoder"](code, training=training).to(x.dtype)
        error = (x - output).square().flatten(2)
        features = reconstruction_features(x.flatten(2), output.flatten(2))
        z = torch.cat([code.to(x.dtype), features], -1)
        return z, error.mean(-1) if x.dim() == 5 else error.sum(-1)


@dataclass(kw_only=True, repr=False, eq=False)
class DAGMM(DeepBaseline):
    """Deep autoencoding Gaussian mixture model; the score is the mixture's energy.

    A second network says which component of a mixture a row belongs to, from its code, the
    relative distance to its reconstruction and the cosine between both. Mixture and networks
    are learned together: what is minimised is the squared error, the energy of the points
    under the mixture of their batch, and the reciprocal of its variances. A row's score is its
    energy under the mixture of all rows that were learned from.

    Parameters
    ----------
    estimator_hidden
        Widths of the network that says which component a row belongs to.
    n_components
        Of the mixture.
    dropout
        Share of its hidden numbers that this network loses in training.
    energy_weight, penalty_weight
        Weights beside the squared error, which is a sum over a row's numbers and a mean over an
        image's pixels.

    Notes
    -----
    The other parameters are those of `DeepBaseline`. Networks of rows have tanh and no
    normalisation, as published. Images have the autoencoder of the other baselines; Golan and
    El-Yaniv's has convolutions that halve the image where ours has pooling. Codes of the paper
    have one or two numbers; its widths, weights and epochs are in `PUBLISHED`. Covariances get
    a little on their diagonals, so that codes may fall on a line.

    Results depend on the seed more than those of other baselines, as others found as well.

    References
    ----------
    Zong et al., "Deep Autoencoding Gaussian Mixture Model for Unsupervised Anomaly Detection",
    ICLR 2018.
    Golan and El-Yaniv, "Deep Anomaly Detection Using Geometric Transformations", NeurIPS 2018.
    """

    estimator_hidden: tuple[int, ...] = (10,)
    n_components: int = 2
    dropout: float = 0.5
    energy_weight: float = 0.1
    penalty_weight: float = 0.005

    published: ClassVar[Mapping[str, Mapping[str, Any]]] = PUBLISHED

    checks: ClassVar[Mapping[str, Check]] = {
        "estimator_hidden": widths(1),
        "n_components": integer(1),
        "dropout": real(0, 1, below=True),
        "energy_weight": real(0),
        "penalty_weight": real(0),
    }

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem.without_anomalies())

    def _members(self, networks: Networks, setup: Setup) -> DAGMMMembers:
        return DAGMMMembers.build(networks, setup, self)

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[DAGMMMembers]]:
        trained = super()._train(run, networks, problems)
        for problem, own in zip(problems, trained, strict=True):
            own.members.measure(run, problem.normal)
        return trained
