from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from aloof.models.table import TableEncoder
from aloof.models.table.words import duration_words, number_words

ROWS = 400
START = dt.datetime(2024, 1, 1)


def training() -> pa.Table:
    rng = np.random.default_rng(0)
    gaps = np.arange(ROWS)
    return pa.table(
        {
            "amount": rng.normal(140, 20, ROWS).round(2),
            "age": pa.array(rng.integers(20, 60, ROWS), mask=gaps % 5 == 0),
            "seldom": pa.array(rng.normal(size=ROWS), mask=gaps % 100 == 0),
            "country": rng.choice(["NO", "SE"], ROWS, p=[0.7, 0.3]),
            "branch": pa.array(["north", "south"] * (ROWS // 2), mask=gaps % 4 == 0),
            "online": rng.random(ROWS) < 0.3,
            "always": ["EUR"] * ROWS,
            "nothing": pa.nulls(ROWS, pa.string()),
            "time": [START + dt.timedelta(hours=12, days=int(day)) for day in gaps % 60],
            "spell": pa.array(rng.normal(3600, 60, ROWS).astype(int), pa.duration("s")),
        }
    )


@pytest.fixture(scope="module")
def encoder() -> TableEncoder:
    return TableEncoder.fit(training())


def say(encoder: TableEncoder, name: str, value: Any, expected: Any, aspect: int = 0) -> str:
    """Return the reason for a value where another one was expected."""
    table = training().slice(0, 1)
    column = encoder.columns[encoder.names.index(name)]
    arrays = []
    for content in (value, expected):
        array = pa.array([content], None if content is None else table[name].type)
        arrays.append(
            column.read(array if content is not None else pa.nulls(1, table[name].type))
        )
    encoded = np.zeros((1, len(column.features)), np.float32)
    column.encode(pa.array([expected], table[name].type), encoded, lambda *_: None)
    blame = np.eye(len(column.features))[[aspect]]
    (reason,) = column.reasons(*arrays, blame, encoded.astype(float))
    return reason


@pytest.mark.parametrize(
    ("name", "value", "expected", "reason"),
    [
        ("amount", 9120.0, 139.6, "`amount` 9,120 where about 140 was expected"),
        ("amount", 9120.37, 139.6, "`amount` 9,120.37 where about 140 was expected"),
        ("amount", 144.0, 143.0, "`amount` 144 where about 143 was expected"),
        ("amount", 140.1, 140.2, "`amount` 140.1 is unusual together with the rest of the row"),
        ("amount", None, 140.0, "`amount` is missing, which it never was in training"),
        ("amount", float("inf"), 140.0, "`amount` infinity where about 140 was expected"),
        ("amount", -1e40, 140.0, "`amount` -1e+40 where about 140 was expected"),
        ("age", None, 40, "`age` is missing where about 40 was expected"),
        ("age", 1_234_567, 40, "`age` 1,234,567 where about 40 was expected"),
        ("age", 30, None, "`age` 30 where none was expected"),
        ("seldom", None, 1.0, "`seldom` is missing, as in only 1 % of the training rows"),
        ("country", "XX", "NO", "`country` 'XX', never seen in training"),
        ("country", "SE", "NO", "`country` 'SE' where 'NO' was expected"),
        ("country", "NO", "NO", "`country` 'NO' is unusual together with the rest of the row"),
        ("country", None, "NO", "`country` is missing, which it never was in training"),
        ("branch", None, "north", "`branch` is missing where 'north' was expected"),
        ("branch", "north", None, "`branch` 'north' where none was expected"),
        ("online", True, False, "`online` true where false was expected"),
        ("always", "USD", "EUR", "`always` 'USD' where it was always 'EUR' in training"),
        ("always", None, "EUR", "`always` is missing, which it never was in training"),
        ("nothing", "x", None, "`nothing` 'x', though it never had a value in training"),
        ("time", None, START, "`time` is missing, which it never was in training"),
        (
            "spell",
            dt.timedelta(hours=30),
            dt.timedelta(hours=1),
            "`spell` 30 h where about 60 min was expected",
        ),
    ],
)
def test_reasons(
    encoder: TableEncoder, name: str, value: Any, expected: Any, reason: str
) -> None:
    assert say(encoder, name, value, expected) == reason


def test_reasons_of_a_time_say_which_side_of_it_stands_out(encoder: TableEncoder) -> None:
    column = encoder.columns[encoder.names.index("time")]
    assert column.features[0] == "position"
    saturday_night = dt.datetime(2024, 2, 3, 3, 14)
    wednesday = dt.datetime(2024, 1, 10, 12, 0)
    clock, week = 1, column.features.index("weekday (sine)")
    reasons = [say(encoder, "time", saturday_night, wednesday, at) for at in (0, clock, week)]
    assert reasons == [
        "`time` 2024-02-03 where about 2024-01-10 was expected",
        "`time` at 03:14 where about 12:00 was expected",
        "`time` on a Saturday where Wednesday was expected",
    ]
    later = say(encoder, "time", dt.datetime(2031, 5, 1, 12), wednesday)
    assert (
        later
        == "`time` 2031-05-01 12:00, outside the training period (2024-01-01 to 2024-02-29)"
    )


def test_text_that_goes_on_is_cut(encoder: TableEncoder) -> None:
    reason = say(encoder, "country", "x" * 500, "NO")
    assert len(reason) < 90
    assert "..." in reason


@pytest.mark.parametrize("size", range(-12, 19))
def test_numbers_in_words_are_the_numbers(size: int) -> None:
    for value in (1.0, -2.5, 3.14159, 9.99999):
        number = value * 10.0**size
        assert float(number_words(number).replace(",", "")) == pytest.approx(number, rel=0.01)
        if -4 <= size < 15:
            assert "e" not in number_words(number)


def test_numbers_and_durations_are_written_for_people() -> None:
    assert number_words(0.0) == "0"
    assert number_words(1_234_567.0) == "1,234,570"
    assert number_words(1_234_567.0, 2) == "1,200,000"
    assert number_words(float("-inf")) == "minus infinity"
    assert duration_words(86_400.0 * 10) == "10 days"
