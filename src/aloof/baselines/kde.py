"""The kernel density estimator: the less likely a row, the worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.metrics.pairwise import euclidean_distances

from aloof.baselines.contract import SubsampledBaseline
from aloof.estimators._parameters import Check, integer, real

__all__ = ["KDE", "log_densities"]

_N_FOLDS = 5
_BANDWIDTH, _ = real(0, above=True)
_BANDWIDTHS: Check = (
    lambda v: isinstance(v, tuple | list) and len(v) > 0 and all(map(_BANDWIDTH, v)),
    "a tuple of numbers > 0",
)
_CHUNK = 256


def log_densities(
    rows: NDArray[np.float64], queries: NDArray[np.float64], bandwidths: Sequence[float]
) -> NDArray[np.float64]:
    """Return the log-densities of `queries` under Gaussian kernels on `rows`.

    All bandwidths share one matrix of distances. Not scikit-learn's `KernelDensity`: with
    its default settings (1.9) far rows, the ones of interest here, come out far too likely,
    because it subtracts bounds that are nearly equal.

    Returns
    -------
    Array ``(len(bandwidths), len(queries))``.
    """
    n_rows, n_features = rows.shape
    densities = np.empty((len(bandwidths), len(queries)))
    for start in range(0, len(queries), _CHUNK):
        part = slice(start, start + _CHUNK)
        squared = euclidean_distances(queries[part], rows, squared=True)
        for k, bandwidth in enumerate(bandwidths):
            densities[k, part] = logsumexp(squared * (-0.5 / bandwidth**2), axis=1)
    volume = 0.5 * n_features * np.log(2.0 * np.pi * np.square(bandwidths))
    normalised: NDArray[np.float64] = densities - volume[:, None] - np.log(n_rows)
    return normalised


@dataclass(kw_only=True, repr=False, eq=False)
class KDE(SubsampledBaseline):
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

    checks: ClassVar[Mapping[str, Check]] = {
        "bandwidths": _BANDWIDTHS,
        "max_search_rows": integer(_N_FOLDS),
    }

    def _fit(self, X: NDArray[np.float64], labels: NDArray[np.int64], seed: int) -> None:
        normal = X[self.drawn(labels, seed)]
        if len(normal) < _N_FOLDS:
            raise ValueError(
                f"KDE needs at least {_N_FOLDS} rows that are not labelled as anomalies to "
                f"choose its bandwidth; got {len(normal)}."
            )
        order = np.random.default_rng(seed).permutation(len(normal))
        self.bandwidth_ = self._chosen(normal[order[: self.max_search_rows]])
        self._rows = normal

    def _anomaly_score(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = -log_densities(self._rows, X, [self.bandwidth_])[0]
        return scores

    def _chosen(self, rows: NDArray[np.float64]) -> float:
        fold = np.arange(len(rows)) % _N_FOLDS
        likelihood = sum(
            log_densities(rows[fold != k], rows[fold == k], self.bandwidths).sum(1)
            for k in range(_N_FOLDS)
        )
        return self.bandwidths[int(np.argmax(likelihood))]
