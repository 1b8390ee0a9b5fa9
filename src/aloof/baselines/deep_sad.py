"""Deep SAD: normal rows near the centre, labelled anomalies far from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from aloof.baselines.contract import LabelUse
from aloof.baselines.fitting import fit, shuffled
from aloof.baselines.hypersphere import Hypersphere, HypersphereBaseline
from aloof.labels import ANOMALY, UNLABELLED

__all__ = ["DeepSAD", "deep_sad_loss"]

_EPSILON = 1e-6  # an anomaly at the centre costs this much to the minus one


def deep_sad_loss(distance: Tensor, labels: Tensor, eta: float) -> Tensor:
    r"""Return the per-row loss: the distance, or its inverse for anomalies.

    Parameters
    ----------
    distance
        Squared distances to the centre, ``(n,)``.
    labels
        1 anomaly, 0 normal, -1 unlabelled, ``(n,)``.
    eta
        Weight of labelled rows; unlabelled ones have weight 1.
    """
    loss = torch.where(labels == ANOMALY, 1.0 / (distance + _EPSILON), distance)
    return torch.where(labels == UNLABELLED, loss, eta * loss)


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
    Without a labelled anomaly this is one-class Deep SVDD, to the bit. Pre-training and
    centre use the rows not labelled as anomalies. The authors' code means to pre-train but
    loads none of the weights; here the encoder *is* the autoencoder's.

    References
    ----------
    Ruff et al., "Deep Semi-Supervised Anomaly Detection", ICLR 2020.
    """

    eta: float = 1.0

    label_use: ClassVar[LabelUse] = "optional"
    without_labels: ClassVar[str] = "Deep SVDD"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require(eta=(self.eta > 0, "positive"))

    def _train(self, sphere: Hypersphere, rows: Tensor, labels: Tensor, seed: int) -> None:
        def loss(batch: Tensor, _: torch.Generator) -> Tensor:
            return deep_sad_loss(sphere(rows[batch]), labels[batch], self.eta).mean()

        fit(sphere, loss, shuffled(len(rows), self.batch_size), self._schedule(), seed)
