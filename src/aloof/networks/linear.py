"""The linear layer that all other layers are made with, also of stacked members."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from aloof.networks.stacked import linear

__all__ = ["Linear"]


class Linear(nn.Linear):
    """`nn.Linear` that also takes stacked parameters.

    With a weight of shape ``(members, out, in)`` the input is ``(members, n, in)`` and
    every member multiplies its own rows, in one batched product.
    """

    stackable = True

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., in)`` to ``(..., out)``."""
        if self.weight.dim() == 2:
            return super().forward(x)
        if x.is_cuda:
            return linear(x, self.weight, self.bias)
        if self.bias is None:
            return torch.bmm(x, self.weight.mT)
        return torch.baddbmm(self.bias.unsqueeze(-2), x, self.weight.mT)
