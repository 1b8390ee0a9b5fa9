from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aloof.models.table.columns.reading import read_numbers, read_seconds

WORDS = st.text("0123456789+-.eEinfatyNF()_ x", max_size=8)
TIMES = st.from_regex(
    r"\d{4}-[01]\d-[0-3]\d([ T][0-2]\d:[0-6]\d(:\d\d)?)?(Z|\+0[0-9]:00)?", fullmatch=True
)
MANY = settings(max_examples=400, deadline=None, derandomize=True, database=None)


@MANY
@given(WORDS)
@example("nan(1)")
@example("-Infinity")
@example("1e400")
@example(".")
def test_a_number_in_text_is_read_the_same_alone_and_beside_a_word(word: str) -> None:
    """A cast of the whole array is tried first; a word sends all values the slower way."""
    alone = read_numbers("x", pa.array([word]))
    beside = read_numbers("x", pa.array([word, "word"]))
    np.testing.assert_array_equal(alone.values[0], beside.values[0])
    bad = [] if alone.unreadable is None else alone.unreadable.to_pylist()
    assert beside.unreadable.to_pylist() == [*bad, "word"]


@MANY
@given(TIMES)
@example("2024-02-30")
@example("2024-02-29T10:00")
def test_a_time_in_text_is_read_the_same_alone_and_beside_others(word: str) -> None:
    alone = read_seconds("x", pa.array([word]), None)
    beside = read_seconds(
        "x", pa.array([word, "word", "2023-02-30", "2024-01-01T00:00Z"]), None
    )
    np.testing.assert_array_equal(alone.values[0], beside.values[0])
    assert bool(alone.n_unread) == np.isnan(alone.values[0])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-02", 86_400),
        ("1970-01-01 01:00", 3_600),
        ("1970-01-01T00:00:01.5", 1.5),
        ("1970-01-01T02:00+02:00", 0),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_times_in_text_follow_iso_8601(text: str, seconds: float) -> None:
    assert read_seconds("x", pa.array([text]), None).values[0] == seconds
