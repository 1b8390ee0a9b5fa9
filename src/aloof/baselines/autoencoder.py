"""The autoencoder: its reconstruction error as a score, its code as features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, mixed_task
from aloof.baselines.networks import Networks, without_biases
from aloof.estimators._parameters import BOOLEAN, Check
from aloof.problem import Problem
from aloof.training import Setup, Task

__all__ = ["Autoencoder", "AutoencoderMembers"]


class AutoencoderMembers(LearningMembers):
    """The reconstruction error: the mean over a row's numbers of its square."""

    @classmethod
    def build(cls, networks: Networks, setup: Setup, *, bias: bool) -> AutoencoderMembers:
        """Initialise members, with or without biases."""

        def pair() -> list[nn.Module]:
            parts = [networks.encoder(), networks.decoder()]
            return parts if bias else [without_biases(part) for part in parts]

        encoders, decoders = setup.build(pair)
        code = torch.zeros(2, networks.size, dtype=setup.dtype)
        return cls(
            {
                "encoder": setup.stack(encoders, setup.example),
                "decoder": setup.stack(decoders, [code]),
            }
        )

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the squared error of rows, all taken as normal."""
        return self._error(x, training=True)

    def score(self, x: Tensor) -> Tensor:
        """Return the squared error."""
        return self._error(x, training=False)

    def _error(self, x: Tensor, *, training: bool) -> Tensor:
        code = self.stacks["encoder"](x, training=training)
        output: Tensor = self.stacks["decoder"](code, training=training)
        return (x - output).square().flatten(2).mean(-1)


@dataclass(kw_only=True, repr=False, eq=False)
class Autoencoder(DeepBaseline):
    """The reconstruction error of an autoencoder ("CAE" in the paper, there for images).

    Parameters
    ----------
    bias
        Whether layers have biases. False is the network that Deep SVDD and Deep SAD are
        pre-trained with.

    Notes
    -----
    The other parameters are those of `DeepBaseline`. Batch normalisation, learning rate and
    weight decay are what Ruff et al. published.
    """

    learning_rate: float = 1e-4
    weight_decay: float = 5e-4
    bias: bool = True

    checks: ClassVar[Mapping[str, Check]] = {"bias": BOOLEAN}

    def encode(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's code of each row, ``(members, n, size)``."""
        return self.fitted_.encode(X)

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem.without_anomalies())

    def _members(self, networks: Networks, setup: Setup) -> AutoencoderMembers:
        return AutoencoderMembers.build(networks, setup, bias=self.bias)
