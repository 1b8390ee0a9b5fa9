"""Filters of a layer, and how kernels meet them: as they are, or folded onto small images."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from aloof.networks._compiling import constant
from aloof.networks._kernels.axes import inside_out
from aloof.networks._kernels.convolution import convolve, convolve_weight

__all__ = ["Filters"]


@dataclass(frozen=True)
class Filters:
    """Which pixels the filters of a convolution meet.

    Attributes
    ----------
    size
        Side of a filter.
    doubles
        Whether pixels are doubled first; the filters are then folded into smaller ones for
        the four corners of a doubled pixel, see `convolution`.
    planar
        Whether doubled images are ``(channels, height, width)``.
    """

    size: int
    doubles: bool
    planar: bool = False

    @property
    def pad(self) -> int:
        """Return how many pixels above and to the left are met."""
        pad = (self.size - 1) // 2
        return (pad + 1) // 2 if self.doubles else pad

    @property
    def kernel(self) -> int:
        """Return the side of the filters that pixels are multiplied with."""
        if not self.doubles:
            return self.size
        return (self.size - (self.size - 1) // 2) // 2 + self.pad + 1

    @property
    def side(self) -> int | None:
        """Return how many taps a corner has in height and width, if it has not all."""
        return self.kernel - 1 if self.doubles and self.size % 4 == 3 else None

    def taps(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Return weights ``(members, out, in, size, size)`` as ``(members, taps, in, out)``."""
        members, n_out, n_in, *_ = weight.shape
        filters = weight.flatten(3)
        if self.doubles:
            with torch.autocast(weight.device.type, enabled=False):  # sums, then rounding
                folding = _folding(self.size, self.kernel, self.pad, weight.device)
                filters = weight.reshape(members, -1, self.size**2) @ folding.mT
            filters = filters.view(members, n_out, 4 * n_in, -1)
        return inside_out(filters, dtype).view(members, self.kernel**2, n_in, -1)

    def convolve(
        self, x: Tensor, taps: Tensor, bias: Tensor, *, sums: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what `convolve` does."""
        return convolve(
            x,
            taps,
            bias,
            pad=self.pad,
            sums=sums,
            doubles=self.doubles,
            side=self.side,
            planar=self.planar,
        )

    def input_gradient(self, taps: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of the pixels."""
        pad = self.kernel - 1 - self.pad
        return convolve(
            gradient,
            taps,
            None,
            pad=pad,
            halves=self.doubles,
            side=self.side,
            turned=True,
            planar=self.planar,
        )[0]

    def weight_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        """Return the gradient of the weights."""
        found = convolve_weight(
            x,
            gradient,
            kernel=self.kernel,
            pad=self.pad,
            doubles=self.doubles,
            side=self.side,
            planar=self.planar,
        )
        members, _, n_in, n_out = found.shape
        if not self.doubles:
            filters = inside_out(found, found.dtype)
            return filters.view(members, n_out, n_in, self.size, self.size)
        corners = found.view(members, -1, 4 * n_in, n_out // 4)
        filters = inside_out(corners, found.dtype)
        with torch.autocast(x.device.type, enabled=False):
            folding = _folding(self.size, self.kernel, self.pad, x.device)
            whole: Tensor = filters.view(members, -1, len(folding)) @ folding
        return whole.view(members, n_out // 4, n_in, self.size, self.size)


@constant
def _folding(size: int, kernel: int, pad: int, device: torch.device) -> Tensor:
    """Return which weights of a filter are added up in each corner and tap.

    A matrix ``(4 kernel^2, size^2)`` of zeros and ones. It is made once: a step that is
    recorded cannot bring it to the GPU.
    """
    return _made_folding(size, kernel, pad, device)


@cache
def _made_folding(size: int, kernel: int, pad: int, device: torch.device) -> Tensor:
    offsets = torch.arange(size) - (size - 1) // 2
    corners = torch.arange(2)[:, None]
    met = torch.div(corners + offsets, 2, rounding_mode="floor") + pad
    side = (met[:, None] == torch.arange(kernel)[:, None]).float()
    both = torch.einsum("atd,bse->abtsde", side, side)
    return both.reshape(4 * kernel**2, size**2).to(device)
