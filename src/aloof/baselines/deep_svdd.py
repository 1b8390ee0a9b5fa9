"""Deep SVDD: the smallest ball around the representations of normal rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from aloof.baselines.hypersphere import HypersphereBaseline, Spheres
from aloof.baselines.members import over_data
from aloof.estimators._parameters import Check, one_of, real
from aloof.training import Setup, Stack

__all__ = ["DeepSVDD", "DeepSVDDMembers", "SVDDObjective", "soft_boundary_loss"]

SVDDObjective = Literal["one-class", "soft-boundary"]

_FIXED_RADIUS_EPOCHS = 10


def soft_boundary_loss(distance: Tensor, squared_radius: Tensor, nu: float) -> Tensor:
    r"""Return the per-row loss of the ball that may leave a share `nu` of rows outside.

    .. math:: R^2 + \tfrac1\nu \max(0, d - R^2)

    Parameters
    ----------
    distance
        Squared distances to the centre, ``(..., n)``.
    squared_radius
        :math:`R^2`.
    nu
        Bound of the share of rows outside.
    """
    return squared_radius + torch.relu(distance - squared_radius) / nu


class DeepSVDDMembers(Spheres):
    """Spheres around normal rows, with a radius where the boundary is soft.

    Parameters
    ----------
    encoder, centre
        As in `Spheres`.
    soft
        Whether the boundary is soft.
    nu
        Share of rows outside the soft boundary.
    """

    def __init__(self, encoder: Stack, centre: Tensor, *, soft: bool, nu: float) -> None:
        super().__init__(encoder, centre)
        self._soft, self._nu = soft, nu
        self.tensors["squared_radius"] = centre.new_zeros(len(centre), 1)

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the distance, or the cost of a soft boundary."""
        distance = self.distance(x, training=True)
        if not self._soft:
            return distance
        return soft_boundary_loss(distance, self.tensors["squared_radius"], self._nu)

    def after_epoch(self, epoch: int, setup: Setup) -> None:
        """Set the radius of a soft boundary to a quantile of the distances."""
        if not self._soft or epoch + 1 < _FIXED_RADIUS_EPOCHS:
            return
        for task, part, own in self.by_task(setup):
            distance = over_data(own.score, setup, task.rows, own.n_members)
            radius = torch.quantile(distance, 1.0 - self._nu, dim=1, keepdim=True)
            self.tensors["squared_radius"][part].copy_(radius)


@dataclass(kw_only=True, repr=False, eq=False)
class DeepSVDD(HypersphereBaseline):
    """Deep SVDD, one-class or with a soft boundary.

    Parameters
    ----------
    objective
        ``"one-class"``: the mean squared distance to the centre. ``"soft-boundary"``: the
        ball's radius, and the rows outside; the radius is set after each epoch to the
        (1 - `nu`) quantile of the distances, from the tenth epoch on.
    nu
        Share of rows outside the soft boundary.

    Notes
    -----
    The other parameters are those of `aloof.baselines.hypersphere.HypersphereBaseline`. The
    score is the squared distance to the centre; subtracting the squared radius would change
    no order.

    References
    ----------
    Ruff et al., "Deep One-Class Classification", ICML 2018.
    """

    objective: SVDDObjective = "one-class"
    nu: float = 0.1

    checks: ClassVar[Mapping[str, Check]] = {
        "objective": one_of(get_args(SVDDObjective)),
        "nu": real(0, 1, above=True),
    }

    def _spheres(self, encoder: Stack, centre: Tensor) -> Spheres:
        soft = self.objective == "soft-boundary"
        return DeepSVDDMembers(encoder, centre, soft=soft, nu=self.nu)
