"""The paper's hybrid of MML-VAE and DP-VAE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aloof.estimators.dual_prior import DualPriorVAE
from aloof.estimators.max_min import MaxMinVAE

__all__ = ["MaxMinDualPriorVAE"]


@dataclass(kw_only=True, repr=False, eq=False)
class MaxMinDualPriorVAE(MaxMinVAE, DualPriorVAE):
    """Semi-supervised anomaly detection with both terms of the paper at once.

    Labelled anomalies have a prior of their own, and their likelihood under the normal prior
    is pushed down.
    """

    method: ClassVar[str] = "mml-dp"
