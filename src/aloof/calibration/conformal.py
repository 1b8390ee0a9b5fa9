r"""Split-conformal p-values of anomaly scores, and the Benjamini-Hochberg rule over them.

The calibration rows were held out of the training and are not known to be anomalies. If a
new row is exchangeable with them, its rank among them is uniform, whatever the detector:

.. math:: p(s) = \frac{1 + \#\{i : c_i \ge s\}}{n + 1}, \qquad P(p \le t) \le t .

The p-values of rows that share one calibration set depend on each other, but positively, and
Benjamini-Hochberg keeps its promise under such a dependence [1]_.

References
----------
.. [1] Bates, Candès, Lei, Romano & Sesia, "Testing for outliers with conformal p-values",
   Annals of Statistics 51 (2023), https://arxiv.org/abs/2104.08279.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "count_p_values",
    "discoveries",
    "p_values",
    "rows_needed",
    "smallest_p",
]


def p_values(calibration: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """Return the p-value of each anomaly score.

    Parameters
    ----------
    calibration
        Anomaly scores of the calibration rows, sorted.
    scores
        Anomaly scores of the rows in question.

    Examples
    --------
    >>> p_values([0.1, 0.2, 0.3, 0.4], [0.0, 0.25, 9.0])
    array([1. , 0.6, 0.2])
    """
    n = len(np.asarray(calibration))
    p: NDArray[np.float64] = (1 + _n_above(calibration, scores)) / (n + 1)
    return p


def count_p_values(calibration: ArrayLike, scores: ArrayLike) -> NDArray[np.int64]:
    """Return how many of the scores have each of the n + 1 p-values there can be.

    Counts of parts of a stream add up to the counts of the stream, in bounded memory.

    Parameters
    ----------
    calibration, scores
        As in `p_values`.

    Returns
    -------
    Array ``(n + 1,)``; entry k counts the scores with a p-value of (k + 1) / (n + 1).

    Examples
    --------
    >>> count_p_values([0.1, 0.2, 0.3, 0.4], [0.0, 0.25, 9.0])
    array([1, 0, 1, 0, 1])
    """
    n = len(np.asarray(calibration))
    return np.bincount(_n_above(calibration, scores), minlength=n + 1)


def discoveries(counts: ArrayLike, target: float) -> int:
    """Return how many of the p-values there can be Benjamini-Hochberg rejects.

    The rows with one of the smallest so many p-values are the discoveries.

    Parameters
    ----------
    counts
        Of the rows that are decided together, from `count_p_values`.
    target
        The false discovery rate: the expected share of normal rows among the discoveries.

    Examples
    --------
    >>> counts = count_p_values([0.1, 0.2, 0.3, 0.4], [0.0, 0.25, 9.0, 9.0])
    >>> discoveries(counts, target=0.5), discoveries(counts, target=0.1)
    (1, 0)
    """
    counts = np.asarray(counts, np.int64)
    seen = np.flatnonzero(counts)
    possible = (seen + 1) / len(counts)
    # The same product as in SciPy's false_discovery_control, so that both round alike.
    adjusted = possible * (counts.sum() / np.cumsum(counts)[seen])
    rejected = seen[adjusted <= target]
    return int(rejected[-1]) + 1 if rejected.size else 0


def smallest_p(n: int) -> float:
    """Return the smallest p-value that `n` calibration rows can give."""
    return 1.0 / (n + 1)


def rows_needed(rate: float, *, anomalies: float = 1.0) -> int:
    """Return how many calibration rows it takes to decide at a rate.

    Parameters
    ----------
    rate
        Share of normal rows that may be flagged, or the false discovery rate.
    anomalies
        For a false discovery rate: which share of the rows that are decided together must
        be able to be discovered. The rarer anomalies are, the smaller their p-values have
        to be.

    Examples
    --------
    >>> rows_needed(0.01)
    99
    >>> rows_needed(0.05, anomalies=0.01)
    1999
    """
    return ceil(round(1.0 / (rate * anomalies), 6)) - 1


def _n_above(calibration: ArrayLike, scores: ArrayLike) -> NDArray[np.int64]:
    """Count the calibration scores that are at least as high as each score."""
    ordered = np.asarray(calibration, np.float64)
    return len(ordered) - np.searchsorted(ordered, np.asarray(scores, np.float64), "left")
