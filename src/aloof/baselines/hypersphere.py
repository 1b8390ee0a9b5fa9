"""What Deep SVDD and Deep SAD share: pre-training, the centre, the distance to it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.baselines.autoencoder import fit_autoencoder
from aloof.baselines.contract import NetworkBaseline
from aloof.baselines.fitting import Schedule, built, evaluate
from aloof.baselines.networks import perceptron
from aloof.labels import ANOMALY
from aloof.training.seeds import Stream, derive

__all__ = ["Hypersphere", "HypersphereBaseline", "centre_of"]

_NEAREST_TO_ZERO = 0.1


def centre_of(codes: Tensor) -> Tensor:
    """Return the mean code, no coordinate of it nearer to zero than 0.1.

    A coordinate at zero could be met by all-zero weights.
    """
    centre = codes.mean(0)
    sign = torch.where(centre < 0, -1.0, 1.0).to(centre.dtype)
    return torch.where(centre.abs() < _NEAREST_TO_ZERO, sign * _NEAREST_TO_ZERO, centre)


class Hypersphere(nn.Module):
    """A bias-free encoder and a fixed centre.

    Parameters
    ----------
    encoder
        The network.
    centre
        A point of its representation.
    """

    centre: Tensor

    def __init__(self, encoder: nn.Module, centre: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("centre", centre)

    def forward(self, x: Tensor) -> Tensor:
        """Return the squared distance of each row to the centre."""
        distance: Tensor = (self.encoder(x) - self.centre).square().sum(-1)
        return distance


@dataclass(kw_only=True, repr=False, eq=False)
class HypersphereBaseline(NetworkBaseline):
    """The distance to a centre in the representation of a pre-trained, bias-free encoder.

    Parameters
    ----------
    pretrain_epochs
        Passes of the autoencoder whose encoder is the starting point; 0: start from random
        weights.
    pretrain_learning_rate, pretrain_weight_decay
        Of the autoencoder.
    n_members
        Networks, each with a centre of its own; the score is the mean distance.

    Notes
    -----
    The other parameters are those of `NetworkBaseline`.
    """

    pretrain_epochs: int = 150
    pretrain_learning_rate: float = 1e-4
    pretrain_weight_decay: float = 5e-4
    learning_rate: float = 1e-4
    n_members: int = 1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require(
            pretrain_epochs=(self.pretrain_epochs >= 0, "at least 0"),
            pretrain_learning_rate=(self.pretrain_learning_rate > 0, "positive"),
            pretrain_weight_decay=(self.pretrain_weight_decay >= 0, "at least 0"),
        )

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        rows = torch.from_numpy(X.astype(np.float32))
        self.members_ = [
            self._member(rows, torch.from_numpy(labels), derive(seed, Stream.MEMBER, k))
            for k in range(self.n_members)
        ]

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        distances = [evaluate(member, X) for member in self.members_]
        return np.asarray(np.mean(distances, 0))

    def _member(self, rows: Tensor, labels: Tensor, seed: int) -> Hypersphere:
        usual = rows[labels != ANOMALY]
        encoder = self._starting_point(usual, seed).eval()
        with torch.no_grad():
            centre = centre_of(encoder(usual))
        sphere = Hypersphere(encoder, centre)
        self._train(sphere, rows, labels, seed)
        return sphere.double()

    def _starting_point(self, rows: Tensor, seed: int) -> nn.Module:
        """Return the encoder of a trained autoencoder, or a fresh one."""
        if self.pretrain_epochs == 0:
            widths = (rows.shape[1], *self.hidden)
            return built(partial(perceptron, widths, bias=False, batch_norm=True), seed)
        network, _ = fit_autoencoder(
            rows,
            self.hidden,
            Schedule(
                self.pretrain_epochs, self.pretrain_learning_rate, self.pretrain_weight_decay
            ),
            batch_size=self.batch_size,
            seed=seed,
            bias=False,
        )
        return network.encoder

    @abstractmethod
    def _train(self, sphere: Hypersphere, rows: Tensor, labels: Tensor, seed: int) -> None:
        """Minimise the method's loss, in place."""
