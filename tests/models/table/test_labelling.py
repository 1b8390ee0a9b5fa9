from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aloof.exceptions import LabelError, TableError
from aloof.models.table.labelling import (
    check_column,
    check_labels,
    check_share,
    read_label_column,
)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 0, None, -1], [1, 0, -1, -1]),
        ([1.0, 0.0, float("nan")], [1, 0, -1]),
        ([True, False, None], [1, 0, -1]),
        (["1", "0", "", "1.0", "0.0"], [1, 0, -1, 1, 0]),
        ([" Yes", "NO", "TRUE", "false", "n/a", None], [1, 0, 1, 0, -1, -1]),
        ([None, None], [-1, -1]),
    ],
)
def test_common_labels_are_read(values: list[Any], expected: list[int]) -> None:
    read = read_label_column("y", pa.array(values, from_pandas=True))
    assert read.tolist() == expected
    chunks = pa.chunked_array([pa.array(values, from_pandas=True)] * 2)
    assert read_label_column("y", chunks).tolist() == 2 * expected


def test_a_dictionary_column_is_read() -> None:
    column = pa.array(["yes", "no", None, "yes"]).dictionary_encode()
    assert read_label_column("y", column).tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    ("values", "anomaly", "expected"),
    [
        (["fraud", "ok", None, "chargeback"], "fraud", [1, 0, -1, 0]),
        ([2, 1, 2, None], "2", [1, 0, 1, -1]),
        ([2.0, 1.0], "2", [1, 0]),
        ([-1, 1, 1], "-1", [1, 0, 0]),
        ([True, False], "False", [0, 1]),
    ],
)
def test_a_value_of_ones_own_is_an_anomaly_and_others_are_normal(
    values: list[Any], anomaly: str, expected: list[int]
) -> None:
    assert read_label_column("y", pa.array(values), anomaly).tolist() == expected


def test_labels_that_cannot_be_read_are_listed() -> None:
    with pytest.raises(LabelError, match=r"'y'.*'chargeback', 'fraud'.*--anomaly-value"):
        read_label_column("y", pa.array(["fraud", "0", "chargeback"]))
    with pytest.raises(LabelError, match="and 992 more"):
        read_label_column("y", pa.array([f"P{i}" for i in range(1000)]))


def checked(values: list[Any], anomaly: str | None = None) -> None:
    column = pa.array(values)
    labels = read_label_column("y", column, anomaly)
    check_labels("y", column, labels, anomaly)
    check_share(labels)


def test_labels_that_may_mean_something_else_are_refused() -> None:
    checked([1, 0, 0, -1])
    checked([1, None, None])
    with pytest.raises(LabelError, match=r"only -1 and 1.*--anomaly-value -1"):
        checked([1, 1, -1])
    checked([1, 1, -1], "-1")
    with pytest.raises(LabelError, match="2 of 3 rows are labelled as anomalies"):
        checked([1, 1, 0])
    with pytest.raises(LabelError, match="3 of 3 rows"):
        checked([1, 1, 1])
    with pytest.raises(LabelError, match=r"'frod'.*did you mean 'fraud'.*'fraud', 'ok'"):
        checked(["fraud", "ok", "ok"], "frod")


def test_a_column_that_is_not_there_is_named_with_the_nearest() -> None:
    check_column("fraud", ["fraud"], "labels")
    with pytest.raises(TableError, match=r"'frad' for the labels \(did you mean 'fraud'\?"):
        check_column("frad", ["amount", "fraud"], "labels")


def test_labels_do_not_depend_on_how_rows_are_split() -> None:
    rng = np.random.default_rng(0)
    column = pa.array(rng.choice(["1", "0", "", "yes", "-1"], 500).tolist())
    whole = read_label_column("y", column)
    parts = [read_label_column("y", column.slice(i, 7)) for i in range(0, 500, 7)]
    assert np.array_equal(np.concatenate(parts), whole)


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("ja", "nein"),
        ("Ja ", " Nein"),
        ("J", "N"),
        ("oui", "non"),
        ("s\u00ed", "no"),
        ("tak", "nie"),
        ("\u0434\u0430", "\u043d\u0435\u0442"),
        ("VRAI", "FAUX"),
        ("1,0", "0,0"),
    ],
)
def test_yes_and_no_in_other_languages(yes: str, no: str) -> None:
    read = read_label_column("y", pa.array([yes, no, None, no]))
    assert read.tolist() == [1, 0, -1, 0]


def test_the_hint_names_a_label_that_is_there() -> None:
    with pytest.raises(LabelError, match=r"anomaly_value='bad one', .* --anomaly-value 'bad"):
        read_label_column("y", pa.array(["ok"] * 5 + ["bad one"]))


def test_ids_are_no_labels() -> None:
    ids = pa.array([f"P{i}" for i in range(50)])
    read = read_label_column("key", ids, "P3")
    with pytest.raises(LabelError, match="another value in each of 50 rows"):
        check_labels("key", ids, read, "P3")
