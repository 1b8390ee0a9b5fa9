"""Adam on one matrix: all members' parameters, a row each."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam

__all__ = ["Adam"]


class Adam:
    """torch's fused Adam with its state in plain sight.

    The functional form of `torch.optim.Adam`: half the overhead a step, nothing to unpack
    for a checkpoint, and no import of the compiler (two seconds) in the first fit.

    Parameters
    ----------
    matrix
        What to update, in place.
    betas
        How much of the last mean is kept in a step, of gradients and of their squares.
    """

    def __init__(self, matrix: Tensor, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self._matrix, self._betas = matrix, betas
        self.state: dict[str, Tensor] = {
            "mean": torch.zeros_like(matrix),
            "square": torch.zeros_like(matrix),
            "step": torch.zeros((), device=matrix.device),
        }

    def step(self, gradient: Tensor, learning_rate: float | Tensor) -> None:
        """Move the matrix against `gradient`."""
        adam(
            [self._matrix],
            [gradient],
            [self.state["mean"]],
            [self.state["square"]],
            [],
            [self.state["step"]],
            fused=True,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up where `state` was written."""
        for name, value in self.state.items():
            value.copy_(state[name])
