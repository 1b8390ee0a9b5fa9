"""Nearest neighbours: the distance to the k-th of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from aloof.baselines.contract import Baseline
from aloof.estimators._parameters import Check, integer
from aloof.labels import ANOMALY

__all__ = ["KNN"]


@dataclass(kw_only=True, repr=False, eq=False)
class KNN(Baseline):
    """The distance to the `n_neighbors`-th nearest training row.

    Parameters
    ----------
    n_neighbors
        Which neighbour.
    """

    n_neighbors: int = 5

    checks: ClassVar[Mapping[str, Check]] = {
        "n_neighbors": integer(1),
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        normal = X[labels != ANOMALY]
        if not 1 <= self.n_neighbors <= len(normal):
            raise ValueError(
                "The 'n_neighbors' parameter of KNN must be from 1 to the number of rows not "
                f"labelled as anomalies, {len(normal)}; got {self.n_neighbors!r}."
            )
        self._model = NearestNeighbors(n_neighbors=self.n_neighbors).fit(normal)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        distances: NDArray[np.float64] = self._model.kneighbors(X)[0]
        return distances[:, -1]
