"""The one loop that trains the networks of all baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.exceptions import DivergenceError
from aloof.training.adam import Adam
from aloof.training.seeds import Stream, derive, generator, seeded

__all__ = [
    "CPU",
    "Batches",
    "Loss",
    "Schedule",
    "balanced",
    "built",
    "evaluate",
    "fit",
    "shuffled",
]

CPU = torch.device("cpu")

Loss = Callable[[Tensor, torch.Generator], Tensor]
"""From the rows of a batch (their numbers) and a source of noise to one value."""

Batches = Callable[[torch.Generator], Sequence[Tensor]]
"""The batches of one epoch, as numbers of rows."""

_CHUNK = 1024


@dataclass(frozen=True)
class Schedule:
    """How long and how fast.

    Attributes
    ----------
    max_epochs
        Passes.
    learning_rate
        Of Adam; a tenth of it after two thirds of the passes.
    weight_decay
        Added to the gradient, times the parameters.
    """

    max_epochs: int
    learning_rate: float
    weight_decay: float = 0.0

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch; the first is 0."""
        return self.learning_rate * (1.0 if 3 * epoch < 2 * self.max_epochs else 0.1)


def shuffled(n_rows: int, batch_size: int) -> Batches:
    """Return batches that hold every row once; their sizes differ by one at most.

    No batch is a single row, which could not be normalised.
    """
    n_batches = max(1, min(math.ceil(n_rows / batch_size), n_rows // 2))

    def batches(source: torch.Generator) -> Sequence[Tensor]:
        order = torch.randperm(n_rows, generator=source)
        return torch.tensor_split(order, n_batches)

    return batches


def balanced(usual: Tensor, anomalies: Tensor, batch_size: int) -> Batches:
    """Return batches that are half anomalies, drawn with replacement.

    Every other row is in exactly one batch of an epoch.

    Parameters
    ----------
    usual, anomalies
        Numbers of rows.
    batch_size
        Most rows in a batch.
    """
    half = max(1, batch_size // 2)
    n_batches = math.ceil(len(usual) / half)

    def batches(source: torch.Generator) -> list[Tensor]:
        order = usual[torch.randperm(len(usual), generator=source)]
        parts = torch.tensor_split(order, n_batches)
        return [
            torch.cat([part, anomalies[_draws(len(anomalies), len(part), source)]])
            for part in parts
        ]

    return batches


def built(factory: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Return a fresh network; its initial weights are a function of `seed`."""
    with seeded(derive(seed, Stream.INITIALISE), CPU):
        return factory()


def fit(
    network: nn.Module,
    loss: Loss,
    batches: Batches,
    schedule: Schedule,
    seed: int,
    *,
    after_epoch: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """Minimise `loss` over the parameters of `network`, in place.

    Parameters
    ----------
    network
        What to train. Left in eval mode.
    loss
        The mean loss of a batch.
    batches
        What an epoch consists of.
    schedule
        How long and how fast.
    seed
        Of the batches and the noise.
    after_epoch
        Called with the number of each finished epoch, from 0.

    Returns
    -------
    The mean loss of each epoch.
    """
    values, gradient = _flattened(network)
    optimizer = Adam(values)
    curve = np.empty(schedule.max_epochs)
    for epoch in range(schedule.max_epochs):
        source = generator(derive(seed, Stream.EPOCH, epoch), CPU)
        rate = schedule.rate(epoch)
        network.train()
        losses = []
        for rows in batches(source):
            gradient.zero_()
            value = loss(rows, source)
            value.backward()  # type: ignore[no-untyped-call]
            losses.append(value.detach())
            gradient.add_(values, alpha=schedule.weight_decay)
            optimizer.step(gradient, rate)
        curve[epoch] = torch.stack(losses).mean()
        if not np.isfinite(curve[epoch]):
            raise DivergenceError(
                f"The loss is not finite after epoch {epoch + 1}. Lower the learning rate, "
                "and check that X is standardised."
            )
        network.eval()
        if after_epoch is not None:
            after_epoch(epoch)
    for parameter in network.parameters():
        parameter.grad = None
    return curve


def evaluate(
    function: Callable[[Tensor], Tensor], X: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Apply a function of rows to `X`, a chunk at a time and without gradients."""
    starts = range(0, len(X), _CHUNK)
    with torch.no_grad():
        # A copy, because torch takes no read-only or reversed arrays.
        parts = [function(torch.from_numpy(X[k : k + _CHUNK].copy())) for k in starts]
    return torch.cat(parts).numpy()


def _flattened(network: nn.Module) -> tuple[Tensor, Tensor]:
    """Make parameters and gradients views of two vectors: one update instead of many."""
    parameters = list(network.parameters())
    values = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
    gradient = torch.zeros_like(values)
    start = 0
    for parameter in parameters:
        part = slice(start, start + parameter.numel())
        parameter.data = values[part].view_as(parameter)
        parameter.grad = gradient[part].view_as(parameter)
        start = part.stop
    return values, gradient


def _draws(n_rows: int, n_draws: int, source: torch.Generator) -> Tensor:
    return torch.randint(n_rows, (n_draws,), generator=source)
