"""The distance to the k-th nearest row."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from aloof.shallow import Neighbours


def test_distances_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    kept, X = rng.normal(size=(300, 5)), rng.normal(size=(700, 5))
    found = Neighbours(kept)
    reference = NearestNeighbors(n_neighbors=5).fit(kept)
    distance, number = reference.kneighbors(X)
    np.testing.assert_allclose(found.distance(X), distance[:, -1], rtol=1e-6)
    same, differences = found.explain(X)
    assert np.array_equal(same, found.distance(X))
    np.testing.assert_allclose(differences, (X - kept[number[:, -1]]) ** 2)
    alone = found.distance(kept, np.arange(300))  # a row is no neighbour of itself
    np.testing.assert_allclose(alone, reference.kneighbors()[0][:, -1], rtol=1e-6)


def test_a_row_has_one_distance_in_any_company_and_few_rows_are_enough() -> None:
    rng = np.random.default_rng(0)
    found, X = Neighbours(rng.normal(size=(300, 5))), rng.normal(size=(700, 5))
    assert np.array_equal(found.distance(X[::-1])[::-1], found.distance(X))
    assert np.array_equal(found.distance(X[3:4]), found.distance(X)[3:4])
    few = Neighbours(X[:2])
    np.testing.assert_allclose(few.distance(X[:1]), np.linalg.norm(X[0] - X[1]), rtol=1e-6)


def test_equal_distances_are_equal_however_they_are_summed() -> None:
    """Rows on a grid have few distances, and rows that are there five times have none."""
    rng = np.random.default_rng(0)
    kept = rng.integers(0, 4, (400, 3)) * [0.1, 0.7, 0.01] + [31.7, 0.0, 55.5]
    found = Neighbours(np.r_[kept, np.repeat(kept[:1], 5, axis=0)])
    reference = NearestNeighbors(n_neighbors=5, algorithm="kd_tree").fit(found.rows)
    distances = found.distance(found.rows)
    exact = reference.kneighbors(found.rows)[0][:, -1]
    assert len(np.unique(distances)) == len(np.unique(exact.round(9)))
    assert distances[0] == 0.0
    np.testing.assert_allclose(distances, exact, rtol=1e-6)


@pytest.mark.parametrize("what", ["distance", "explain"])
def test_threads_change_no_bit(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aloof.threads.available_processors", lambda: 3)
    rng = np.random.default_rng(4)
    known, rows = Neighbours(rng.normal(size=(500, 7))), rng.normal(size=(1500, 7))
    found, before = [], torch.get_num_threads()
    try:
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            found.append(
                np.concatenate([np.ravel(part) for part in getattr(known, what)(rows)])
            )
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    assert np.array_equal(*found)


def test_near_duplicates_have_one_distance_in_any_order() -> None:
    """Widths that are odd would round by the place of a row."""
    for width, seed in product((7, 13, 61), range(3)):
        rng = np.random.default_rng(seed)
        kept = rng.normal(size=(1024, width))
        near = 10 ** rng.uniform(-6, -4, (4000, 1)) * rng.normal(size=(4000, width))
        rows, order = kept[rng.integers(0, 1024, 4000)] + near, rng.permutation(4000)
        found = Neighbours(kept, k=1)
        assert np.array_equal(found.distance(rows)[order], found.distance(rows[order]))
