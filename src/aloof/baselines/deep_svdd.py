"""Deep SVDD: the smallest ball around the representations of normal rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from aloof.baselines.fitting import fit, shuffled
from aloof.baselines.hypersphere import Hypersphere, HypersphereBaseline
from aloof.labels import ANOMALY

__all__ = ["DeepSVDD", "SVDDObjective", "soft_boundary_loss"]

SVDDObjective = Literal["one-class", "soft-boundary"]

_FIXED_RADIUS_EPOCHS = 10


def soft_boundary_loss(distance: Tensor, squared_radius: Tensor, nu: float) -> Tensor:
    r"""Return the per-row loss of the ball that may leave a share `nu` of rows outside.

    .. math:: R^2 + \tfrac1\nu \max(0, d - R^2)

    Parameters
    ----------
    distance
        Squared distances to the centre, ``(n,)``.
    squared_radius
        :math:`R^2`.
    nu
        Bound of the share of rows outside.
    """
    return squared_radius + torch.relu(distance - squared_radius) / nu


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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require(
            objective=(
                self.objective in get_args(SVDDObjective),
                "'one-class' or 'soft-boundary'",
            ),
            nu=(0 < self.nu <= 1, "in (0, 1]"),
        )

    def _train(self, sphere: Hypersphere, rows: Tensor, labels: Tensor, seed: int) -> None:
        usual = rows[labels != ANOMALY]
        squared_radius = torch.zeros(())

        def loss(batch: Tensor, _: torch.Generator) -> Tensor:
            distance: Tensor = sphere(usual[batch])
            if self.objective == "one-class":
                return distance.mean()
            return soft_boundary_loss(distance, squared_radius, self.nu).mean()

        def set_radius(epoch: int) -> None:
            if epoch + 1 >= _FIXED_RADIUS_EPOCHS:
                with torch.no_grad():
                    squared_radius.copy_(torch.quantile(sphere(usual), 1.0 - self.nu))

        fit(
            sphere,
            loss,
            shuffled(len(usual), self.batch_size),
            self._schedule(),
            seed,
            after_epoch=set_radius if self.objective == "soft-boundary" else None,
        )
