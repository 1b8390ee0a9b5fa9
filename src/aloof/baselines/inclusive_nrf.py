"""Inclusive-NRF: a neural random field, and a generator that its samples start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod, sqrt
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, leaky_relu, max_pool2d, pad

from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, mixed_task
from aloof.baselines.networks import Networks, Perceptron, networks_for
from aloof.estimators._parameters import BOOLEAN, Check, integer, or_none, real
from aloof.networks import count_multiplications, default_filters
from aloof.networks.stacked import can_fuse, fused_stage
from aloof.problem import Problem
from aloof.training import Schedule, Setup, Stack, Task

__all__ = [
    "PUBLISHED",
    "InclusiveNRF",
    "PixelGenerator",
    "Potential",
    "RandomFieldMembers",
    "Sampling",
]

PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "cifar10": {
        "images": {
            "filters": (96, 192),
            "hidden": (192, 192, 192),
            "latent_dim": 100,
            "kernel": 3,
            "slope": 0.2,
        },
        "n_convolutions": 3,
        "n_steps": 10,
        "step_size": 0.03,
        "step_noise": 0.0,
        "batch_size": 64,
        "max_epochs": 100,
        "milestones": (),
    },
    "mnist": {
        "images": {
            "filters": (),
            "hidden": (1000, 500, 250, 250, 250),
            "latent_dim": 100,
            "slope": 0.0,
        },
        "centred": False,
        "n_steps": 20,
        "step_size": 0.003,
        "step_noise": 0.0,
        "momentum": 0.5,
        "sigma": 0.1,
        "confinement": 1.0,
        "batch_size": 100,
        "max_epochs": 50,
        "milestones": (),
    },
}
"""Parameters by data set, of the code the authors published."""

_SLOPE = 0.2  # of the leaky ReLU, of rows of numbers
_BETAS = (0.0, 0.99)  # of Adam: without a mean of gradients, as in the authors' RMSprop
_TINY = 1e-6


class _Unit(nn.Module):
    """A layer whose weights have unit length for each of its outputs.

    Parameters
    ----------
    shape
        Of the weights, outputs first.
    """

    def __init__(self, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.05 * torch.randn(*shape))
        self.bias = nn.Parameter(torch.zeros(shape[0]))
        self._n_axes = len(shape) - 1

    @property
    def unit(self) -> Tensor:
        """Return the weights at unit length; of stacked members, each member's own."""
        axes = tuple(range(-self._n_axes, 0))
        return self.weight * (self.weight.square().sum(axes, keepdim=True) + _TINY).rsqrt()


class _UnitLinear(_Unit):
    """A linear layer of unit length."""

    stackable = True

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__(n_out, n_in)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., n, in)`` to ``(..., n, out)``."""
        return torch.matmul(x, self.unit.mT) + self.bias.unsqueeze(-2)


class _UnitStage(_Unit):
    """A convolution of unit length that keeps the size, a leaky ReLU, and 2x2 max pooling."""

    stackable = True

    def __init__(self, n_in: int, n_out: int, kernel: int, slope: float, pool: bool) -> None:
        super().__init__(n_out, n_in, kernel, kernel)
        self._slope, self._pool = slope, pool

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(n, c, h, w)``, or ``(members, n, h, w, c)`` if the weights are stacked."""
        weight = self.unit
        if weight.dim() == 4:
            return self._plain(x, weight, self.bias, 1)
        if x.is_cuda and torch.is_autocast_enabled("cuda"):
            x = x.to(torch.get_autocast_dtype("cuda"))
        if can_fuse(x):
            return fused_stage(
                x,
                weight,
                self.bias,
                None,
                None,
                statistics=None,
                eps=0.0,
                slope=self._slope,
                pool=self._pool,
            )[0]
        members = len(x)
        y = x.permute(1, 0, 4, 2, 3).flatten(1, 2)
        y = self._plain(y, weight.flatten(0, 1), self.bias.flatten(), members)
        return y.view(len(y), members, -1, *y.shape[2:]).permute(1, 0, 3, 4, 2)

    def _plain(self, x: Tensor, weight: Tensor, bias: Tensor, groups: int) -> Tensor:
        before = (weight.shape[-1] - 1) // 2
        after = weight.shape[-1] - 1 - before
        y = conv2d(pad(x, (before, after, before, after)), weight, bias, groups=groups)
        y = leaky_relu(y, self._slope)
        return max_pool2d(y, 2) if self._pool else y


class Potential(nn.Module):
    """The potential u of a random field: layers of unit length, and a scale that is learned.

    Parameters
    ----------
    shape
        Of one row.
    widths
        Of the dense layers. All numbers of a row go through them; behind convolutions every
        pixel does alone, and the mean over pixels counts.
    filters, kernel
        Of images: stages of convolutions, each of which ends with 2x2 pooling.
    slope
        Of the leaky ReLU below zero.
    n_convolutions
        In each stage.
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
        n_convolutions: int = 1,
    ) -> None:
        super().__init__()
        self._n_axes, self._slope = len(shape), slope
        self.stages = nn.ModuleList(
            _UnitStage(
                n_in if number == 0 else n_out,
                n_out,
                kernel,
                slope,
                pool=number == n_convolutions - 1,
            )
            for n_in, n_out in pairwise((shape[0], *filters))
            for number in range(n_convolutions)
        )
        sizes = (filters[-1] if filters else prod(shape), *widths)
        self.dense = nn.ModuleList(_UnitLinear(*pair) for pair in pairwise(sizes))
        self.head = _UnitLinear(sizes[-1], 1)
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        """Map rows ``(..., n, *shape)`` to u, ``(..., n)``."""
        if len(self.stages):
            y = self._convolved(x)
            before = y.shape[:-1]
            y = self._activated(y.flatten(-4, -2)).view(*before, -1).mean((-3, -2))
        else:
            y = self._activated(x.flatten(-self._n_axes))
        with torch.autocast(y.device.type, enabled=False):
            u: Tensor = self.head(y.to(self.scale.dtype)).squeeze(-1) * self.scale
        return u

    def _convolved(self, x: Tensor) -> Tensor:
        """Return ``(..., n, h, w, c)``."""
        stacked = x.dim() == 5
        y = x.permute(0, 1, 3, 4, 2) if stacked else x
        for stage in self.stages:
            y = stage(y)
        return y if stacked else y.permute(0, 2, 3, 1)

    def _activated(self, y: Tensor) -> Tensor:
        for layer in self.dense:
            y = leaky_relu(layer(y), self._slope)
        return y


class PixelGenerator(nn.Module):
    """A perceptron from codes to images in [0, 1].

    Parameters
    ----------
    shape
        Of one image.
    widths
        From the code to the last hidden layer.
    """

    stackable = True

    def __init__(self, shape: Sequence[int], widths: Sequence[int]) -> None:
        super().__init__()
        self.perceptron = Perceptron((*widths, prod(shape)), normalise=True)
        self._shape = tuple(shape)

    def forward(self, code: Tensor) -> Tensor:
        """Map ``(..., n, size)`` to images ``(..., n, c, h, w)``."""
        pixels = torch.sigmoid(self.perceptron(code))
        return pixels.view(*pixels.shape[:-1], *self._shape)


@dataclass(frozen=True)
class Sampling:
    """How samples of a field are made; the attributes are parameters of `InclusiveNRF`."""

    centred: bool
    n_steps: int
    step_size: float
    momentum: float
    step_noise: float
    sigma: float
    revise_codes: bool

    def parts(self, row_size: int, code_size: int) -> list[int]:
        """Return how many random numbers are a code, noise of its row, and of each step."""
        each = (row_size + code_size * self.revise_codes) * (self.step_noise > 0)
        return [code_size, row_size * (self.sigma > 0), *[each] * self.n_steps]


class RandomFieldMembers(LearningMembers):
    """Random fields of members, each with a generator.

    Parameters
    ----------
    potential, generator
        The networks.
    row_size, code_size
        Numbers of a row, and of what one is generated from.
    sampling, confinement
        As in `InclusiveNRF`.
    """

    def __init__(
        self,
        potential: Stack,
        generator: Stack,
        *,
        row_size: int,
        code_size: int,
        sampling: Sampling,
        confinement: float,
    ) -> None:
        super().__init__({"potential": potential, "generator": generator})
        self.sampling, self.confinement = sampling, confinement
        self._row_size = row_size
        self._parts = sampling.parts(row_size, code_size)
        self.noise_size = sum(self._parts)

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return what moves the field, all rows taken as normal, and what moves the generator.

        Both are in one sum: neither has a gradient in the other's network.
        """
        x = self._placed(x)
        code, own, *steps = torch.split(noise, self._parts, -1)
        made = self._generated(code)
        start = made.detach()
        if self.sampling.sigma:
            start = start + self.sampling.sigma * own.reshape(x.shape)
        sample, revised = self.revise(start, code, steps)
        both = self.stacks["potential"](torch.cat([x, sample], 1), training=True)
        u, u_sample = both.chunk(2, 1)
        field = u_sample - u + self.confinement * u.square()
        if self.sampling.revise_codes:
            made = self._generated(revised)
        loss: Tensor = field + (sample - made).square().flatten(2).sum(-1)
        return loss

    def revise(self, x: Tensor, code: Tensor, noise: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Move generated rows to where the field has more of them, and codes after them.

        Parameters
        ----------
        x
            Rows, without gradient.
        code
            What they were generated from.
        noise
            Of each step, ``(members, n, ...)``; may be empty.

        Returns
        -------
        Rows and codes, without gradient; the codes as they were where they are not revised.
        """
        how = self.sampling
        speed, code_speed = torch.zeros_like(x), torch.zeros_like(code)
        for drawn in noise:
            speed = how.momentum * speed + how.step_size * self._slope_of_u(x)
            x = x + speed
            if how.step_noise:
                x = x + how.step_noise * drawn[..., : self._row_size].reshape(x.shape)
            if x.dim() == 5:
                x = x.clamp(-1.0 if how.centred else 0.0, 1.0)
            if how.revise_codes:
                slope = self._slope_of_code(code, x)
                code_speed = how.momentum * code_speed + how.step_size * slope
                code = code + code_speed
                if how.step_noise:
                    code = code + how.step_noise * drawn[..., self._row_size :]
        return x, code

    def score(self, x: Tensor) -> Tensor:
        """Return minus the potential."""
        u: Tensor = self.stacks["potential"](self._placed(x))
        return -u

    def _generated(self, code: Tensor, *, frozen: bool = False) -> Tensor:
        made: Tensor = self.stacks["generator"](code, training=True, frozen=frozen)
        return self._placed(made.to(code.dtype))

    def _placed(self, x: Tensor) -> Tensor:
        """Return pixels, which are in [0, 1], as the field sees them; numbers as they are."""
        return 2 * x - 1 if x.dim() == 5 and self.sampling.centred else x

    def _slope_of_u(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        u = self.stacks["potential"](x, training=True, frozen=True)
        (slope,) = torch.autograd.grad(u.sum(), x)
        return slope

    def _slope_of_code(self, code: Tensor, x: Tensor) -> Tensor:
        """Return the gradient of log q(x, code), for a generator of unit variance."""
        code = code.detach().requires_grad_()
        error = (x - self._generated(code, frozen=True)).square().sum() / 2
        (slope,) = torch.autograd.grad(-error - code.square().sum() / 2, code)
        return slope


@dataclass(kw_only=True, repr=False, eq=False)
class InclusiveNRF(DeepBaseline):
    """Neural random field with an inclusive auxiliary generator; the score is minus u(x).

    The density is proportional to exp(u(x)), for a network u. Its gradient needs samples of the
    model: they come from a generator, and are moved a few steps up the slope of u. The field
    then moves towards the rows and away from the samples, the generator towards the samples:
    this is the inclusive divergence, by which it has to cover all that the field does.

    Parameters
    ----------
    hidden
        Of rows of numbers: widths of u; the last one is also the size of the generator's code.
    centred
        Of images: whether u sees pixels in [-1, 1], as the authors' does on CIFAR-10, or in
        [0, 1], as on MNIST, where a background of -1 would outweigh the digits.
    n_steps, step_size, momentum
        How samples are moved: steps, their length in gradients of u (None: 0.1 for rows of
        numbers, and the authors' 0.03 for images), and what share of a step goes on in the
        next (0: Langevin dynamics, otherwise Hamiltonian).
    step_noise
        Standard deviation of the noise of a step. None: that of Langevin dynamics, the root of
        twice `step_size`. The authors' code has none where it looks for anomalies.
    sigma
        Standard deviation of the noise that is added to what is generated.
    revise_codes
        Whether codes follow their samples up the slope of the generator's log-density, so that
        the generator learns from pairs that belong together. The authors do so where they
        generate images, not where they look for anomalies.
    confinement
        Weight of u(x) squared, which holds the potential of rows near 0.
    n_convolutions
        Of images: in each stage of u, before its pooling.
    weight_decay
        As in `DeepBaseline`, but none by default. A dead unit has no other gradient: Adam would
        take its weights to zero in a few steps, and scaling them to unit length would leave
        noise.

    Notes
    -----
    The other parameters are those of `DeepBaseline`. As published, layers of u have weights of
    unit length and no batch normalisation, while the generator has it: it is the decoder of the
    other baselines. The authors' u of images halves by strides, ours by pooling; of ``images``,
    ``hidden`` are convolutions of 1x1 in u. Where ``filters`` is empty, both networks are
    perceptrons of pixels, as the authors' are on MNIST. Their u of tables has tanh, which was
    found to saturate before the generator had caught up; here it is a leaky ReLU everywhere.
    They have RMSprop, and on MNIST a rate for each network; here it is Adam without a mean of
    gradients, and one rate. On MNIST they also start with layers whose outputs have mean 0 and
    variance 1 on some rows, and draw codes from a uniform distribution: neither made a
    difference. From one epoch to the next the AUROC moves by ten points and more, and their
    code reports the best on the test set over all epochs. Ours is that of the last epoch, or
    of the best one for rows that a problem holds out.

    Each move of the samples is a gradient of u: a step has about 2 + 2/3 `n_steps` times the
    multiplications of a classifier that is as large as u, and the generator's.

    References
    ----------
    Song and Ou, "Learning Neural Random Fields with Inclusive Auxiliary Generators", 2018, and
    "Generative Modeling by Inclusive Neural Random Fields with Applications in Image Generation
    and Anomaly Detection", 2020.
    """

    hidden: tuple[int, ...] = (60, 30, 10)
    weight_decay: float = 0.0
    centred: bool = True
    n_steps: int = 10
    step_size: float | None = None
    momentum: float = 0.0
    step_noise: float | None = None
    sigma: float = 0.0
    revise_codes: bool = False
    confinement: float = 0.1
    n_convolutions: int = 1

    chooses_epoch: ClassVar[bool] = True
    published: ClassVar[Mapping[str, Mapping[str, Any]]] = PUBLISHED

    checks: ClassVar[Mapping[str, Check]] = {
        "centred": BOOLEAN,
        "n_steps": integer(1),
        "step_size": or_none(real(0, above=True)),
        "momentum": real(0, 1, below=True),
        "step_noise": or_none(real(0)),
        "sigma": real(0),
        "revise_codes": BOOLEAN,
        "confinement": real(0),
        "n_convolutions": integer(1),
    }

    def multiplications(self, shape: Sequence[int]) -> float:
        """Return those of all moves of a sample, and of the generator."""
        networks = networks_for(shape, self.hidden, self.images)
        field = count_multiplications(lambda: self._networks(networks)[0], shape)
        generator = count_multiplications(lambda: self._networks(networks)[1], (networks.size,))
        return (2 + 2 / 3 * self.n_steps) * field + generator

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem.without_anomalies())

    def _schedule(self, **changes: Any) -> Schedule:
        # No field stops early; where rows are held out, its best epoch is kept.
        return super()._schedule(betas=_BETAS, patience=self.max_epochs, **changes)

    def _members(self, networks: Networks, setup: Setup) -> RandomFieldMembers:
        potentials, generators = setup.build(lambda: self._networks(networks))
        code = torch.zeros(2, networks.size, dtype=setup.dtype)
        return RandomFieldMembers(
            setup.stack(potentials, setup.example),
            setup.stack(generators, [code]),
            row_size=prod(networks.shape),
            code_size=networks.size,
            sampling=self._sampling(of_images=len(networks.shape) == 3),
            confinement=self.confinement,
        )

    def _sampling(self, *, of_images: bool) -> Sampling:
        step, noise = self.step_size, self.step_noise
        if step is None:
            step = 0.03 if of_images else 0.1
        if noise is None:
            noise = sqrt(2 * step)
        return Sampling(
            self.centred,
            self.n_steps,
            step,
            self.momentum,
            noise,
            self.sigma,
            self.revise_codes,
        )

    def _networks(self, networks: Networks) -> list[nn.Module]:
        """Return an untrained potential, and a generator."""
        shape = networks.shape
        if len(shape) == 1:
            return [Potential(shape, self.hidden, slope=_SLOPE), networks.decoder()]
        options = dict(self.images or {})
        for of_generator in ("latent_dim", "normalise", "decoder"):
            options.pop(of_generator, None)
        hidden = tuple(options.pop("hidden", (64,)))
        filters = options.pop("filters", None)
        filters = default_filters(shape) if filters is None else tuple(filters)
        potential = Potential(
            shape, hidden, filters, n_convolutions=self.n_convolutions, **options
        )
        if filters:
            return [potential, networks.decoder()]
        return [potential, PixelGenerator(shape, (networks.size, *hidden[::-1]))]
