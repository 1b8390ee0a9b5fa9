"""Adam on one matrix: all members' parameters, a row each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam

from aloof.networks.stacked import runs_triton
from aloof.training.clipping import clip_rows_, clipped_shares

__all__ = ["Adam"]

_EPS = 1e-8


class Adam:
    """torch's fused Adam with its state in plain sight; on a GPU, mostly one of our own.

    The functional form of `torch.optim.Adam`: half the overhead a step, nothing to unpack
    for a checkpoint, and no import of the compiler (two seconds) in the first fit. Ours has no
    weight decay.

    Parameters
    ----------
    matrix
        What to update, in place.
    betas
        How much of the last mean is kept in a step, of gradients and of their squares.
    """

    def __init__(self, matrix: Tensor, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self._matrix, self._betas = matrix, betas
        self._fuses = _can_fuse(matrix)
        self.state: dict[str, Tensor] = {
            "mean": torch.zeros_like(matrix),
            "square": torch.zeros_like(matrix),
            "step": torch.zeros((), device=matrix.device),
        }

    def step(
        self,
        gradients: Sequence[Tensor],
        learning_rate: float | Tensor,
        *,
        weight_decay: float = 0.0,
        max_norm: float | None = None,
    ) -> None:
        """Move the matrix against its gradient.

        Parameters
        ----------
        gradients
            The gradient in parts ``(members, ...)``, in the order of the matrix's columns.
        learning_rate
            The rate.
        weight_decay
            How much of the matrix is added to its gradient.
        max_norm
            Most that the norm of a member's gradient may be: it is scaled down to that.
        """
        if self._fuses and not weight_decay:
            self._fused_step(gradients, learning_rate, max_norm)
            return
        gradient = torch.cat([part.flatten(1) for part in gradients], 1)
        if weight_decay:
            gradient.add_(self._matrix, alpha=weight_decay)
        if max_norm is not None:
            clip_rows_(gradient, max_norm)
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
            eps=_EPS,
            maximize=False,
        )

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take up where `state` was written."""
        for name, value in self.state.items():
            value.copy_(state[name])

    def _fused_step(
        self, gradients: Sequence[Tensor], rate: float | Tensor, max_norm: float | None
    ) -> None:
        from aloof.training._fused_adam import fused_adam_

        if max_norm is None:
            shares = self._matrix.new_ones(len(self._matrix))
        else:
            parts = [torch.linalg.vector_norm(part.flatten(1), dim=1) for part in gradients]
            shares = clipped_shares(
                torch.linalg.vector_norm(torch.stack(parts), dim=0), max_norm
            )
        n = self.state["step"].add_(1).double()
        first, second = (1 - beta**n for beta in self._betas)
        fused_adam_(
            self._matrix,
            self.state["mean"],
            self.state["square"],
            gradients,
            shares,
            torch.stack([rate / first, second.rsqrt()]).float(),
            betas=self._betas,
            eps=_EPS,
        )


def _can_fuse(matrix: Tensor) -> bool:
    return matrix.is_cuda and matrix.dtype == torch.float32 and runs_triton(matrix.device)
