"""The plain VAE: what the others are when there is no labelled anomaly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from aloof.estimators._base import Detector

__all__ = ["VAE"]


@dataclass(kw_only=True, repr=False, eq=False)
class VAE(Detector):
    """Anomaly detection with an ensemble of variational autoencoders.

    Rows labelled as anomalies are left out of the training and not used otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from aloof import VAE
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> detector = VAE(n_members=2, max_epochs=20, random_state=0).fit(X)
    >>> scores = detector.anomaly_score([[0, 0, 0], [9, -9, 9]])
    >>> bool(scores[1] > scores[0])
    True
    """

    method: ClassVar[str] = "vae"
