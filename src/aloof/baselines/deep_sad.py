"""Deep SAD: normal rows near the centre, labelled anomalies far from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from aloof.baselines.contract import LabelUse
from aloof.baselines.hypersphere import HypersphereBaseline, Spheres
from aloof.estimators._parameters import Check, real
from aloof.labels import ANOMALY, UNLABELLED
from aloof.training import Stack

__all__ = ["DeepSAD", "DeepSADMembers", "deep_sad_loss"]

_EPSILON = 1e-6  # an anomaly at the centre costs this much to the minus one


def deep_sad_loss(distance: Tensor, labels: Tensor, eta: float) -> Tensor:
    r"""Return the per-row loss: the distance, or its inverse for anomalies.

    Parameters
    ----------
    distance
        Squared distances to the centre, ``(..., n)``.
    labels
        1 anomaly, 0 normal, -1 unlabelled, ``(..., n)``.
    eta
        Weight of labelled rows; unlabelled ones have weight 1.
    """
    loss = torch.where(labels == ANOMALY, 1.0 / (distance + _EPSILON), distance)
    return torch.where(labels == UNLABELLED, loss, eta * loss)


class DeepSADMembers(Spheres):
    """Spheres that anomalies are pushed out of.

    Parameters
    ----------
    encoder, centre
        As in `Spheres`.
    eta
        Weight of labelled rows.
    """

    def __init__(self, encoder: Stack, centre: Tensor, eta: float) -> None:
        super().__init__(encoder, centre)
        self._eta = eta

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the distance of unlabelled rows, its inverse for anomalies."""
        return deep_sad_loss(self.distance(x, training=True), labels, self._eta)


@dataclass(kw_only=True, repr=False, eq=False)
class DeepSAD(HypersphereBaseline):
    """Deep SAD: Deep SVDD with the inverse distance for labelled anomalies.

    Parameters
    ----------
    eta
        Weight of labelled rows.

    Notes
    -----
    The other parameters are those of `aloof.baselines.hypersphere.HypersphereBaseline`.
    Without a label this is one-class Deep SVDD, to the bit. Pre-training and
    centre use the rows not labelled as anomalies. The authors' code means to pre-train but
    loads none of the weights; here the encoder *is* the autoencoder's.

    References
    ----------
    Ruff et al., "Deep Semi-Supervised Anomaly Detection", ICLR 2020.
    """

    eta: float = 1.0

    checks: ClassVar[Mapping[str, Check]] = {
        "eta": real(0, above=True),
    }

    label_use: ClassVar[LabelUse] = "optional"
    without_labels: ClassVar[str] = "Deep SVDD"

    def _spheres(self, encoder: Stack, centre: Tensor) -> Spheres:
        return DeepSADMembers(encoder, centre, self.eta)
