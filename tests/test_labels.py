from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from aloof import encode_labels
from aloof.exceptions import LabelError, LabelWarning
from aloof.labels import read_labels


@pytest.mark.parametrize(
    "y",
    [
        [1, 0, -1, -1],
        [1.0, 0.0, np.nan, -1],
        [1, 0, None, None],
        np.array([1, 0, None, np.nan], dtype=object),
        pd.array([1, 0, pd.NA, pd.NA], dtype="Int64"),
        pd.Series([1, 0, None, -1.0]),
        [True, False, None, None],
        [[1], [0], [-1], [-1]],
    ],
    ids=str,
)
def test_every_kind_of_missing_value_is_unlabelled(y: object) -> None:
    np.testing.assert_array_equal(read_labels(y, 4), [1, 0, -1, -1])  # type: ignore[arg-type]


def test_no_labels_and_booleans() -> None:
    np.testing.assert_array_equal(read_labels(None, 2), [-1, -1])
    np.testing.assert_array_equal(read_labels(np.array([True, False, False]), 3), [1, 0, 0])


def test_labels_of_another_convention_are_refused() -> None:
    with pytest.raises(LabelError, match="Deep SAD") as error:
        read_labels([1, 1, -1], 3)
    assert "encode_labels" in str(error.value)


def test_odd_values_warn_and_count_as_unlabelled() -> None:
    with pytest.warns(LabelWarning, match="count as unlabelled"):
        labels = read_labels([0, 2, 7], 3)
    np.testing.assert_array_equal(labels, [0, -1, -1])


def test_a_majority_of_anomalies_warns() -> None:
    with pytest.warns(LabelWarning, match="the opposite of what you want"):
        read_labels([1, 1, 1, 0], 4)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["ok", "fraud"], "strings"),
        ([1, 1], "Every row"),
        ([1, 0, 0], "2 rows, y has 3"),
        ([1, 0j], "complex"),
    ],
)
def test_labels_that_cannot_be_read(y: list[object], message: str) -> None:
    with pytest.raises(LabelError, match=message):
        read_labels(y, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("convention", "given", "expected"),
    [
        ("aloof", [1, 0, -1], [1, 0, -1]),
        ("pyod", [1, 0, 0], [1, 0, 0]),
        ("deepod", [1, 0, 0], [1, -1, -1]),
        ("deepsad", [-1, 1, 0], [1, 0, -1]),
        ("sklearn-outlier", [-1, 1, 1], [1, 0, 0]),
        ({"bad": 1, "good": 0}, ["bad", "good", None], [1, 0, -1]),
        ({True: 1, False: 0}, [True, False, None], [1, 0, -1]),
    ],
)
def test_conventions(convention: object, given: list[object], expected: list[int]) -> None:
    encoded = encode_labels(given, convention)  # type: ignore[arg-type]
    np.testing.assert_array_equal(encoded, expected)


@pytest.mark.parametrize(
    ("y", "convention", "message"),
    [
        ([2], "pyod", r"not part of the convention.*Give each a meaning: 1 \(anomaly\)"),
        ([1], "deepsat", "Unknown label convention"),
        (["a"], {"a": 7}, "1, 0 or -1"),
    ],
)
def test_conversion_is_strict(y: list[object], convention: object, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        encode_labels(y, convention)  # type: ignore[arg-type]
