"""MML-VAE: likelihood up on normal rows, down on labelled anomalies."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from aloof.estimators._labelled import LabelledDetector
from aloof.objectives import Repulsion
from aloof.vae import Objective

__all__ = ["MaxMinVAE"]


@dataclass(kw_only=True, repr=False, eq=False)
class MaxMinVAE(LabelledDetector):
    """Semi-supervised anomaly detection with the max-min-likelihood VAE (MML-VAE).

    Maximises the ELBO of normal rows, and minimises the CUBO, an upper bound on the
    likelihood, of labelled anomalies.

    Parameters
    ----------
    beta_cubo
        Weight of log p(z) - log q(z|x) in the CUBO.
    repulsion
        What is minimised on anomalies: ``"exp"``, the paper's exp(2 CUBO), or
        ``"softplus"``, log(1 + exp(2 CUBO + margin)), which keeps pushing after the former
        has vanished.
    margin
        How far below zero ``"softplus"`` pushes the bound.
    n_samples
        Monte-Carlo samples of the CUBO.

    Notes
    -----
    Without labelled anomalies this is a plain VAE, and `fit` warns.
    """

    beta_cubo: float = 0.02
    repulsion: Repulsion = "softplus"
    margin: float = 10.0
    n_samples: int = 1

    method: ClassVar[str] = "mml"

    def _objective(self) -> Objective:
        return replace(
            super()._objective(),
            beta_cubo=self.beta_cubo,
            repulsion=self.repulsion,
            margin=self.margin,
            n_samples=self.n_samples,
        )
