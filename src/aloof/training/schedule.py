"""How long, how fast and how precisely: the same for all members of a run."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi
from typing import Literal

from aloof.training.stack import Engine

__all__ = ["Precision", "Schedule"]

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The schedule of a run.

    Attributes
    ----------
    max_epochs
        Passes over the rows.
    batch_size
        Most rows in a batch; those of an epoch are of equal size.
    learning_rate, betas
        Of Adam.
    milestones
        Epochs, counted from 0, from which on the rate is a tenth of what it was.
    cosine_from
        Epoch from which the rate falls to zero at the last epoch, on a cosine; None: never.
    weight_decay
        Added to the gradient, times the parameters.
    max_grad_norm
        Each member's gradient is scaled down to this norm; None: never.
    context_dropout
        For each part of a row's context, the share of its numbers that are set to zero in
        training, anew in every batch; for words this is word dropout.
    patience
        Stop a member after so many epochs without a better loss on held-out rows, and keep
        its best state; None: never.
    precision
        ``"bfloat16"`` runs the networks in autocast.
    compile
        Run the loss through `torch.compile`; worth it for long fits on a GPU.
    engine
        How members are stacked; see `aloof.training.stack`.
    """

    max_epochs: int
    batch_size: int = 128
    learning_rate: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    milestones: tuple[int, ...] = ()
    cosine_from: int | None = None
    weight_decay: float = 0.0
    max_grad_norm: float | None = None
    context_dropout: tuple[float, ...] = ()
    patience: int | None = None
    precision: Precision = "float32"
    compile: bool = False
    engine: Engine = "auto"

    def rate(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 0."""
        rate = self.learning_rate * 0.1 ** sum(epoch >= start for start in self.milestones)
        if self.cosine_from is None or epoch < self.cosine_from:
            return rate
        rest = max(1, self.max_epochs - self.cosine_from)
        return rate * 0.5 * (1.0 + cos(pi * (epoch - self.cosine_from) / rest))
