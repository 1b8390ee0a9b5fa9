"""The autoencoder: its reconstruction error as a score, its code as features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.baselines.contract import NetworkBaseline
from aloof.baselines.fitting import Schedule, built, evaluate, fit, shuffled
from aloof.baselines.networks import AutoencoderNetwork
from aloof.labels import ANOMALY

__all__ = ["Autoencoder", "fit_autoencoder", "squared_error"]


def squared_error(network: AutoencoderNetwork, x: Tensor) -> Tensor:
    """Return the mean over features of each row's squared reconstruction error."""
    error: Tensor = (x - network(x)).square().mean(-1)
    return error


def fit_autoencoder(
    rows: Tensor,
    hidden: tuple[int, ...],
    schedule: Schedule,
    *,
    batch_size: int,
    seed: int,
    bias: bool = True,
) -> tuple[AutoencoderNetwork, NDArray[np.float64]]:
    """Train an autoencoder on `rows`; return it with its mean loss after each epoch."""
    factory = partial(AutoencoderNetwork, rows.shape[1], hidden, bias=bias)
    network = cast(AutoencoderNetwork, built(factory, seed))

    def loss(batch: Tensor, _: torch.Generator) -> Tensor:
        return squared_error(network, rows[batch]).mean()

    curve = fit(network, loss, shuffled(len(rows), batch_size), schedule, seed)
    return network, curve


@dataclass(kw_only=True, repr=False, eq=False)
class Autoencoder(NetworkBaseline):
    """The reconstruction error of an autoencoder ("CAE" in the paper, here for tables).

    Parameters
    ----------
    bias
        Whether layers have biases. False is the network that Deep SVDD and Deep SAD are
        pre-trained with.

    Attributes
    ----------
    loss_curve_
        Mean squared error in each epoch.

    Notes
    -----
    The other parameters are those of `NetworkBaseline`. Batch normalisation, learning rate
    and weight decay are what Ruff et al. published for tables.
    """

    learning_rate: float = 1e-4
    weight_decay: float = 5e-4
    bias: bool = True

    def encode(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the code of each row, ``(n, hidden[-1])``."""
        return evaluate(self._network.encoder, X)

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        rows = torch.from_numpy(X[labels != ANOMALY].astype(np.float32))
        network, self.loss_curve_ = fit_autoencoder(
            rows,
            self.hidden,
            self._schedule(),
            batch_size=self.batch_size,
            seed=seed,
            bias=self.bias,
        )
        self._network = network.double()

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return evaluate(partial(squared_error, self._network), X)
