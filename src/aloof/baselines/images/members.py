"""The members of a method, stacked: what they minimise, and how they score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from aloof.baselines.deep_sad import deep_sad_loss
from aloof.baselines.images.networks import ImageNetworks
from aloof.labels import ANOMALY
from aloof.training import Engine, Stack, Stream, derive
from aloof.training.seeds import seeded

__all__ = ["Autoencoders", "Classifiers", "Learners", "Members", "Spheres"]

_Made = TypeVar("_Made")


class Members(ABC):
    """Networks of K members that score rows ``(members, n, c, h, w)``.

    Parameters
    ----------
    encoder
        The encoders.

    Attributes
    ----------
    encoder
        As given.
    """

    def __init__(self, encoder: Stack) -> None:
        self.encoder = encoder

    @property
    def n_members(self) -> int:
        """Return the number of members."""
        return self.encoder.n_members

    def encode(self, x: Tensor) -> Tensor:
        """Return the codes of rows, ``(members, n, size)``."""
        code: Tensor = self.encoder(x)
        return code

    @abstractmethod
    def score(self, x: Tensor) -> Tensor:
        """Return how anomalous each row is ``(members, n)``; higher is worse."""


class Learners(Members):
    """Members that are trained together, all networks at once."""

    @property
    def noise_size(self) -> int:
        """Return how many random numbers a row's loss takes: 1, which may go unused."""
        return 1

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """Return all networks."""
        return (self.encoder,)

    @abstractmethod
    def loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return what is minimised, for each row ``(members, n)``.

        Parameters
        ----------
        x
            Rows.
        labels
            1 anomaly, -1 unlabelled, ``(members, n)``.
        noise
            Standard normal, ``(members, n, noise_size)``.
        """

    @abstractmethod
    def select(self, members: Sequence[int] | slice) -> Self:
        """Return some of the members, with tensors of their own."""


class Autoencoders(Learners):
    """The reconstruction error: the mean over pixels of its square.

    Parameters
    ----------
    encoder, decoder
        The networks.
    """

    def __init__(self, encoder: Stack, decoder: Stack) -> None:
        super().__init__(encoder)
        self.decoder = decoder

    @classmethod
    def build(
        cls,
        networks: ImageNetworks,
        seeds: Sequence[int],
        device: torch.device,
        *,
        bias: bool,
        engine: Engine = "auto",
    ) -> Self:
        """Initialise one member for each seed."""
        pairs = _built(lambda: networks.autoencoder(bias=bias), seeds)
        n = len(seeds)
        images = torch.zeros(n, 2, *networks.shape)
        codes = torch.zeros(n, 2, networks.latent_dim)
        encoders, decoders = zip(*pairs, strict=True)
        return cls(
            Stack(encoders, engine=engine, example=[images], device=device),
            Stack(decoders, engine=engine, example=[codes], device=device),
        )

    @property
    def stacks(self) -> tuple[Stack, ...]:
        """Return encoders and decoders."""
        return (self.encoder, self.decoder)

    def loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the squared error of rows, all taken as normal."""
        return self._error(x, training=True)

    def score(self, x: Tensor) -> Tensor:
        """Return the squared error."""
        return self._error(x, training=False)

    def select(self, members: Sequence[int] | slice) -> Self:
        """Return some of the members."""
        return type(self)(self.encoder.select(members), self.decoder.select(members))

    def _error(self, x: Tensor, *, training: bool) -> Tensor:
        code = self.encoder(x, training=training)
        output: Tensor = self.decoder(code, training=training)
        return (x - output).square().flatten(2).mean(-1)


class Spheres(Learners):
    """Deep SVDD and Deep SAD: the squared distance to a fixed centre.

    Parameters
    ----------
    encoder
        Networks without biases.
    centre
        ``(members, latent_dim)``.
    eta
        Weight of labelled anomalies. Without any, this is one-class Deep SVDD.
    """

    def __init__(self, encoder: Stack, centre: Tensor, eta: float) -> None:
        super().__init__(encoder)
        self.centre, self.eta = centre, eta

    def loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the distance of unlabelled rows, its inverse for anomalies."""
        return deep_sad_loss(self._distance(x, training=True), labels, self.eta)

    def score(self, x: Tensor) -> Tensor:
        """Return the squared distance."""
        return self._distance(x, training=False)

    def select(self, members: Sequence[int] | slice) -> Self:
        """Return some of the members."""
        return type(self)(self.encoder.select(members), self.centre[members], self.eta)

    def _distance(self, x: Tensor, *, training: bool) -> Tensor:
        code: Tensor = self.encoder(x, training=training)
        return (code - self.centre.unsqueeze(1)).square().sum(-1)


class Classifiers(Learners):
    """Labelled anomalies against all other rows; the score is the logit."""

    @classmethod
    def build(
        cls,
        networks: ImageNetworks,
        seeds: Sequence[int],
        device: torch.device,
        *,
        engine: Engine = "auto",
    ) -> Self:
        """Initialise one member for each seed."""
        images = torch.zeros(len(seeds), 2, *networks.shape)
        built = _built(networks.classifier, seeds)
        return cls(Stack(built, engine=engine, example=[images], device=device))

    def loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the cross-entropy."""
        logit = self._logit(x, training=True)
        target = (labels == ANOMALY).to(logit.dtype)
        return binary_cross_entropy_with_logits(logit, target, reduction="none")

    def score(self, x: Tensor) -> Tensor:
        """Return the logit."""
        return self._logit(x, training=False)

    def select(self, members: Sequence[int] | slice) -> Self:
        """Return some of the members."""
        return type(self)(self.encoder.select(members))

    def _logit(self, x: Tensor, *, training: bool) -> Tensor:
        logit: Tensor = self.encoder(x, training=training)
        return logit.squeeze(-1)


def _built(factory: Callable[[], _Made], seeds: Sequence[int]) -> list[_Made]:
    """Return what `factory` makes for each seed."""
    networks = []
    for seed in seeds:
        with seeded(derive(seed, Stream.INITIALISE), torch.device("cpu")):
            networks.append(factory())
    return networks
