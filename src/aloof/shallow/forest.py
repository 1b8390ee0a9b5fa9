"""Trees that tell labelled anomalies from small samples of everything else.

Every tree learns from all labelled anomalies it may see and from a few of the other rows, drawn
anew for each: anomalies that hide among those are then in few trees, and outvoted [1]_. Splits
are at random, as in extremely randomised trees. A forest is its arrays: nothing of it is code.

References
----------
.. [1] Mordelet & Vert, "A bagging SVM to learn from positive and unlabeled examples", Pattern
   Recognition Letters 37 (2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import ExtraTreeClassifier

__all__ = ["Forest"]

# Other rows beside each labelled anomaly, and the fewest of them.
_OTHERS, _FEWEST = 4, 48

_CHUNK = 4096  # rows at once


@dataclass(frozen=True)
class Forest:
    """Trees as arrays; nodes of all trees one after the other.

    Attributes
    ----------
    roots
        The first node of each tree.
    feature, threshold
        A row goes left where this feature is at most the threshold.
    left, right
        The node it goes to; a leaf leads to itself.
    value
        Share of anomalies in each node, both kinds of rows weighing the same.
    depth
        Most steps from a root to a leaf.
    """

    roots: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float64]
    depth: int

    @classmethod
    def fit(
        cls,
        X: NDArray[np.floating],
        anomalous: NDArray[np.bool_],
        *,
        always: NDArray[np.bool_] | None = None,
        n_trees: int,
        seed: int,
    ) -> Forest:
        """Grow trees.

        Parameters
        ----------
        X
            Rows ``(n, n_features)``.
        anomalous
            Which of them are labelled as anomalies; at least one is and one is not.
        always
            Which of the others every tree learns from, beside those that are drawn.
        n_trees
            How many.
        seed
            Of everything random.
        """
        rng = np.random.default_rng(seed)
        rows = np.asarray(X, np.float32)  # as trees compare them
        kept = np.zeros(len(X), bool) if always is None else always & ~anomalous
        anomalies, others = np.flatnonzero(anomalous), np.flatnonzero(~anomalous & ~kept)
        n_others = min(len(others), max(_FEWEST, _OTHERS * len(anomalies)))
        labels = np.repeat([1, 0], [len(anomalies), n_others + int(kept.sum())])
        parts = []
        for _ in range(n_trees):
            drawn = rng.choice(others, n_others, replace=False)
            tree = ExtraTreeClassifier(
                max_features="sqrt",
                class_weight="balanced",
                random_state=int(rng.integers(2**31 - 1)),
            )
            chosen = np.concatenate([anomalies, drawn, np.flatnonzero(kept)])
            tree.fit(rows[chosen], labels)
            parts.append(tree.tree_)
        return cls._joined(parts)

    @classmethod
    def _joined(cls, trees: list[Any]) -> Forest:
        starts = np.cumsum([0, *(tree.node_count for tree in trees)])
        feature, threshold, left, right, value = [], [], [], [], []
        for start, tree in zip(starts, trees, strict=False):
            own, leaf = np.arange(tree.node_count), tree.children_left < 0
            feature.append(np.where(leaf, 0, tree.feature))
            threshold.append(np.where(leaf, 0.0, tree.threshold))
            left.append(start + np.where(leaf, own, tree.children_left))
            right.append(start + np.where(leaf, own, tree.children_right))
            shares = tree.value[:, 0, :]
            value.append(shares[:, -1] / shares.sum(1))
        return cls(
            starts[:-1].astype(np.int64),
            np.concatenate(feature).astype(np.int32),
            np.concatenate(threshold).astype(np.float64),
            np.concatenate(left).astype(np.int32),
            np.concatenate(right).astype(np.int32),
            np.concatenate(value).astype(np.float64),
            max(int(tree.max_depth) for tree in trees),
        )

    @property
    def n_trees(self) -> int:
        """How many trees there are."""
        return len(self.roots)

    @classmethod
    def joined(cls, parts: list[Forest]) -> Forest:
        """Return one forest of the trees of several."""
        starts = np.cumsum([0, *(len(part.feature) for part in parts)])
        own = list(zip(starts, parts, strict=False))
        return cls(
            np.concatenate([part.roots + start for start, part in own]),
            np.concatenate([part.feature for part in parts]),
            np.concatenate([part.threshold for part in parts]),
            np.concatenate([part.left + np.int32(start) for start, part in own]),
            np.concatenate([part.right + np.int32(start) for start, part in own]),
            np.concatenate([part.value for part in parts]),
            max(part.depth for part in parts),
        )

    def score(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the mean over trees of the share of anomalies where each row ends up."""
        found = np.empty(len(X))
        for start in range(0, len(X), _CHUNK):
            rows = np.asarray(X[start : start + _CHUNK], np.float32)
            found[start : start + len(rows)] = self.value[self._leaves(rows)].mean(1)
        return found

    def contributions(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return how far each feature moved each row's score from where the trees begin.

        A split moves it from the share of anomalies in one node to that in the next; the
        contributions of a row, and the mean of the roots, add up to its score.
        """
        found = np.zeros((len(X), X.shape[1]))
        for start in range(0, len(X), _CHUNK):
            rows = np.asarray(X[start : start + _CHUNK], np.float32)
            at = np.tile(self.roots, (len(rows), 1))
            number = np.arange(len(rows))[:, None]
            part = found[start : start + len(rows)]
            for _ in range(self.depth):
                after = self._step(rows, at, number)
                gain = (self.value[after] - self.value[at]) / self.n_trees
                np.add.at(part, (np.broadcast_to(number, at.shape), self.feature[at]), gain)
                at = after
        return found

    def _leaves(self, rows: NDArray[np.float32]) -> NDArray[np.int64]:
        at = np.tile(self.roots, (len(rows), 1))
        number = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            at = self._step(rows, at, number)
        return at

    def _step(
        self, rows: NDArray[np.float32], at: NDArray[np.int64], number: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        goes_left = rows[number, self.feature[at]] <= self.threshold[at]
        return np.where(goes_left, self.left[at], self.right[at]).astype(np.int64)
