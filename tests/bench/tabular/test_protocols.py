"""What each protocol promises, whatever the table."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.bench.splits import make_split
from aloof.bench.tabular.protocols import (
    Condition,
    cluster_kinds,
    labelled_kind,
    make_protocol_split,
)

KNOWN, NOVEL = Condition("known", 0.05), Condition("novel", 0.05)


def table(n_normal: int = 400, n_anomalies: int = 120, n_kinds: int = 3):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [n_normal, n_anomalies]))
    return y, np.array([f"kind {k}" for k in rng.integers(n_kinds, size=len(y))])


@pytest.mark.parametrize("labels", [0.01, 0.05])
@pytest.mark.parametrize("hidden", [0.0, 0.02, 0.1])
def test_known_and_hidden_are_the_splits_of_odds(labels: float, hidden: float) -> None:
    y, _ = table()
    condition = Condition("hidden" if hidden else "known", labels, hidden)
    split = make_protocol_split(y, condition, seed=3)
    assert split.sha256 == make_split(y, seed=3, gamma_l=labels, gamma_p=hidden).sha256


@pytest.mark.parametrize("protocol", ["known", "novel", "hidden"])
@pytest.mark.parametrize("n", [1, 5, 17])
def test_a_number_of_labels_is_that_number(protocol: str, n: int) -> None:
    y, kinds = table()
    condition = Condition(protocol, n, 0.05 if protocol == "hidden" else 0.0)
    split = make_protocol_split(y, condition, seed=1, kinds=kinds)
    assert len(split.train_anomaly) == n
    assert y[split.train_anomaly].all()
    assert split.gamma_l == pytest.approx(n / (n + 240))


def test_the_rows_of_the_protocols_are_those_of_known() -> None:
    y, kinds = table()
    known = make_protocol_split(y, KNOWN, seed=2)
    novel = make_protocol_split(y, NOVEL, seed=2, kinds=kinds)
    hidden = make_protocol_split(y, Condition("hidden", 0.05, 0.1), seed=2)
    assert novel.train_unlabelled.tolist() == known.train_unlabelled.tolist()
    assert hidden.test.tolist() == known.test.tolist()
    assert hidden.train_anomaly.tolist() == known.train_anomaly.tolist()
    assert set(hidden.train_unlabelled) - set(hidden.hidden) == set(known.train_unlabelled)
    left_out = set(known.test) - set(novel.test)
    assert set(novel.test) < set(known.test)
    assert {kinds[row] for row in left_out} == {labelled_kind(novel, kinds)}
    assert y[list(left_out)].all()


@pytest.mark.parametrize("seed", range(6))
def test_novel_labels_one_kind_and_tests_the_others(seed: int) -> None:
    y, kinds = table()
    split = make_protocol_split(y, NOVEL, seed=seed, kinds=kinds)
    anomalies = split.test[y[split.test] == 1]
    assert labelled_kind(split, kinds) == f"kind {seed % 3}"  # kinds take turns
    assert set(kinds[anomalies]) == {f"kind {k}" for k in range(3)} - {f"kind {seed % 3}"}
    assert not set(split.train) & set(split.test)
    assert len(split.hidden) == 0


def test_more_labels_add_to_fewer() -> None:
    y, kinds = table()
    few, many = (
        make_protocol_split(y, Condition("novel", n), seed=4, kinds=kinds) for n in (5, 12)
    )
    assert set(few.train_anomaly) < set(many.train_anomaly)
    assert few.test.tolist() == many.test.tolist()


def test_a_kind_with_too_few_rows_passes() -> None:
    y = np.repeat([0, 1], [200, 60])
    kinds = np.array(["-"] * 200 + ["a"] * 3 + ["b"] * 27 + ["c"] * 30)
    for seed in range(6):
        split = make_protocol_split(y, Condition("novel", 1), seed=seed, kinds=kinds)
        assert labelled_kind(split, kinds) == "bbc"[seed % 3]


def test_a_kind_that_leaves_nothing_to_test_on_passes() -> None:
    y = np.repeat([0, 1], [200, 60])
    kinds = np.array(["-"] * 200 + ["a"] * 55 + ["b"] * 5)
    with pytest.raises(ValueError, match=r"the largest has 3. and leaves [0-4]"):
        make_protocol_split(y, Condition("novel", 1), seed=0, kinds=kinds)


def test_the_kinds_of_normal_rows_do_not_matter() -> None:
    y, kinds = table()
    other = np.where(y == 1, kinds, "whatever")
    splits = [make_protocol_split(y, NOVEL, seed=0, kinds=own) for own in (kinds, other)]
    assert splits[0].sha256 == splits[1].sha256


@pytest.mark.parametrize(
    ("condition", "kinds", "words"),
    [
        (Condition("known", 50), None, "50 labels are asked for, .* have 24 anomalies"),
        (Condition("hidden", 0.01, 0.3), None, "gamma_p = 0.3 asks for .* hidden"),
        (Condition("novel", 0.01), None, "needs a kind for each row"),
        (Condition("novel", 0), ["a", "b"], "needs labelled anomalies"),
        (Condition("novel", 0.01), ["a"], "All anomalies are of one kind"),
        (
            Condition("novel", 20),
            ["a", "b"],
            "must have 20 training rows .*; the largest has 14 and",
        ),
        (
            Condition("novel", 5),
            [*"abcdefghij"],
            "For 5 labels, a kind must have 5 training rows",
        ),
    ],
)
def test_what_a_table_lacks_is_said(condition, kinds, words) -> None:
    y = np.repeat([0, 1], [200, 40])
    own = None if kinds is None else np.resize(kinds, 240)
    with pytest.raises(ValueError, match=words):
        make_protocol_split(y, condition, seed=0, kinds=own)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("know", 0.1), "one of known, novel, hidden"),
        (("known", 1.5), "a whole number"),
        (("known", -1), "a whole number"),
        (("known", 0.1, 0.1), "got 0.1 with known"),
        (("hidden", 0.1), "got 0.0 with hidden"),
        (("hidden", 0.1, 1.0), "got 1.0"),
    ],
)
def test_conditions_that_cannot_be(values, words) -> None:
    with pytest.raises(ValueError, match=words):
        Condition(*values)


def test_clusters_find_groups_and_count_them_by_size() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 900.0]], [10, 30, 20], axis=0)
    X = np.concatenate([rng.normal(size=(50, 2)), centres + rng.normal(size=(60, 2))])
    y = np.repeat([0, 1], [50, 60])
    kinds = cluster_kinds(X, y)
    expected = np.repeat(["", "cluster 3", "cluster 1", "cluster 2"], [50, 10, 30, 20])
    assert kinds.tolist() == expected.tolist()


def test_equal_anomalies_are_of_one_kind() -> None:
    kinds = cluster_kinds(np.ones((9, 2)), np.repeat([0, 1], [4, 5]))
    assert kinds.tolist() == [""] * 4 + ["cluster 1"] * 5
