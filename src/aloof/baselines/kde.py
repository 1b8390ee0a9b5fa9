"""The kernel density estimator: the less likely a row, the worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import KernelDensity

from aloof.baselines.contract import Baseline
from aloof.labels import ANOMALY

__all__ = ["KDE", "held_out_log_likelihood"]

_N_FOLDS = 5


def held_out_log_likelihood(
    rows: NDArray[np.float64], held_out: NDArray[np.float64], bandwidths: Sequence[float]
) -> NDArray[np.float64]:
    """Return, for each bandwidth, the log-likelihood of `held_out` under a KDE of `rows`.

    All bandwidths share one matrix of distances.
    """
    squared = euclidean_distances(held_out, rows, squared=True)
    n_rows, n_features = rows.shape
    return np.array(
        [
            logsumexp(-0.5 * squared / h**2, axis=1).sum()
            - len(held_out) * (np.log(n_rows) + 0.5 * n_features * np.log(2 * np.pi * h**2))
            for h in bandwidths
        ]
    )


@dataclass(kw_only=True, repr=False, eq=False)
class KDE(Baseline):
    """A Gaussian kernel density with the bandwidth that held-out rows like best.

    Parameters
    ----------
    bandwidths
        Candidates; the one with the highest log-likelihood in five-fold cross-validation is
        taken.
    max_search_rows
        Most rows to choose the bandwidth with, drawn at random; the density itself is made
        of all rows.

    Attributes
    ----------
    bandwidth_
        The bandwidth that was taken.
    """

    bandwidths: tuple[float, ...] = tuple(2.0 ** (k / 2) for k in range(-8, 11))
    max_search_rows: int = 2000

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        usual = X[labels != ANOMALY]
        if len(usual) < _N_FOLDS:
            raise ValueError(
                f"KDE needs at least {_N_FOLDS} rows that are not labelled as anomalies to "
                f"choose its bandwidth; got {len(usual)}."
            )
        order = np.random.default_rng(seed).permutation(len(usual))
        self.bandwidth_ = self._chosen(usual[order[: self.max_search_rows]])
        self._model = KernelDensity(bandwidth=self.bandwidth_).fit(usual)

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = -self._model.score_samples(X)
        return scores

    def _chosen(self, rows: NDArray[np.float64]) -> float:
        fold = np.arange(len(rows)) % _N_FOLDS
        likelihood = sum(
            held_out_log_likelihood(rows[fold != k], rows[fold == k], self.bandwidths)
            for k in range(_N_FOLDS)
        )
        return self.bandwidths[int(np.argmax(likelihood))]
