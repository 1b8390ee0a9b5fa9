"""DP-VAE: labelled anomalies have a prior of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from aloof.estimators._labelled import LabelledDetector
from aloof.vae import Objective, VAEProblem

__all__ = ["DualPriorVAE"]


@dataclass(kw_only=True, repr=False, eq=False)
class DualPriorVAE(LabelledDetector):
    r"""Semi-supervised anomaly detection with the dual-prior VAE (DP-VAE).

    One encoder pulls normal rows towards the prior :math:`N(0, I)` and labelled anomalies
    towards :math:`N(\alpha 1, I)`. Rows unlike both score as anomalies, too, because scores
    start from the normal prior alone.

    Parameters
    ----------
    alpha
        Position of the anomalies' prior on every latent axis.
    direction_penalty
        Also penalise a row whose latent code lies further towards that prior than those of
        normal rows; see `aloof.scoring.direction_penalty`. If False, the score is the ELBO, as
        in the paper.

    Notes
    -----
    Without labelled anomalies this is a plain VAE, and `fit` warns.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import DualPriorVAE
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(size=(200, 3)), rng.normal(size=(5, 3)) + [2, 0, 0]]
    >>> y = np.r_[np.zeros(200), np.ones(5)]
    >>> detector = DualPriorVAE(
    ...     n_members=2, max_epochs=60, random_state=0
    ... ).fit(X, y)
    >>> scores = detector.anomaly_score([[0, 0, 0], [3, 0, 0]])
    >>> bool(scores[1] > scores[0])
    True
    """

    alpha: float = 10.0
    direction_penalty: bool = True

    method: ClassVar[str] = "dp"

    def _objective(self) -> Objective:
        return replace(super()._objective(), alpha=self.alpha)

    def _knows_direction(self, problem: VAEProblem) -> bool:
        # An encoder that never saw an anomaly has learned no direction.
        taught = problem.uses_anomalies and not self.separate_encoder
        return self.direction_penalty and taught and self.alpha != 0
