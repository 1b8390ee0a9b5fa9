"""Perceptrons with residual blocks: a network that was tried in place of our own."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from aloof.networks import Linear
from aloof.networks.mlp import PosteriorHead

__all__ = ["ResidualDecoder", "ResidualEncoder"]


class _Body(nn.Module):
    """A linear layer, then blocks of two that add to what they are shown."""

    stackable = True

    def __init__(self, n_in: int, widths: Sequence[int], slope: float) -> None:
        super().__init__()
        width = max(widths)
        self.first = Linear(n_in, width)
        self.inner = nn.ModuleList(Linear(width, width) for _ in widths)
        self.outer = nn.ModuleList(Linear(width, width) for _ in widths)
        self._slope = slope

    def forward(self, x: Tensor) -> Tensor:
        """Map ``(..., n, n_in)`` to ``(..., n, width)``."""
        y: Tensor = self.first(x)
        for inner, outer in zip(self.inner, self.outer, strict=True):
            y = y + outer(leaky_relu(inner(leaky_relu(y, self._slope)), self._slope))
        return leaky_relu(y, self._slope)


class ResidualEncoder(nn.Module):
    """As many residual blocks as there are `hidden` layers, each as wide as the widest.

    Parameters
    ----------
    shape, latent_dim, hidden, slope
        As in `aloof.networks.MLPEncoder`.
    """

    stackable = True

    def __init__(
        self, shape: Sequence[int], latent_dim: int, hidden: Sequence[int], slope: float
    ) -> None:
        super().__init__()
        self.body = _Body(shape[0], hidden, slope)
        self.head = PosteriorHead(max(hidden), latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map ``(..., n, d)`` to two tensors ``(..., n, latent_dim)``."""
        posterior: tuple[Tensor, Tensor] = self.head(self.body(x))
        return posterior


class ResidualDecoder(nn.Module):
    """The same from a code to a row.

    Parameters
    ----------
    shape, latent_dim, hidden, slope
        As in `aloof.networks.MLPDecoder`.
    """

    stackable = True

    def __init__(
        self, shape: Sequence[int], latent_dim: int, hidden: Sequence[int], slope: float
    ) -> None:
        super().__init__()
        self.body = _Body(latent_dim, hidden, slope)
        self.head = Linear(max(hidden), shape[0])

    def forward(self, z: Tensor) -> Tensor:
        """Map ``(..., n, latent_dim)`` to ``(..., n, d)``."""
        row: Tensor = self.head(self.body(z))
        return row
