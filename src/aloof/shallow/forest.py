"""Trees that tell labelled anomalies from small samples of everything else.

Every tree learns from all labelled anomalies it may see and from a few of the other rows, drawn
anew for each: anomalies that hide among those are then in few trees, and outvoted [1]_. Rows
that somebody confirmed to be normal, though they look like anomalies, are in every tree. Splits
are at random, as in extremely randomised trees. A forest is its arrays: nothing of it is code.
Rows go through it in scikit-learn's own compiled trees, which are made from these arrays.

References
----------
.. [1] Mordelet & Vert, "A bagging SVM to learn from positive and unlabeled examples", Pattern
   Recognition Letters 37 (2014).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.tree import ExtraTreeClassifier

from aloof.threads import share_out

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
        n_trees: int,
        seed: int,
        confirmed: NDArray[np.bool_] | None = None,
    ) -> Forest:
        """Grow trees.

        Parameters
        ----------
        X
            Rows ``(n, n_features)``.
        anomalous
            Which of them are labelled as anomalies; at least one is and one is not.
        n_trees
            How many.
        seed
            Of everything random.
        confirmed
            Which rows are surely normal. Every tree learns from them, beside those that are
            drawn: from all, or from as many as it draws of the others.
        """
        rng = np.random.default_rng(seed)
        rows = np.asarray(X, np.float32)  # as trees compare them
        sure = np.zeros(len(X), bool) if confirmed is None else confirmed & ~anomalous
        anomalies, others = np.flatnonzero(anomalous), np.flatnonzero(~anomalous & ~sure)
        most = max(_FEWEST, _OTHERS * len(anomalies))
        n_others, n_sure = min(len(others), most), min(int(sure.sum()), most)
        labels = np.repeat([1, 0], [len(anomalies), n_others + n_sure])
        parts = []
        for _ in range(n_trees):
            drawn = rng.choice(others, n_others, replace=False)
            known = np.flatnonzero(sure)
            if len(known) > n_sure:
                known = rng.choice(known, n_sure, replace=False)
            tree = ExtraTreeClassifier(
                max_features="sqrt",
                class_weight="balanced",
                random_state=int(rng.integers(2**31 - 1)),
            )
            tree.fit(rows[np.concatenate([anomalies, drawn, known])], labels)
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

    def check(self, n_features: int) -> None:
        """Raise where arrays, which may come from a file, are no trees of so many features.

        Children come after their parent and before the next tree, so every walk ends in it.
        """
        n = len(self.feature)
        own = np.arange(n)
        roots = self.roots
        if roots[0] != 0 or (np.diff(roots) <= 0).any() or roots[-1] >= n:
            raise ValueError("name nodes that are not there")
        end = np.repeat(np.append(roots[1:], n), np.diff(np.append(roots, n)))
        for children in (self.left, self.right):
            inside = (children > own) & (children < end)
            if not (inside | self._is_leaf).all():
                raise ValueError("name nodes that are not there")
        if self.feature.min() < 0 or self.feature.max() >= n_features:
            raise ValueError("name features that are not there")
        if not 0 <= self.depth <= n:
            raise ValueError("are deeper than they can be")

    def score(self, X: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the mean over trees of the share of anomalies where each row ends up."""
        found = np.empty(len(X))

        def walk(starts: Iterable[int]) -> None:
            for start in starts:
                rows = np.ascontiguousarray(X[start : start + _CHUNK], np.float32)
                found[start : start + len(rows)] = self._shares(self._leaves(rows), len(rows))

        share_out(walk, range(0, len(X), _CHUNK))
        return found

    def explain(
        self, X: NDArray[np.floating]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return scores, and how far each feature moved them from where the trees begin.

        A split moves a score from the share of anomalies in one node to that in the next; the
        contributions of a row, and the mean of the roots, add up to its score.
        """
        scores, found = np.empty(len(X)), np.empty((len(X), X.shape[1]))
        gains = self._gains(X.shape[1])

        def walk(starts: Iterable[int]) -> None:
            for start in starts:
                rows = np.ascontiguousarray(X[start : start + _CHUNK], np.float32)
                leaves, n = list(self._leaves(rows)), len(rows)
                scores[start : start + n] = self._shares(leaves, n)
                ends = np.arange(n + 1) * self.n_trees
                chosen = csr_array(
                    (np.full(ends[-1], 1 / self.n_trees), np.stack(leaves, 1).ravel(), ends),
                    shape=(n, len(self.feature)),
                )
                found[start : start + n] = (chosen @ gains).toarray()

        share_out(walk, range(0, len(X), _CHUNK))
        return scores, found

    def _shares(self, leaves: Iterable[NDArray[np.int64]], n: int) -> NDArray[np.float64]:
        """Return the mean share of anomalies in the leaves of `n` rows."""
        total = np.zeros(n)
        for own in leaves:
            total += self.value[own]
        return total / self.n_trees

    def _gains(self, n_features: int) -> csr_array:
        """Return what each feature adds on the way to each node, ``(nodes, n_features)``."""
        n = len(self.feature)
        inner = np.flatnonzero(~self._is_leaf)
        parent = np.full(n, -1)
        parent[self.left[inner]] = parent[self.right[inner]] = inner
        at = np.flatnonzero(parent >= 0)
        node, rows, columns, gains = at, [], [], []
        while len(at):  # up from all nodes at once
            above = parent[at]
            rows.append(node)
            columns.append(self.feature[above])
            gains.append(self.value[at] - self.value[above])
            on = parent[above] >= 0
            node, at = node[on], above[on]
        if not rows:
            return csr_array((n, n_features))
        where = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.concatenate(gains), where), shape=(n, n_features))

    def _leaves(self, rows: NDArray[np.float32]) -> Iterator[NDArray[np.int64]]:
        """Yield where rows, one after the other in memory, end up in each tree."""
        if self._compiled is None:
            yield from self._walk(rows).T
            return
        for tree, root in zip(self._compiled, self.roots, strict=True):
            leaves: NDArray[np.int64] = tree.apply(rows)
            leaves += root
            yield leaves

    def _walk(self, rows: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the same by arrays alone, ``(n, n_trees)``."""
        at = np.tile(self.roots, (len(rows), 1))
        number = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            goes_left = rows[number, self.feature[at]] <= self.threshold[at]
            at = np.where(goes_left, self.left[at], self.right[at]).astype(np.int64)
        return at

    @cached_property
    def _is_leaf(self) -> NDArray[np.bool_]:
        own = np.arange(len(self.feature))
        found: NDArray[np.bool_] = (self.left == own) & (self.right == own)
        return found

    @cached_property
    def _compiled(self) -> list[Any] | None:
        """Scikit-learn's trees; None where its version does not take these arrays."""
        try:
            from sklearn.tree._tree import Tree

            example = ExtraTreeClassifier(random_state=0).fit([[0.0], [1.0]], [0, 1]).tree_
            kind = example.__getstate__()["nodes"].dtype
            nodes = np.zeros(len(self.feature), kind)
            own_root = np.repeat(self.roots, np.diff(np.append(self.roots, len(nodes))))
            for name, children in (("left_child", self.left), ("right_child", self.right)):
                nodes[name] = np.where(self._is_leaf, -1, children - own_root)
            nodes["feature"] = np.where(self._is_leaf, -2, self.feature)
            nodes["threshold"] = self.threshold
            trees = []
            for own in np.split(nodes, self.roots[1:]):
                tree = Tree(int(self.feature.max()) + 1, np.array([1], np.intp), 1)
                state = {"max_depth": self.depth, "node_count": len(own), "nodes": own}
                tree.__setstate__({**state, "values": np.zeros((len(own), 1, 1))})
                trees.append(tree)
        except (ImportError, AttributeError, KeyError, TypeError, ValueError):
            return None
        return trees
