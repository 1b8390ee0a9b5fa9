"""DADGT: a classifier that tells which geometric transformation an image went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, log_softmax

from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, over_data
from aloof.baselines.networks import Networks
from aloof.baselines.wide_resnet import WideResNet
from aloof.estimators._parameters import Check, integer, one_of, or_none
from aloof.networks import count_multiplications
from aloof.objectives import dirichlet_log_density, fit_dirichlet
from aloof.problem import Problem
from aloof.training import Run, Schedule, Setup, Task, Trained
from aloof.vision.transformations import N_TRANSFORMATIONS, transformations

__all__ = ["DADGT", "Normality", "TransformationMembers", "TransformedClassifier"]

Normality = Literal["dirichlet", "softmax"]


class TransformedClassifier(nn.Module):
    """A `WideResNet` that transforms the images it is shown.

    Parameters
    ----------
    shape
        Shape of one image, ``(channels, side, side)``.
    depth, widen
        Of the network.
    """

    sources: Tensor

    def __init__(self, shape: Sequence[int], *, depth: int, widen: int) -> None:
        super().__init__()
        self.network = WideResNet(shape, N_TRANSFORMATIONS, depth=depth, widen=widen)
        self.register_buffer("sources", torch.from_numpy(transformations(shape[-1])))

    def forward(self, x: Tensor, which: Tensor | None = None) -> Tensor:
        """Map images in [0, 1] and a transformation for each to logits ``(n, 72)``."""
        if which is not None:
            pixels = x.flatten(2)
            sources = self.sources[which].unsqueeze(1).expand(pixels.shape)
            x = pixels.gather(2, sources).view(x.shape)
        logits: Tensor = self.network(2.0 * x - 1.0)
        return logits


class TransformationMembers(LearningMembers):
    """Classifiers of transformations.

    After the training they may have a concentration, ``(members, 72, 72)``: that of the
    responses of normal images, for each transformation that was applied.
    """

    @classmethod
    def build(cls, depth: int, widen: int, setup: Setup) -> TransformationMembers:
        """Initialise members."""
        shape = setup.example[0].shape[1:]
        (made,) = setup.build(lambda: [TransformedClassifier(shape, depth=depth, widen=widen)])
        which = torch.zeros(len(setup.example[0]), dtype=torch.int64)
        return cls({"encoder": setup.stack(made, [*setup.example, which])})

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the cross-entropy; a row's label is the transformation to apply to it."""
        logits: Tensor = self.stacks["encoder"](x, labels, training=True)
        return cross_entropy(logits.mT, labels, reduction="none")

    def score(self, x: Tensor) -> Tensor:
        """Return minus the mean log-density of the responses to all transformations.

        Without a concentration: one minus the mean probability of the right transformation.
        """
        concentration = self.tensors.get("concentration")
        total = x.new_zeros(x.shape[:2])
        for number in range(N_TRANSFORMATIONS):
            log_p = self.response(x, number)
            if concentration is None:
                total += 1.0 - log_p[..., number].exp()
            else:
                total -= dirichlet_log_density(log_p, concentration[:, number].unsqueeze(1))
        return total / N_TRANSFORMATIONS

    def response(self, x: Tensor, number: int) -> Tensor:
        """Return log-probabilities, ``(members, n, 72)``, of rows transformed in one way."""
        which = torch.full(x.shape[:2], number, device=x.device)
        return log_softmax(self.stacks["encoder"](x, which), -1)

    def with_concentration(self, run: Run, rows: NDArray[np.int64]) -> Self:
        """Return members that know the density of their responses to normal rows."""
        means = []
        for number in range(N_TRANSFORMATIONS):

            def response(x: Tensor, number: int = number) -> Tensor:
                return self.response(x, number)

            log_p = over_data(response, run, rows, self.n_members).cpu().double()
            means.append(torch.stack([log_p.mean(1), log_p.exp().mean(1)]))
        found = fit_dirichlet(*torch.stack(means, 2))
        like = next(iter(self.stacks["encoder"].parameters.values()))
        concentration = found.to(like.device, like.dtype)
        return self._with(self.stacks, {"concentration": concentration})


@dataclass(kw_only=True, repr=False, eq=False)
class DADGT(DeepBaseline):
    """Deep anomaly detection using geometric transformations; for square images.

    A classifier learns which of 72 transformations a normal image went through. Where it fails,
    or answers in another way than for normal images, there is an anomaly.

    Parameters
    ----------
    depth, widen
        Of the `aloof.baselines.wide_resnet.WideResNet`. None: what the authors have, 10 and 4
        for images of up to 32 pixels a side, 16 and 8 for larger ones.
    normality
        ``"dirichlet"``: how likely the responses to the transformed image are under Dirichlet
        distributions, one for each transformation, fitted to those of the training images.
        ``"softmax"``: the mean probability of the right transformation, the authors'
        simplified score.
    max_epochs
        Passes over the training images, each image in one of its transformations; 216 are as
        many steps as three passes over all transformed images, the authors' number.

    Notes
    -----
    The other parameters are those of `DeepBaseline`, but for `images`: the network is the
    method's own. Optimiser, weight decay and batches are the authors'; the rate does not fall.
    They report a mean AUROC of 86.0 on CIFAR-10, 93.5 on Fashion-MNIST and 88.8 on CatsVsDogs.

    What differs: a pass draws its pairs of image and transformation at random from all there
    are, where the authors go through all of them in turn. Images of 28 pixels stay as they are,
    where the authors pad them to 32. Log-densities have their normalising constants, which
    change no order. Members are trained one after the other, since the layers are wide enough
    to fill a GPU.

    References
    ----------
    Golan and El-Yaniv, "Deep Anomaly Detection Using Geometric Transformations", NeurIPS 2018.
    """

    max_epochs: int = 3 * N_TRANSFORMATIONS
    milestones: tuple[int, ...] | None = ()
    weight_decay: float = 5e-4
    depth: int | None = None
    widen: int | None = None
    normality: Normality = "dirichlet"

    images_only: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, Check]] = {
        "images": (lambda v: v is None, "None (set depth and widen instead)"),
        "depth": or_none(
            (
                lambda v: integer(10)[0](v) and v % 6 == 4,
                "10, 16, 22 or another int of this series",
            )
        ),
        "widen": or_none(integer(1)),
        "normality": one_of(get_args(Normality)),
    }

    def multiplications(self, shape: Sequence[int]) -> float:
        """Return those of the one network."""
        depth, widen = self._size(shape)
        return count_multiplications(
            lambda: WideResNet(shape, N_TRANSFORMATIONS, depth=depth, widen=widen), shape
        )

    def _size(self, shape: Sequence[int]) -> tuple[int, int]:
        depth, widen = (16, 8) if shape[-1] > 32 else (10, 4)
        return self.depth or depth, self.widen or widen

    def _task(self, problem: Problem) -> Task:
        n = len(problem.normal)
        return Task(
            rows=np.repeat(problem.normal, N_TRANSFORMATIONS),
            labels=np.tile(np.arange(N_TRANSFORMATIONS), n),
            rows_per_epoch=n,
            seeds=problem.seeds,
        )

    def _members(self, networks: Networks, setup: Setup) -> TransformationMembers:
        return TransformationMembers.build(*self._size(networks.shape), setup)

    def _train(
        self, run: Run, networks: Networks, problems: Sequence[Problem]
    ) -> Sequence[Trained[TransformationMembers]]:
        _check_shape(networks.shape)
        trained = super()._train(run, networks, problems)
        if self.normality == "softmax":
            return trained
        return [
            replace(own, members=own.members.with_concentration(run, problem.normal))
            for problem, own in zip(problems, trained, strict=True)
        ]

    def _schedule(self, **changes: Any) -> Schedule:
        return replace(super()._schedule(**changes), engine="loop")


def _check_shape(shape: Sequence[int]) -> None:
    if len(shape) != 3:
        raise ValueError(
            "DADGT turns and moves images, but these are rows of numbers. Use a method for "
            "tables instead, such as the autoencoder."
        )
    if shape[1] != shape[2] or shape[1] < 4:
        raise ValueError(
            "DADGT turns images, which must be square and at least 4 pixels per side; these "
            f"are {shape[1]} x {shape[2]}. Crop or resize them."
        )
