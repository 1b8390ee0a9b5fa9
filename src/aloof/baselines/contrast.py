"""The contrast of distances: to the nearest normal rows, and to the nearest anomalies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from aloof.baselines.contract import Baseline, LabelUse
from aloof.estimators._parameters import Check, integer
from aloof.labels import ANOMALY

__all__ = ["KNNContrast"]

_NEAR = 1e-6  # of the standard deviation of a column: no distance is smaller


@dataclass(kw_only=True, repr=False, eq=False)
class KNNContrast(Baseline):
    r"""Log distance to the nearest normal rows minus that to the nearest labelled anomalies.

    .. math:: \log \bar d_k(x, \text{normal}) - \log \bar d_l(x, \text{anomalies})

    Each is the mean over a few neighbours; where there are fewer rows, over all of them.
    Unlabelled rows are taken as normal. Nothing is trained.

    Parameters
    ----------
    n_neighbors
        Normal rows to look at, k.
    n_anomalies
        Labelled anomalies to look at, l.
    """

    n_neighbors: int = 5
    n_anomalies: int = 1

    label_use: ClassVar[LabelUse] = "required"
    checks: ClassVar[Mapping[str, Check]] = {
        "n_neighbors": integer(1),
        "n_anomalies": integer(1),
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        anomaly = labels == ANOMALY
        self._near = [
            NearestNeighbors(n_neighbors=min(most, len(rows))).fit(rows)
            for rows, most in (
                (X[~anomaly], self.n_neighbors),
                (X[anomaly], self.n_anomalies),
            )
        ]

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        least = _NEAR * sqrt(X.shape[1])
        normal, anomalies = (
            np.log(np.maximum(near.kneighbors(X)[0].mean(1), least)) for near in self._near
        )
        scores: NDArray[np.float64] = normal - anomalies
        return scores
