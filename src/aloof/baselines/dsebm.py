"""DSEBM: an energy of rows whose gradient is an autoencoder with tied weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, conv_transpose2d, leaky_relu, softplus

from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, mixed_task
from aloof.baselines.networks import Networks
from aloof.estimators._parameters import Check, one_of, real
from aloof.networks import Linear, default_filters
from aloof.networks.dense import BatchNorm
from aloof.problem import Problem
from aloof.training import Setup, Stack, Task

__all__ = ["DSEBM", "PUBLISHED", "Criterion", "DSEBMMembers", "EnergyNetwork"]

Criterion = Literal["energy", "reconstruction"]

# What Golan and El-Yaniv ran on images of 32 and 64 pixels a side.
_GOLAN = {"hidden": (), "kernel": 3, "slope": 0.0, "latent_dim": 256}
_CONSTANT = {"max_epochs": 200, "milestones": ()}
PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "cifar10": {"images": {"filters": (64, 128, 256), **_GOLAN}, **_CONSTANT},
    "fashion-mnist": {"images": {"filters": (64, 128, 256), **_GOLAN}, **_CONSTANT},
    "cats-vs-dogs": {"images": {"filters": (64, 128, 256, 512), **_GOLAN}, **_CONSTANT},
}
"""Parameters by data set, as published; rates and batches are the class's own."""

_Pull = Callable[
    [Tensor], Tensor
]  # from a gradient of what a layer returns to that of its rows


class EnergyNetwork(nn.Module):
    r"""An energy, and what its gradient makes of a row.

    .. math:: E(x) = \tfrac12 \lVert x - b' \rVert^2 - \sum_j h_j(x), \qquad
        f(x) = x - \nabla_x E(x) = b' + \nabla_x \sum_j h_j(x)

    The gradient is computed layer by layer on a way back with the same weights: as f is an
    ordinary forward pass, one ordinary gradient of it trains the energy.

    Parameters
    ----------
    shape
        Of one row.
    widths
        Of the dense layers, each with a softplus; the last ones are the experts h.
    filters, kernel, slope, normalise
        Of images: convolutions that halve height and width, each with batch normalisation and
        a leaky ReLU.
    """

    stackable = True

    def __init__(
        self,
        shape: Sequence[int],
        widths: Sequence[int],
        filters: Sequence[int] = (),
        *,
        kernel: int = 5,
        slope: float = 0.1,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self._n_axes = len(shape)
        self.centre = nn.Parameter(torch.zeros(*shape))
        stages = [
            _Stage(n_in, n_out, kernel, slope, normalise)
            for n_in, n_out in pairwise((shape[0], *filters))
        ]
        size = tuple(shape[1:])
        for stage in stages:
            size = stage.convolution.halved(size)
        n_in = filters[-1] * prod(size) if filters else prod(shape)
        self.stages = nn.ModuleList(stages)
        self.dense = nn.ModuleList(_Dense(*pair) for pair in pairwise((n_in, *widths)))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map rows ``(..., n, *shape)`` to energies ``(..., n)`` and to f of them."""
        pulls: list[_Pull] = []
        y = x
        if len(self.stages):
            stacked = x.dim() == 5
            y, pull = _side_by_side(y) if stacked else (y, _as_it_is)
            pulls.append(pull)
            for stage in self.stages:
                y, pull = stage(y)
                pulls.append(pull)
            y, pull = _flat(y, len(x) if stacked else None)
            pulls.append(pull)
        for layer in self.dense:
            y, pull = layer(y)
            pulls.append(pull)
        centre = self.centre.unsqueeze(-self._n_axes - 1)
        energy = (x - centre).square().flatten(-self._n_axes).sum(-1) / 2
        energy = energy - y.sum(-1, dtype=energy.dtype)
        gradient = torch.ones_like(y)
        for pull in reversed(pulls):
            gradient = pull(gradient)
        return energy, centre + gradient.to(x.dtype)


class _Dense(nn.Module):
    """A linear layer and a softplus."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.linear = Linear(n_in, n_out)

    def forward(self, x: Tensor) -> tuple[Tensor, _Pull]:
        """Map ``(..., n, in)`` to ``(..., n, out)``."""
        y = self.linear(x)
        weight = self.linear.weight.to(y.dtype)  # autocast leaves float64 alone
        return softplus(y), lambda g: torch.matmul(g * torch.sigmoid(y), weight)


class _Halving(nn.Conv2d):
    """A convolution that halves an image, members' channels side by side."""

    stackable = True

    def __init__(self, n_in: int, n_out: int, kernel: int) -> None:
        pad = (kernel - 1) // 2
        super().__init__(n_in, n_out, kernel, stride=2, padding=pad)
        self._pad = pad

    def halved(self, size: Sequence[int]) -> tuple[int, ...]:
        """Return height and width of what comes of images of a height and width."""
        return tuple((side + 2 * self._pad - self.kernel_size[0]) // 2 + 1 for side in size)

    def forward(self, x: Tensor) -> tuple[Tensor, _Pull]:  # type: ignore[override]
        """Map ``(n, members x in, h, w)``."""
        weight, bias, groups = self.weight, self.bias, 1
        assert bias is not None
        if weight.dim() == 5:
            weight, bias, groups = weight.flatten(0, 1), bias.flatten(), len(weight)
        y = conv2d(x, weight, bias, 2, self._pad, groups=groups)
        # Rows and columns at the end that no filter met: the way back has to leave room.
        met = [2 * (half - 1) + self.kernel_size[0] - 2 * self._pad for half in y.shape[2:]]
        rest = [side - known for side, known in zip(x.shape[2:], met, strict=True)]

        def pull(g: Tensor) -> Tensor:
            return conv_transpose2d(g, weight, None, 2, self._pad, rest, groups)

        return y, pull


class _Stage(nn.Module):
    """A convolution that halves an image, batch normalisation and a leaky ReLU."""

    def __init__(
        self, n_in: int, n_out: int, kernel: int, slope: float, normalise: bool
    ) -> None:
        super().__init__()
        self.convolution = _Halving(n_in, n_out, kernel)
        self.norm = BatchNorm(n_out) if normalise else None
        self._slope = slope

    def forward(self, x: Tensor) -> tuple[Tensor, _Pull]:
        """Map ``(n, members x in, h, w)``."""
        y, through_filters = self.convolution(x)
        y, through_norm = (y, _as_it_is) if self.norm is None else _normalised(y, self.norm)

        def pull(g: Tensor) -> Tensor:
            g = through_norm(torch.where(y > 0, g, self._slope * g))
            back: Tensor = through_filters(g)
            return back

        return leaky_relu(y, self._slope), pull


def _normalised(x: Tensor, norm: BatchNorm) -> tuple[Tensor, _Pull]:
    """Normalise ``(n, members x channels, h, w)`` as `norm` does, in its own precision."""
    axes = (0, 2, 3)
    x = x.to(norm.weight.dtype)
    running = [part.flatten()[:, None, None] for part in norm.running()]
    mean, variance = running
    by_batch = norm.training
    if by_batch:
        variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
        shape = norm.weight.shape
        own = (mean.detach().view(shape), variance.detach().view(shape))
        norm.follow(*own, x[:, 0].numel())
    spread = (variance + norm.eps).rsqrt()
    scale = norm.weight.flatten()[:, None, None] * spread
    unit = (x - mean) * spread
    y = norm.weight.flatten()[:, None, None] * unit + norm.bias.flatten()[:, None, None]

    def pull(g: Tensor) -> Tensor:
        g = g * scale
        if by_batch:  # the batch's mean and variance change with its rows
            g = g - g.mean(axes, keepdim=True) - unit * (g * unit).mean(axes, keepdim=True)
        return g

    return y, pull


def _as_it_is(g: Tensor) -> Tensor:
    return g


def _side_by_side(x: Tensor) -> tuple[Tensor, _Pull]:
    """``(members, n, c, h, w)`` to ``(n, members x c, h, w)``."""
    members = len(x)
    return (
        x.transpose(0, 1).flatten(1, 2),
        lambda g: _members_first(g, members),
    )


def _members_first(x: Tensor, members: int) -> Tensor:
    return x.reshape(len(x), members, -1, *x.shape[2:]).transpose(0, 1)


def _flat(x: Tensor, members: int | None) -> tuple[Tensor, _Pull]:
    """``(n, members x c, h, w)`` to ``(members, n, c h w)``; of one network ``(n, c h w)``."""
    shape = x.shape
    if members is None:
        return x.flatten(1), lambda g: g.view(shape)
    return (
        _members_first(x, members).flatten(2),
        lambda g: g.transpose(0, 1).reshape(shape),
    )


class DSEBMMembers(LearningMembers):
    """Energies of members, and how far rows move down their slopes.

    Parameters
    ----------
    energy
        The networks.
    noise_size, noise_scale
        Numbers of a row, and how far they are moved in training.
    criterion
        What the score is.
    """

    def __init__(
        self, energy: Stack, *, noise_size: int, noise_scale: float, criterion: Criterion
    ) -> None:
        super().__init__({"energy": energy})
        self.noise_size, self.noise_scale, self.criterion = noise_size, noise_scale, criterion

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the squared error of rows that were moved at random, all taken as normal."""
        x = _centred(x)
        moved = x + self.noise_scale * noise.reshape(x.shape)
        _, found = self.stacks["energy"](moved, training=True)
        return _error(x, found)

    def score(self, x: Tensor) -> Tensor:
        """Return the energy, or the squared error of rows as they are."""
        x = _centred(x)
        energy: Tensor
        energy, found = self.stacks["energy"](x)
        return energy if self.criterion == "energy" else _error(x, found)


def _centred(x: Tensor) -> Tensor:
    """Return pixels in [-1, 1], and rows of numbers as they are."""
    return 2 * x - 1 if x.dim() == 5 else x


def _error(x: Tensor, found: Tensor) -> Tensor:
    return (x - found).square().flatten(2).mean(-1)


@dataclass(kw_only=True, repr=False, eq=False)
class DSEBM(DeepBaseline):
    """Deep structured energy-based model: the energy of a network, learned by score matching.

    The energy is half the squared distance to a learned point, less the sum of the network's
    last softplus layer. A step down its slope is an autoencoder with tied weights; trained to
    bring noisy rows back, the slope becomes that of the (smoothed) density's logarithm.

    Parameters
    ----------
    hidden
        Of rows of numbers: widths of the softplus layers.
    criterion
        What the score is: ``"energy"`` (DSEBM-e), or ``"reconstruction"`` (DSEBM-r), the
        squared length of the energy's gradient as a mean over a row's numbers.
    noise_scale
        Standard deviation of the noise in training; of images for pixels in [-1, 1], as they
        are read here.

    Notes
    -----
    The other parameters are those of `DeepBaseline`. Images go through the encoder of Golan and
    El-Yaniv's autoencoder: convolutions that halve the image, batch-normalised, and a dense
    layer of experts. Theirs are ReLUs, here they are the softplus of Zhai et al.; their filters
    and epochs are in `PUBLISHED`. Of ``images``, ``hidden`` are softplus layers before the
    experts, and ``latent_dim`` counts these. Zhai et al. also have energies of sequences.

    A step has the multiplications of one of an autoencoder with the same encoder: the way back
    is its decoder. Convolutions run without `aloof`'s own kernels.

    References
    ----------
    Zhai et al., "Deep Structured Energy Based Models for Anomaly Detection", ICML 2016.
    Golan and El-Yaniv, "Deep Anomaly Detection Using Geometric Transformations", NeurIPS 2018.
    """

    hidden: tuple[int, ...] = (128, 512)
    criterion: Criterion = "energy"
    noise_scale: float = 0.5

    published: ClassVar[Mapping[str, Mapping[str, Any]]] = PUBLISHED

    checks: ClassVar[Mapping[str, Check]] = {
        "criterion": one_of(get_args(Criterion)),
        "noise_scale": real(0, above=True),
    }

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem.without_anomalies())

    def _members(self, networks: Networks, setup: Setup) -> DSEBMMembers:
        (made,) = setup.build(lambda: [self._network(networks.shape)])
        return DSEBMMembers(
            setup.stack(made, setup.example),
            noise_size=prod(networks.shape),
            noise_scale=self.noise_scale,
            criterion=self.criterion,
        )

    def _network(self, shape: tuple[int, ...]) -> EnergyNetwork:
        if len(shape) == 1:
            return EnergyNetwork(shape, self.hidden)
        options = dict(self.images or {})
        experts, hidden = options.pop("latent_dim", 32), options.pop("hidden", (64,))
        filters = options.pop("filters", None) or default_filters(shape)
        return EnergyNetwork(shape, (*hidden, experts), filters, **options)
