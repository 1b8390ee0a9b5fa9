"""PReNet: how many of a pair of rows are anomalies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from aloof.baselines.deep import HalfAnomalies
from aloof.baselines.members import LearningMembers
from aloof.baselines.networks import Networks
from aloof.labels import ANOMALY
from aloof.training import Setup

__all__ = ["PReNet", "PReNetMembers", "partners"]

_STEP = 4.0  # of the relation, for each anomaly in a pair


def partners(n_normal: int, n_anomalies: int, device: torch.device) -> Tensor:
    """Return which row of a batch each row is paired with; normal rows come first.

    A normal row has another one. Half of the anomalies have a normal row, half of them another
    anomaly: a half, a quarter and a quarter of the pairs, as in the authors' code.
    """
    normal = torch.arange(n_normal, device=device)
    anomalies = torch.arange(n_anomalies, device=device)
    mixed = (n_anomalies + 1) // 2
    return torch.cat(
        [normal.roll(1), anomalies[:mixed] % n_normal, n_normal + anomalies[mixed:].roll(1)]
    )


class PReNetMembers(LearningMembers):
    """Networks with two outputs: what a row adds to a relation as its first, and its second."""

    @classmethod
    def build(cls, networks: Networks, setup: Setup) -> Self:
        """Initialise members."""
        (made,) = setup.build(lambda: [networks.classifier(normalise=False, size=2)])
        return cls({"encoder": setup.stack(made, setup.example)})

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return how far off the relation of each row and its partner is."""
        first, second = self._sides(x, training=True)
        anomaly = (labels == ANOMALY).to(first.dtype)
        n_normal = x.shape[1] - x.shape[1] // 2  # as many as anomalies
        partner = partners(n_normal, x.shape[1] - n_normal, x.device)
        relation = first + second[:, partner]
        return (relation - _STEP * (anomaly + anomaly[:, partner])).abs()

    def score(self, x: Tensor) -> Tensor:
        """Return the mean relation with anomalies and normal rows, but for a constant."""
        first, second = self._sides(x, training=False)
        return (first + second) / 2

    def _sides(self, x: Tensor, *, training: bool) -> tuple[Tensor, Tensor]:
        sides: Tensor = self.stacks["encoder"](x, training=training)
        return sides[..., 0], sides[..., 1]


@dataclass(kw_only=True, repr=False, eq=False)
class PReNet(HalfAnomalies):
    """Pairwise relation network: it learns how many of two rows are anomalies.

    The relation of two normal rows is drawn to 0, that of an anomaly and a normal row to 4,
    that of two anomalies to 8. Unlabelled rows are taken as normal.

    Notes
    -----
    The relation is linear in the representations of the two rows. So what a row is paired with
    adds the same to the score of every row, and is left out of it; the authors draw 30
    partners of each kind.

    References
    ----------
    Pang et al., "Deep Weakly-supervised Anomaly Detection", KDD 2023.
    """

    def _members(self, networks: Networks, setup: Setup) -> PReNetMembers:
        return PReNetMembers.build(networks, setup)
