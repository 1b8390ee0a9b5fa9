"""What answers say at once: rows like those that were answered rise and fall."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.feedback.asking import which_rows
from aloof.feedback.guide import Guide


def made() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of three kinds: 0 usual, 1 and 2 odd in columns of their own."""
    rng = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], [360, 20, 20])
    X = rng.normal(size=(400, 4))
    X[kinds == 1, 0] += 5
    X[kinds == 2, 1] += 5
    return X, kinds, np.abs(X).max(1)


def shares(order: np.ndarray, kinds: np.ndarray) -> tuple[int, int]:
    first = kinds[order[:20]]
    return int((first == 1).sum()), int((first == 2).sum())


def test_rows_like_found_anomalies_rise_and_rows_like_harmless_ones_fall() -> None:
    X, kinds, scores = made()
    guide = Guide(X, X)
    none = guide.evidence(scores, X[:0], np.empty(0, np.int64))
    before = shares(np.argsort(-none), kinds)
    assert min(before) >= 5
    answered = np.r_[np.flatnonzero(kinds == 1)[:4], np.flatnonzero(kinds == 2)[:4]]
    labels = (kinds[answered] == 1).astype(np.int64)
    found = guide.evidence(scores, X[answered], labels)
    found[answered] = -np.inf
    after = shares(np.argsort(-found), kinds)
    assert after[0] >= 14
    assert after[1] <= 2


def test_neither_order_nor_answers_taken_back_leave_a_trace() -> None:
    X, kinds, scores = made()
    guide = Guide(X, X[::2])
    rows = np.r_[365, 370, 385, 3]
    labels = np.array([1, 1, 0, 0])
    found = guide.evidence(scores, X[rows], labels)
    guide.evidence(scores, X[:30], (kinds[:30] > 0).astype(np.int64))
    assert np.array_equal(found, guide.evidence(scores, X[rows], labels))
    again = Guide(X, X[::2]).evidence(scores, X[rows[[0, 1, 3, 2]]], labels)
    assert np.array_equal(np.argsort(again)[-20:], np.argsort(found)[-20:])


def test_answers_about_rows_elsewhere_teach_too() -> None:
    X, kinds, scores = made()
    inside, outside = X[: len(X) : 2], X[1 : len(X) : 2]
    guide = Guide(inside, inside)
    some = np.flatnonzero(kinds[1::2])
    labels = (kinds[1::2][some] == 2).astype(np.int64)
    found = guide.evidence(scores[::2], outside[some], labels)
    first = kinds[::2][np.argsort(-found)[:10]]
    assert (first == 2).sum() >= 9


def test_likely_rows_come_by_their_evidence() -> None:
    scores, evidence = np.array([3.0, 2.0, 1.0]), np.array([0.1, 0.3, 0.2])
    asked = which_rows("likely", scores, scores[None], 2.5, evidence)
    assert asked.order.tolist() == [1, 2, 0]
    assert asked.reasons == ["likely"] * 3
    with pytest.raises(TypeError, match="needs evidence"):
        which_rows("likely", scores, scores[None], 2.5)
