"""DevNet: scores that deviate from a Gaussian reference only on anomalies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from aloof.baselines.classifier import LogitMembers
from aloof.baselines.deep import HalfAnomalies
from aloof.baselines.networks import Networks
from aloof.labels import ANOMALY
from aloof.training import Setup, Stream, derive
from aloof.training.seeds import generator

__all__ = ["DevNet", "DevNetMembers", "deviation_loss"]

_MARGIN = 5.0  # in standard deviations of the reference scores
_N_REFERENCES = 5000


def deviation_loss(scores: Tensor, is_anomaly: Tensor, reference: Tensor) -> Tensor:
    r"""Return the per-row deviation loss.

    .. math:: (1 - y)\,|d| + y \max(0, 5 - d), \quad
        d = (s - \mu_R) / \sigma_R

    Parameters
    ----------
    scores
        The network's scores s, ``(..., n)``. DeepOD passes ``(n, 1)`` here, which broadcasts
        against the labels to ``(n, n)``; PyOD swaps the first two arguments.
    is_anomaly
        True for labelled anomalies, ``(..., n)``.
    reference
        Scores drawn from the prior N(0, 1), ``(..., m)``.
    """
    if scores.shape != is_anomaly.shape:
        raise ValueError(
            f"scores and is_anomaly must have one shape; got {tuple(scores.shape)} and "
            f"{tuple(is_anomaly.shape)}."
        )
    spread, mean = torch.std_mean(reference, -1, correction=0, keepdim=True)
    deviation = (scores - mean) / spread
    return torch.where(is_anomaly, torch.relu(_MARGIN - deviation), deviation.abs())


class DevNetMembers(LogitMembers):
    """Networks whose output is the score, with reference scores of their own."""

    @classmethod
    def build(cls, networks: Networks, setup: Setup, *, normalise: bool = False) -> Self:
        """Initialise members."""
        made = super().build(networks, setup, normalise=normalise)
        references = [
            torch.randn(
                _N_REFERENCES,
                generator=generator(derive(seed, Stream.VALIDATE), torch.device("cpu")),
            )
            for seed in setup.seeds
        ]
        made.tensors["reference"] = torch.stack(references).to(setup.device, setup.dtype)
        return made

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the deviation loss."""
        scores = self.logit(x, training=True)
        return deviation_loss(scores, labels == ANOMALY, self.tensors["reference"])


@dataclass(kw_only=True, repr=False, eq=False)
class DevNet(HalfAnomalies):
    """Deviation network: a network whose output is the score.

    Normal rows are drawn to the mean of 5,000 reference scores from N(0, 1), labelled
    anomalies to at least five of their standard deviations above. Unlabelled rows are taken
    as normal.

    References
    ----------
    Pang et al., "Deep Anomaly Detection with Deviation Networks", KDD 2019.
    """

    def _members(self, networks: Networks, setup: Setup) -> DevNetMembers:
        return DevNetMembers.build(networks, setup)
