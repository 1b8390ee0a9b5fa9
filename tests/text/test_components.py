"""Principal components of vectors, and what lies off them."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.text import Components


def vectors(n: int, seed: int = 0) -> np.ndarray:
    """Return vectors of 50 numbers that vary in five directions, and a little in all."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(np.random.default_rng(9).normal(size=(50, 5)))[0].T
    return rng.normal(size=(n, 5)) * [5, 4, 3, 2, 1] @ directions + 0.05 * rng.normal(
        size=(n, 50)
    )


def test_components_are_those_of_the_covariance() -> None:
    x = vectors(2000)
    found = Components.fit(x, most=5)
    variances = np.sort(np.linalg.eigvalsh(np.cov(x.T, bias=True)))[::-1][:5]
    np.testing.assert_allclose(found.scale**2, variances, rtol=1e-6)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(5), atol=1e-4)
    np.testing.assert_allclose(found(x).mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(found(x).std(0), 1, rtol=1e-3)


def test_what_lies_off_the_components_is_one_number() -> None:
    found = Components.fit(vectors(2000), most=5)
    normal = vectors(100, 1)
    off = normal + 1.0 * np.random.default_rng(2).normal(size=50) / np.sqrt(50)
    inside = normal + 3 * found.axes[0]
    assert found(normal)[:, -1].max() < 6
    assert found(off)[:, -1].min() > 8
    np.testing.assert_allclose(found(inside)[:, -1], found(normal)[:, -1], atol=0.01)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (3, 2), (320, 11), (2000, 33)])
def test_few_vectors_have_few_components(n: int, size: int) -> None:
    found = Components.fit(vectors(n))
    assert found.size == size == found(vectors(7, 3)).shape[1]
    assert np.isfinite(found(vectors(7, 3))).all()


def test_vectors_that_are_all_the_same_have_none() -> None:
    found = Components.fit(np.ones((100, 4)))
    assert found.size == 1
    assert np.isfinite(found(np.array([[5.0, 1.0, 1.0, 1.0]]))).all()


def test_off_a_space_that_holds_all_vectors_is_far() -> None:
    x = np.repeat(np.eye(4)[:3], 50, 0)
    found = Components.fit(x)
    assert found(x)[:, -1].max() < 1
    assert found(np.eye(4)[3:])[0, -1] > 10
