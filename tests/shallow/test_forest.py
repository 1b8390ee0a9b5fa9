"""Trees as arrays: rows go where those of scikit-learn go, and what is no tree is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from aloof.shallow import Forest


@pytest.fixture(scope="module")
def forest() -> Forest:
    X, anomalous = rows(300), np.arange(300) < 12
    X[anomalous, 2] += 2
    return Forest.fit(X, anomalous, n_trees=30, seed=0)


def rows(n: int) -> NDArray[np.float64]:
    return np.random.default_rng(n).normal(size=(n, 6))


def test_compiled_trees_send_rows_where_the_arrays_do(forest: Forest) -> None:
    X = rows(1000).astype(np.float32)
    assert forest._compiled is not None
    assert np.array_equal(np.stack(list(forest._leaves(X)), 1), forest._walk(X))
    assert np.array_equal(forest.score(X), forest.value[forest._walk(X)].mean(1))
    assert np.array_equal(forest.score(X[::-1])[::-1], forest.score(X))
    assert np.array_equal(forest.score(X[7:8]), forest.score(X)[7:8])


def test_contributions_and_the_roots_add_up_to_the_score(forest: Forest) -> None:
    X = rows(200)
    X[:, 2] += 2
    scores, found = forest.explain(X)
    assert np.array_equal(scores, forest.score(X))
    total = found.sum(1) + forest.value[forest.roots].mean()
    np.testing.assert_allclose(total, forest.score(X), atol=1e-12)
    assert found.mean(0).argmax() == 2
    moved = np.zeros_like(found)  # step by step
    for row, leaves in enumerate(forest._walk(X.astype(np.float32))):
        for root, leaf in zip(forest.roots, leaves, strict=True):
            at = root
            while at != leaf:
                left = X[row].astype(np.float32)[forest.feature[at]] <= forest.threshold[at]
                after = (forest.left if left else forest.right)[at]
                moved[row, forest.feature[at]] += forest.value[after] - forest.value[at]
                at = after
    np.testing.assert_allclose(found, moved / forest.n_trees, atol=1e-12)


@pytest.mark.parametrize("name", ["left", "right", "feature", "roots", "depth"])
def test_what_is_no_tree_is_refused(forest: Forest, name: str) -> None:
    """A walk through a compiled tree would not end, or leave its memory."""
    forest.check(6)
    inner = int(np.flatnonzero(forest.left != np.arange(len(forest.left)))[-1])
    if name == "depth":
        wrong = [replace(forest, depth=-1), replace(forest, depth=10**9)]
    else:
        values = {"feature": (-1, 6), "roots": (0, 10**6)}.get(name, (0, -1, inner, 10**6))
        wrong = []
        for value in values:
            array = getattr(forest, name).copy()
            array[1 if name == "roots" else inner] = value
            wrong.append(replace(forest, **{name: array}))
    for other in wrong:
        with pytest.raises(ValueError, match=r"not there|deeper"):
            other.check(6)


def test_confirmed_rows_are_in_every_tree_there_is_room_for() -> None:
    """What somebody confirmed is told from anomalies that nothing else tells it from."""
    X = np.random.default_rng(1).normal(size=(400, 3))
    X[:30] += 5
    X[10:30, 1] += 5
    anomalous, confirmed = np.arange(400) < 10, (np.arange(400) >= 10) & (np.arange(400) < 20)
    alike = X[20:30]
    scores = [
        Forest.fit(X, anomalous, n_trees=40, seed=0, confirmed=known).score(alike).mean()
        for known in (None, confirmed)
    ]
    assert scores[1] < 0.5 * scores[0]
    everything = Forest.fit(X, anomalous, n_trees=5, seed=0, confirmed=~anomalous)
    assert everything.n_trees == 5
