"""What answers say at once, before any refit: which other rows are likely to be anomalies.

A refit takes seconds or minutes, and an answer is about a row that has others like it. Here
three voices give evidence, minus the logarithm of a row's share of the ranking: the model's
score, an isolation forest whose nodes are weighed by answers [1]_, and trees that tell the
anomalies that were found from rows answered as normal and from rows drawn at random. The three
count the same: weights made no difference on development tables. Nothing here changes the
model: it is a way of asking.

References
----------
.. [1] Siddiqui, Fern, Dietterich, Wright, Theriault & Archer, "Feedback-guided anomaly
   discovery via online optimization", KDD (2018).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloof.feedback.paths import Paths
from aloof.labels import ANOMALY, NORMAL
from aloof.shallow import Forest

__all__ = ["BACKGROUND_SIZE", "POOL_SIZE", "Guide"]

# How many of the strangest rows may be asked about, and how many say what most are like.
POOL_SIZE, BACKGROUND_SIZE = 1000, 2000

_N_TREES = 40


class Guide:
    """Ranks rows by a model's scores and by answers.

    Parameters
    ----------
    rows
        Which may be asked about, as numbers ``(n, n_features)``.
    background
        Rows of the same data drawn at random: what most rows are like.
    seed
        Of everything random.
    """

    def __init__(
        self,
        rows: NDArray[np.floating],
        background: NDArray[np.floating],
        *,
        seed: int = 0,
    ) -> None:
        self._rows, self._seed = np.asarray(rows, np.float32), seed
        self._background = np.asarray(background, np.float32)
        self._paths = Paths(self._background, seed=seed)
        self._own = self._paths(self._rows)

    def evidence(
        self,
        scores: NDArray[np.float64],
        answered: NDArray[np.floating],
        labels: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return how much speaks for an anomaly, for each of the rows.

        The order of the answers makes no difference, and one that is taken back leaves no
        trace.

        Parameters
        ----------
        scores
            The model's anomaly scores of the rows.
        answered
            Rows with an answer, whether they are among the rows or not.
        labels
            Their answers: 1 anomaly, 0 normal.
        """
        answered = np.asarray(answered, np.float32).reshape(-1, self._rows.shape[1])
        order = np.lexsort([labels, *answered.T])
        answered, labels = answered[order], labels[order]
        total = _evidence(scores) + _evidence(self._isolated(answered, labels))
        if (labels == ANOMALY).any():
            total += _evidence(self._recognised(answered, labels))
        return total

    def _isolated(
        self, answered: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return minus the weighted lengths of the paths, weights 1 without answers."""
        weights = np.ones(self._paths.n_nodes)
        if len(answered):
            weights += self._paths(answered).T @ np.where(labels == ANOMALY, -1.0, 1.0)
        return -np.asarray(self._own @ np.maximum(weights, 0.0))

    def _recognised(
        self, answered: NDArray[np.float32], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return how much each row looks like the anomalies that were found, to trees."""
        known = {row.tobytes() for row in answered}
        others = [row for row in self._background if row.tobytes() not in known]
        normal = answered[labels == NORMAL]
        X = np.concatenate([answered[labels == ANOMALY], normal, np.array(others)])
        n_found = int((labels == ANOMALY).sum())
        forest = Forest.fit(
            X,
            np.arange(len(X)) < n_found,
            confirmed=(np.arange(len(X)) >= n_found) & (np.arange(len(X)) < len(answered)),
            n_trees=_N_TREES,
            seed=self._seed,
        )
        return forest.score(self._rows)


def _evidence(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return minus the logarithm of each row's share of the ranking."""
    ranks = np.argsort(np.argsort(-scores, kind="stable"), kind="stable") + 1
    found: NDArray[np.float64] = -np.log(ranks / (len(scores) + 1))
    return found
