"""What a fit returns: members that score images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aloof.baselines.images.members import Members
from aloof.training.rows import gather

__all__ = ["FittedImages", "over_rows"]

_CHUNK = 256  # rows; always as many, because a row may be rounded by what it is with


class FittedImages:
    """The members of one problem.

    Parameters
    ----------
    members
        What was trained.
    loss_curve
        The mean loss of each epoch and member, ``(epochs, members)``.
    device
        Where to compute.

    Attributes
    ----------
    members, loss_curve
        As given.
    """

    def __init__(
        self, members: Members, loss_curve: NDArray[np.float64], device: torch.device
    ) -> None:
        self.members, self.loss_curve, self._device = members, loss_curve, device

    def score(self, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's scores ``(members, n)``; higher is worse.

        The score of an ensemble is the mean over members. The networks compute in float32.

        Parameters
        ----------
        pixels
            Images ``(n, c, h, w)``, bytes or numbers in [0, 1].
        """
        return self._applied(self.members.score, pixels)

    def encode(self, pixels: NDArray[Any]) -> NDArray[np.float64]:
        """Return each member's codes of images, ``(members, n, size)``."""
        return self._applied(self.members.encode, pixels)

    def _applied(
        self, function: Callable[[Tensor], Tensor], pixels: NDArray[Any]
    ) -> NDArray[np.float64]:
        data = torch.from_numpy(np.ascontiguousarray(pixels))
        rows = torch.arange(len(data), device=self._device)
        return over_rows(function, data, rows, self.members.n_members).cpu().numpy()


def over_rows(
    function: Callable[[Tensor], Tensor], data: Tensor, rows: Tensor, n_members: int
) -> Tensor:
    """Apply a function of ``(members, n, c, h, w)`` to the same rows for all members.

    Parameters
    ----------
    function
        Returns a tensor ``(members, n, ...)``.
    data
        Images, bytes or numbers in [0, 1].
    rows
        Which of them, on the device to compute on; at least one.
    n_members
        Members.

    Returns
    -------
    Tensor ``(members, len(rows), ...)`` of float64.
    """
    parts = []
    with torch.no_grad():
        for start in range(0, len(rows), _CHUNK):
            some = rows[start : start + _CHUNK]
            filled = some.new_zeros(_CHUNK)
            filled[: len(some)] = some
            (x,) = gather([data], filled)
            values = function(x.float().expand(n_members, *x.shape))
            parts.append(values[:, : len(some)].double())
    return torch.cat(parts, 1)
