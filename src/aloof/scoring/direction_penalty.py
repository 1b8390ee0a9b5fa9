r"""How far a latent code lies towards the anomalies' prior: the second prior in the score.

The divergence from the normal prior counts all directions of the latent space alike, and what a
row owes to the one direction that leads to labelled anomalies is lost among the others. That
direction is known, :math:`u = 1 / \sqrt d`, and so is how codes of normal rows spread along it.
A code that lies further along it than normal rows do on average is charged for each standard
deviation :math:`\sigma_t` of theirs by one standard deviation :math:`\sigma_s` of their score:

.. math:: \frac{\sigma_s}{\sigma_t} \max(0, u \cdot \mu - m_t) .
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["DirectionPenalty"]


@dataclass(frozen=True)
class DirectionPenalty:
    """What each member's codes are charged for lying towards labelled anomalies.

    Attributes
    ----------
    center
        Where codes of normal rows lie on average along the direction, ``(members, 1)``.
    cost
        Of a step beyond, ``(members, 1)``; negative where anomalies lie the other way.
    """

    center: Tensor
    cost: Tensor

    @classmethod
    def measure(cls, mean: Tensor, score: Tensor, alpha: float) -> DirectionPenalty:
        """Learn from normal rows what a step in that direction is worth.

        Parameters
        ----------
        mean
            Their codes, ``(members, rows, latent_dim)``.
        score
            Their anomaly scores without it, ``(members, rows)``.
        alpha
            Where the anomalies' prior lies, on every axis.
        """
        along = _along(mean)
        spread = along.std(1, correction=0, keepdim=True)
        cost = score.std(1, correction=0, keepdim=True) / spread.clamp(min=1e-12)
        cost = torch.where(spread > 1e-12, cost, torch.zeros_like(cost))
        return cls(along.mean(1, keepdim=True), cost if alpha > 0 else -cost)

    @classmethod
    def joined(cls, parts: Sequence[DirectionPenalty]) -> DirectionPenalty:
        """Return one penalty for the members of several."""
        return cls(
            torch.cat([part.center for part in parts]), torch.cat([part.cost for part in parts])
        )

    def select(self, members: Sequence[int] | slice) -> DirectionPenalty:
        """Return the penalty of some members."""
        return DirectionPenalty(self.center[members], self.cost[members])

    def charge(self, mean: Tensor) -> Tensor:
        """Return what each code is charged, ``(members, rows)``."""
        return self.charge_along(_along(mean))

    def charge_along(self, along: Tensor) -> Tensor:
        """Return the same, from how far codes lie along the direction, ``(members, rows)``."""
        center, cost = (part.to(along.device, along.dtype) for part in (self.center, self.cost))
        return (cost * (along - center)).clamp(min=0.0)


def _along(mean: Tensor) -> Tensor:
    along: Tensor = mean.sum(-1) / mean.shape[-1] ** 0.5
    return along
