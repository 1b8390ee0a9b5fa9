from __future__ import annotations

import dataclasses
import re

import pytest

from aloof.datasets import PublicTable, find_dataset, list_datasets
from aloof.exceptions import DatasetError


def test_the_six_sets_of_the_paper_are_there_with_their_sizes() -> None:
    sizes = {
        entry.name: (entry.n_rows, entry.n_columns, entry.n_anomalies)
        for entry in list_datasets(PublicTable)
    }
    assert sizes == {
        "arrhythmia": (452, 274, 66),
        "cardio": (1831, 21, 176),
        "satellite": (6435, 36, 2036),
        "satimage-2": (5803, 36, 71),
        "shuttle": (49097, 9, 3511),
        "thyroid": (3772, 6, 93),
    }


@pytest.mark.parametrize("entry", list_datasets(PublicTable), ids=lambda entry: entry.name)
def test_an_entry_says_where_the_file_is_and_how_to_know_it(entry) -> None:
    assert entry.home.startswith("https://odds.cs.stonybrook.edu/")
    (file,) = entry.files
    assert file.urls
    assert all(url.startswith("https://") for url in file.urls)
    assert all(f"/{entry.name}.mat" in url for url in file.urls)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in file.sha256)
    assert file.path == f"odds/{entry.name}.mat"
    assert "normal" in entry.task
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.name = "other"


def test_no_two_sets_share_an_address_or_a_hash() -> None:
    for attribute in ("urls", "sha256"):
        files = [file for entry in list_datasets() for file in entry.files]
        values = [value for file in files for value in getattr(file, attribute)]
        assert len(values) == len(set(values))


@pytest.mark.parametrize(
    ("wrong", "nearest"),
    [("satelite", "satellite"), ("Cardio", "cardio"), ("satimage2", "satimage-2")],
)
def test_a_wrong_name_gets_the_nearest(wrong: str, nearest: str) -> None:
    with pytest.raises(DatasetError, match=f"no data set '{wrong}'; did you mean '{nearest}'"):
        find_dataset(wrong)


def test_a_set_of_another_kind_is_not_found() -> None:
    assert find_dataset("mnist").name == "mnist"
    with pytest.raises(DatasetError, match=r"no data set 'mnist'\. Choose from arrhythmia"):
        find_dataset("mnist", PublicTable)


def test_a_name_near_to_nothing_gets_the_list() -> None:
    with pytest.raises(
        DatasetError, match=r"'xyzzy'\. Choose from arrhythmia, cardio, "
    ) as caught:
        find_dataset("xyzzy")
    assert "did you mean" not in str(caught.value)
