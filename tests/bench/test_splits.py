from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from aloof.bench import (
    make_split,
    read_split,
    split_record,
    standardise,
    training_rows,
)
from aloof.bench.splits import SCALINGS, Scaling, scale
from aloof.datasets import PublicTable, list_datasets, load_dataset
from aloof.exceptions import LabelError
from aloof.labels import read_labels

REAL = Path(os.environ.get("ALOOF_DATA") or Path(__file__).parents[3] / "shared" / "data")


def labels(n_normal: int = 1000, n_anomalies: int = 100, seed: int = 0) -> np.ndarray:
    y = np.repeat([0, 1], [n_normal, n_anomalies])
    return np.random.default_rng(seed).permutation(y)


@pytest.mark.parametrize("seed", range(3))
def test_every_normal_row_is_in_one_part_and_no_row_in_two(seed: int) -> None:
    y = labels()
    split = make_split(y, seed=seed, gamma_l=0.02, gamma_p=0.03)
    parts = np.concatenate([split.train_unlabelled, split.train_anomaly, split.test])
    assert len(set(parts)) == len(parts)
    assert set(np.flatnonzero(y == 0)) <= set(parts)
    assert not set(split.train) & set(split.test)
    assert set(split.hidden) <= set(split.train_unlabelled)
    assert not set(split.hidden) & set(split.train_anomaly)
    for rows in (split.train_unlabelled, split.train_anomaly, split.hidden, split.test):
        assert rows.dtype == np.int64
        assert np.array_equal(rows, np.sort(rows))


def test_labels_of_each_part_are_what_they_are_called() -> None:
    y = labels()
    split = make_split(y, seed=1, gamma_l=0.02, gamma_p=0.03)
    assert y[split.train_anomaly].all()
    assert y[split.hidden].all()
    assert np.array_equal(split.train_unlabelled[y[split.train_unlabelled] == 1], split.hidden)


@pytest.mark.parametrize(("n_normal", "n_anomalies"), [(1000, 100), (386, 66), (503, 11)])
@pytest.mark.parametrize("test_size", [0.4, 0.25])
def test_both_labels_are_divided_alike(n_normal, n_anomalies, test_size) -> None:
    y = labels(n_normal, n_anomalies)
    split = make_split(y, seed=3, gamma_l=0.01, test_size=test_size)
    assert int((y[split.test] == 0).sum()) == round(test_size * n_normal)
    assert int((y[split.test] == 1).sum()) == round(test_size * n_anomalies)
    assert len(split.train_unlabelled) == n_normal - round(test_size * n_normal)


@pytest.mark.parametrize("gamma_l", [0.0, 0.01, 0.02, 0.05, 0.08])
@pytest.mark.parametrize("gamma_p", [0.0, 0.005])
def test_gamma_l_is_the_share_of_labelled_anomalies(gamma_l: float, gamma_p: float) -> None:
    y = labels()
    split = make_split(y, seed=0, gamma_l=gamma_l, gamma_p=gamma_p)
    n_normal = int((y[split.train_unlabelled] == 0).sum())
    n_labelled = len(split.train_anomaly)
    assert n_normal == 600
    assert abs(n_labelled - gamma_l * (n_normal + n_labelled)) <= 0.5


@pytest.mark.parametrize("gamma_p", [0.0, 0.01, 0.05, 0.08])
def test_gamma_p_is_the_share_of_hidden_anomalies(gamma_p: float) -> None:
    split = make_split(labels(), seed=0, gamma_l=0.01, gamma_p=gamma_p)
    n_hidden = len(split.hidden)
    assert len(split.train_unlabelled) == 600 + n_hidden
    assert abs(n_hidden - gamma_p * len(split.train_unlabelled)) <= 0.5


def test_a_share_above_0_is_at_least_one_row() -> None:
    split = make_split(labels(50, 10), seed=0, gamma_l=1e-4, gamma_p=1e-4)
    assert len(split.train_anomaly) == len(split.hidden) == 1


def test_one_seed_one_split_whatever_the_global_generators_do() -> None:
    y = labels()
    first = make_split(y, seed=5, gamma_l=0.02, gamma_p=0.02)
    state = np.random.get_state()
    np.random.seed(99)
    again = make_split(y.tolist(), seed=np.int64(5), gamma_l=0.02, gamma_p=0.02)
    np.random.set_state(state)
    assert split_record(first) == split_record(again)


def test_seeds_differ_in_every_part() -> None:
    splits = [make_split(labels(), seed=s, gamma_l=0.05, gamma_p=0.03) for s in range(10)]
    for name in ("test", "train_unlabelled", "train_anomaly", "hidden"):
        assert len({tuple(getattr(split, name)) for split in splits}) == 10


def test_every_row_is_tested_on_as_often_as_others() -> None:
    y = labels(60, 20)
    tested = np.zeros(len(y))
    for seed in range(400):
        tested[make_split(y, seed=seed, gamma_l=0.1).test] += 1
    share = tested / 400
    assert np.all(np.abs(share - 0.4) < 5 * np.sqrt(0.4 * 0.6 / 400))


def test_a_split_stays_the_same_over_versions() -> None:
    """These rows must never change: published results depend on them."""
    split = make_split([0] * 14 + [1] * 6, seed=7, gamma_l=0.1, gamma_p=0.2)
    assert split.test.tolist() == [1, 5, 6, 8, 9, 12, 15, 18]
    assert split.train_unlabelled.tolist() == [0, 2, 3, 4, 7, 10, 11, 13, 14, 19]
    assert split.train_anomaly.tolist() == [17]
    assert split.hidden.tolist() == [14, 19]


def test_test_rows_do_not_depend_on_the_shares_and_larger_shares_add_rows() -> None:
    y = labels()
    small = make_split(y, seed=2, gamma_l=0.01, gamma_p=0.01)
    more_labels = make_split(y, seed=2, gamma_l=0.05, gamma_p=0.01)
    more_hidden = make_split(y, seed=2, gamma_l=0.01, gamma_p=0.05)
    for other in (more_labels, more_hidden):
        assert np.array_equal(small.test, other.test)
    assert set(small.train_anomaly) < set(more_labels.train_anomaly)
    assert np.array_equal(small.hidden, more_labels.hidden)
    assert set(small.hidden) < set(more_hidden.hidden)
    assert np.array_equal(small.train_anomaly, more_hidden.train_anomaly)


def test_all_anomalies_can_be_used() -> None:
    y = labels(100, 100)  # 60 of each to train on
    split = make_split(y, seed=0, gamma_l=0.25, gamma_p=0.4)
    assert len(split.train_anomaly) == 20
    assert len(split.hidden) == 40


def largest(message: str) -> float:
    found = re.search(r"can be at most ([0-9.e-]+)\.$", message)
    assert found, message
    return float(found[1])


@pytest.mark.parametrize("n_anomalies", [3, 10, 71])
def test_too_large_a_gamma_l_says_what_there_is(n_anomalies: int) -> None:
    y = labels(5732, n_anomalies)
    n_train = n_anomalies - round(0.4 * n_anomalies)
    with pytest.raises(ValueError, match=f"have only {n_train} anomalies") as caught:
        make_split(y, seed=0, gamma_l=0.1)
    assert "asks for 382 labelled anomalies beside 3439 normal" in str(caught.value)
    gamma_l = largest(str(caught.value))
    split = make_split(y, seed=0, gamma_l=gamma_l)
    assert len(split.train_anomaly) == n_train
    beyond = (n_train + 0.6) / (3439 + n_train + 0.6)
    with pytest.raises(ValueError, match="gamma_l"):
        make_split(y, seed=0, gamma_l=beyond)


def test_too_large_a_gamma_p_says_what_is_left() -> None:
    y = labels(5732, 71)
    with pytest.raises(ValueError, match=r"35 are labelled .* and 8 are left") as caught:
        make_split(y, seed=0, gamma_l=0.01, gamma_p=0.05)
    assert "of the 43 anomalies" in str(caught.value)
    split = make_split(y, seed=0, gamma_l=0.01, gamma_p=largest(str(caught.value)))
    assert len(split.hidden) == 8


def test_nothing_left_to_hide_is_0() -> None:
    with pytest.raises(ValueError, match=r"0 are left: gamma_p can be at most 0\.$"):
        make_split(labels(100, 10), seed=0, gamma_l=6 / 66, gamma_p=0.01)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": -1}, r"seed must be an int >= 0; got -1"),
        ({"seed": 0.5}, r"seed must be an int"),
        ({"seed": None}, r"seed must be an int"),
        ({"gamma_l": 1.0}, r"gamma_l must be a share, from 0 to below 1; got 1\.0"),
        ({"gamma_l": -0.1}, "gamma_l must be"),
        ({"gamma_l": float("nan")}, "gamma_l must be"),
        ({"gamma_p": 1.5}, "gamma_p must be"),
        ({"test_size": 0.0}, "test_size must be"),
        ({"test_size": 1}, "test_size must be"),
    ],
)
def test_arguments_that_make_no_sense(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_split(labels(), **{"seed": 0, "gamma_l": 0.01, **arguments})


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, -1, 0, 1], "true label"),
        ([[0, 1], [0, 1]], "true label"),
        ([0.0, np.nan, 1.0], "true label"),
        (["0", "1", "0", "1"], "true label"),
        ([0, 0, 0, 1], "y has 1 anomalies; a split needs at least 2"),
        ([1, 1, 1], "y has 0 normal rows"),
    ],
)
def test_labels_that_make_no_split(y, message) -> None:
    with pytest.raises(LabelError, match=message):
        make_split(y, seed=0, gamma_l=0.01)


def test_few_rows_leave_each_label_on_both_sides() -> None:
    y = [0, 0, 1, 1]
    for test_size in (0.01, 0.4, 0.99):
        split = make_split(y, seed=0, gamma_l=0.5, test_size=test_size)
        assert sorted(np.take(y, split.test)) == [0, 1]
        assert len(split.train_unlabelled) == len(split.train_anomaly) == 1


def test_training_knows_the_labelled_anomalies_and_no_others() -> None:
    y = labels()
    X = np.arange(len(y), dtype=float)[:, None]
    split = make_split(y, seed=4, gamma_l=0.02, gamma_p=0.03)
    X_train, y_train = training_rows(split, X)
    rows = X_train[:, 0].astype(int)
    assert set(rows[y_train == 1]) == set(split.train_anomaly)
    assert set(rows[y_train == 0]) == set(split.train_unlabelled)
    assert set(split.hidden) <= set(rows[y_train == 0])
    assert y_train.dtype == np.int64
    read_labels(y_train, len(X_train))  # the estimators take them without a warning
    with pytest.raises(ValueError, match="split is for 1100 rows, but X has 1099"):
        training_rows(split, X[1:])


def test_standardising_uses_training_rows_only() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(3, 5, (50, 4)), rng.normal(-2, 9, (30, 4))
    scaled, other = standardise(train, test)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(0), 1)
    np.testing.assert_allclose(other, (test - train.mean(0)) / train.std(0))
    np.testing.assert_array_equal(standardise(train, test * 100)[0], scaled)
    np.testing.assert_array_equal(standardise(train, test[:1])[1], other[:1])


def test_unit_scaling_is_standardised_and_then_0_to_1() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(3.0, 5.0, (50, 4)), rng.normal(3.0, 50.0, (20, 4))
    scaled, other = scale(train, test, "unit")
    low, high = train.min(0), train.max(0)
    np.testing.assert_allclose(scaled, (train - low) / (high - low), atol=1e-12)
    np.testing.assert_allclose(other, (test - low) / (high - low), atol=1e-12)
    assert other.min() < 0 < 1 < other.max(), "test rows are not cut off"
    for one, same in zip(scale(train, test, "standard"), standardise(train, test), strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_constant_columns_are_only_shifted(scaling: Scaling) -> None:
    train = np.c_[np.full(6, 7.0), np.arange(6.0), np.full(6, 1e-9)]
    scaled, other = scale(train, [[9.0, 2.0, 0.0]], scaling)
    np.testing.assert_array_equal(scaled[:, [0, 2]], 0.0)
    np.testing.assert_allclose(other[0, [0, 2]], [2.0, -1e-9])


def test_standardising_leaves_its_input_and_shifts_constant_columns() -> None:
    train, test = np.array([[2, 1], [2, 3]], np.uint8), np.array([[5, 2]], np.uint8)
    scaled, other = standardise(train, test)
    assert scaled.dtype == other.dtype == np.float64
    np.testing.assert_array_equal(scaled, [[0, -1], [0, 1]])
    np.testing.assert_array_equal(other, [[3, 0]])
    assert train.tolist() == [[2, 1], [2, 3]]


def test_a_record_survives_json_and_gives_the_split_back() -> None:
    split = make_split(labels(), seed=np.int64(6), gamma_l=np.float64(0.02), gamma_p=0.03)
    record = json.loads(json.dumps(split_record(split)))
    back = read_split(record)
    assert split_record(back) == record
    assert (back.seed, back.gamma_l, back.gamma_p, back.test_size) == (6, 0.02, 0.03, 0.4)
    assert back.n_rows == 1100
    for name in ("train_unlabelled", "train_anomaly", "hidden", "test"):
        assert record[name] == getattr(split, name).tolist()
        np.testing.assert_array_equal(getattr(back, name), getattr(split, name))


def test_a_record_that_was_changed_is_refused() -> None:
    record = split_record(make_split(labels(), seed=0, gamma_l=0.02))
    moved = {**record, "train_unlabelled": [*record["train_unlabelled"], record["test"][0]]}
    with pytest.raises(ValueError, match="changed after it was recorded"):
        read_split(moved)
    with pytest.raises(ValueError, match=r"has the keys gamma_l, .* got gamma_l"):
        read_split({key: value for key, value in record.items() if key != "test"})


def test_rows_of_a_split_cannot_be_changed() -> None:
    split = make_split(labels(), seed=0, gamma_l=0.02)
    with pytest.raises(ValueError, match="read-only"):
        split.test[0] = 5


def test_a_digest_is_of_the_rows() -> None:
    y = labels()
    digest = make_split(y, seed=0, gamma_l=0.02).sha256
    # 0.0201 rounds to as many rows as 0.02
    assert digest == make_split(y, seed=0, gamma_l=0.0201).sha256
    assert digest != make_split(y, seed=1, gamma_l=0.02).sha256
    assert digest != make_split(y, seed=0, gamma_l=0.05).sha256
    assert digest != make_split(y, seed=0, gamma_l=0.02, gamma_p=0.01).sha256


@pytest.mark.skipif(
    not (REAL / "odds").is_dir(), reason="no folder with real data; ALOOF_DATA can name one"
)
@pytest.mark.parametrize(
    ("name", "n_labelled"),
    [
        ("arrhythmia", 2),
        ("cardio", 10),
        ("satellite", 27),
        ("satimage-2", 35),
        ("shuttle", 276),
        ("thyroid", 22),
    ],
)
def test_the_paper_s_setting_on_the_real_sets(name: str, n_labelled: int, monkeypatch) -> None:
    monkeypatch.setenv("ALOOF_DATA", str(REAL))
    table = load_dataset(name)
    split = make_split(table.y, seed=0, gamma_l=0.01)
    assert len(split.train_anomaly) == n_labelled
    assert len(split.hidden) == 0
    X_train, y_train = training_rows(split, table.X)
    assert int(y_train.sum()) == n_labelled
    assert abs(table.y[split.test].mean() - table.y.mean()) < 1 / len(split.test)
    X_train, X_test = standardise(X_train, table.X[split.test])
    assert np.isfinite(X_train).all()
    assert np.isfinite(X_test).all()


def test_the_real_setting_covers_every_set() -> None:
    marks = test_the_paper_s_setting_on_the_real_sets.pytestmark
    named = [name for mark in marks if mark.name == "parametrize" for name, _ in mark.args[1]]
    assert named == [entry.name for entry in list_datasets(PublicTable)]
