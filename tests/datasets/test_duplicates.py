"""Planted copies are found, others are not, and the bound on an AUROC holds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from aloof.datasets import Duplicates, ImageDataset, Pair, find_duplicates


def pictures(n: int, shape: tuple[int, int, int], seed: int = 0) -> np.ndarray:
    """Draw blurred noise: neighbouring pixels are alike, as in photographs."""
    images = np.random.default_rng(seed).normal(size=(n, *shape))
    for axis in (2, 3):
        images = images + np.roll(images, 1, axis) + np.roll(images, -1, axis)
    images -= images.min((1, 2, 3), keepdims=True)
    return (255 * images / images.max((1, 2, 3), keepdims=True)).astype(np.uint8)


def dataset(train: np.ndarray, test: np.ndarray) -> ImageDataset:
    labels = (np.arange(len(train)) % 2, np.arange(len(test)) % 2)
    return ImageDataset("made", train, labels[0], test, labels[1], ("a", "b"), "0" * 64)


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 28, 28), (1, 17, 13), (3, 9, 40)], ids=str)
def test_planted_copies_are_found_and_nothing_else(shape: tuple[int, int, int]) -> None:
    train, test = pictures(60, shape), pictures(30, shape, seed=1)
    test[3] = train[10]
    test[4] = train[11][..., ::-1]
    dim = 0.6 * train[12] + np.random.default_rng(2).normal(0, 3, shape) + 40
    test[5] = dim.clip(0, 255).astype(np.uint8)
    train[20] = train[30]
    test[7] = test[6][..., ::-1]
    found = find_duplicates(dataset(train, test), similarity=0.9)
    kinds = {(p.first, p.second): (p.mirrored, p.same) for p in found.pairs}
    assert kinds == {
        (("train", 10), ("test", 3)): (False, True),
        (("train", 11), ("test", 4)): (True, False),
        (("train", 12), ("test", 5)): (False, False),
        (("train", 20), ("train", 30)): (False, True),
        (("test", 6), ("test", 7)): (True, False),
    }
    assert found.images("train-test") == 3
    assert found.images("train-test", same=True) == 1
    assert found.images("test") == found.images("train") == 2
    assert [p.similarity for p in found.pairs] == sorted(
        (p.similarity for p in found.pairs), reverse=True
    )
    nothing = find_duplicates(dataset(train[:20], test[10:]), similarity=0.9)
    assert nothing.pairs == ()
    assert nothing.largest_change == 0


def test_pairs_are_those_of_a_plain_comparison() -> None:
    """Images that need no small copy: every pair is compared, here one by one."""
    images = pictures(41, (1, 12, 11))

    def edges(image: np.ndarray) -> np.ndarray:
        grey = image.astype(float).mean(0)
        flat = np.r_[np.diff(grey, axis=0).ravel(), np.diff(grey, axis=1).ravel()]
        return flat / np.linalg.norm(flat)

    expected = {}
    for a, b in combinations(range(41), 2):
        plain = edges(images[a]) @ edges(images[b])
        mirrored = edges(images[a][..., ::-1]) @ edges(images[b])
        if max(plain, mirrored) >= 0.15:
            expected[a, b] = (max(plain, mirrored), mirrored > plain)
    assert 20 < len(expected) < 600
    found = find_duplicates(dataset(images[:30], images[30:]), similarity=0.15)

    def index(image: tuple[str, int]) -> int:
        return image[1] + 30 * (image[0] == "test")

    pairs = {(index(p.first), index(p.second)): p for p in found.pairs}
    assert pairs.keys() == expected.keys()
    for key, (similarity, mirrored) in expected.items():
        assert pairs[key].similarity == pytest.approx(similarity, abs=1e-5)
        assert pairs[key].mirrored == mirrored


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    images = pictures(70, (1, 12, 12))
    images[61], images[2] = images[0], images[33][..., ::-1]
    whole = find_duplicates(dataset(images[:50], images[50:]), similarity=0.2)
    monkeypatch.setattr("aloof.datasets.duplicates._BLOCK", 8)
    monkeypatch.setattr("aloof.datasets.duplicates._CHUNK", 13)
    told: list[tuple[int, int]] = []
    parts = find_duplicates(
        dataset(images[:50], images[50:]),
        similarity=0.2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert {(p.first, p.second, p.mirrored) for p in parts.pairs} == {
        (p.first, p.second, p.mirrored) for p in whole.pairs
    }
    assert len(whole.pairs) > 2
    assert told[0] == (8, 70)
    assert told[-1] == (70, 70)


def test_flat_images_are_like_their_equals_only() -> None:
    images = np.zeros((6, 1, 8, 8), np.uint8)
    images[3:5] = 200
    images[5] = pictures(1, (1, 8, 8))[0]
    found = find_duplicates(dataset(images[:4], images[4:]), similarity=0.5)
    assert {(p.first, p.second) for p in found.pairs} == {
        (("train", 0), ("train", 1)),
        (("train", 0), ("train", 2)),
        (("train", 1), ("train", 2)),
        (("train", 3), ("test", 0)),
    }
    assert all(pair.same for pair in found.pairs)


def test_no_scores_change_an_auroc_by_more_than_the_bound() -> None:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [40, 60])
    repeated = rng.choice(100, 9, replace=False)
    blank = np.zeros((100, 1, 2, 2), np.uint8)
    made = ImageDataset("made", blank, labels, blank, labels, ("a", "b"), "")
    pairs = tuple(Pair(0.9, ("train", 0), ("test", int(i))) for i in repeated)
    bound = Duplicates(made, 0.9, pairs).largest_change
    left_out = np.isin(np.arange(100), repeated)
    changes = []
    for sign in (-1, 1):
        # The worst case: images left out are wrong (or right), all others are equal.
        scores = np.where(left_out, sign * (2.0 * labels - 1), 0.0)
        for values in (scores, rng.normal(size=100)):
            whole = roc_auc_score(labels, values)
            changes.append(abs(whole - roc_auc_score(labels[~left_out], values[~left_out])))
    assert 0.3 * bound < max(changes) <= bound
    assert bound == pytest.approx(
        1 - (1 - left_out[:40].mean()) * (1 - left_out[40:].mean()), abs=1e-12
    )


@pytest.mark.parametrize("similarity", [0.0, -1.0, 1.5])
def test_a_similarity_that_makes_no_sense_is_refused(similarity: float) -> None:
    with pytest.raises(ValueError, match=f"similarity must be above 0.*{similarity}"):
        find_duplicates(dataset(*[pictures(2, (1, 4, 4))] * 2), similarity=similarity)
