from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from aloof.bench.merging import Merged, find_results, merge_results
from aloof.bench.odds import Case
from aloof.bench.records import append_records
from aloof.exceptions import ExperimentError

CASE = Case("cardio", "dp", "ours", "", 0.01, 0.0, 3)
OTHER = Case("cardio", "knn", "", "", 0.01, 0.0, 3)


def write(folder: Path, case: Case, finished: str, status: str = "ok", **more: Any) -> None:
    record = {**asdict(case), "status": status, **more, "finished": finished}
    append_records(folder / "records.jsonl", [record])


def aurocs(folder: Path) -> list[float]:
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [json.loads(line)["auroc"] for line in lines]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path / "results" / "odds", CASE, "2026-11-02", auroc=0.5)
    return tmp_path / "results"


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "there"


def test_a_folder_with_another_name_is_known_by_its_manifest(here: Path, there: Path) -> None:
    write(there, OTHER, "2026-11-01", auroc=0.7)
    for said, expected in (
        ({"experiment": {"name": "odds"}}, "odds"),
        ({"experiment": {"name": "unheard-of"}}, "there"),
        ({"experiment": {"name": "../odds"}}, "there"),
        ({"experiment": None}, "there"),
    ):
        (there / "manifest.json").write_text(json.dumps(said))
        assert find_results(there, here) == [(expected, there / "records.jsonl")]
    (there / "manifest.json").write_text('{"experiment": {"name": "odds"}}')
    assert merge_results([there], here) == [Merged("odds", 1, 0)]
    assert aurocs(here / "odds") == [0.5, 0.7]


def test_what_is_new_is_added_once(here: Path, there: Path) -> None:
    write(there / "odds", CASE, "2026-11-02", auroc=0.5)
    write(there / "odds", OTHER, "2026-11-01", auroc=0.7)
    write(there / "new", OTHER, "2026-11-01", auroc=0.8)
    assert merge_results([there], here) == [Merged("new", 1, 0), Merged("odds", 1, 1)]
    assert aurocs(here / "odds") == [0.5, 0.7]
    assert aurocs(here / "new") == [0.8]
    before = (here / "odds" / "records.jsonl").read_bytes()
    assert [merged.n_added for merged in merge_results([there, there], here)] == [0, 0]
    assert (here / "odds" / "records.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("finished", "status", "expected"),
    [
        ("2026-11-03", "ok", [0.5, 0.9]),
        ("2026-11-01", "ok", [0.5]),
        ("2026-11-03", "error", [0.5]),
    ],
)
def test_the_later_run_counts_unless_it_failed(
    here: Path, there: Path, finished: str, status: str, expected: list[float]
) -> None:
    write(there / "odds", CASE, finished, status, auroc=0.9)
    merge_results([there / "odds"], here)
    assert aurocs(here / "odds") == expected


def test_a_run_takes_the_place_of_an_earlier_or_later_error(here: Path, there: Path) -> None:
    write(here / "odds", CASE, "2026-11-05", "error", auroc=0.0)
    write(there / "odds", CASE, "2026-11-01", auroc=0.9)
    merge_results([there], here)
    assert aurocs(here / "odds")[-1] == 0.9


def test_two_machines_with_the_same_case(here: Path, tmp_path: Path) -> None:
    for name, finished, auroc in (("a", "2026-11-04", 0.7), ("b", "2026-11-03", 0.6)):
        write(tmp_path / name / "odds", CASE, finished, auroc=auroc)
    merge_results([tmp_path / "a", tmp_path / "b"], here)
    assert aurocs(here / "odds") == [0.5, 0.7]


def test_records_without_a_status_are_recognised_and_not_added(here: Path, there: Path) -> None:
    old = {"direction": "up", "auroc": 0.4}
    for folder in (here / "text", there / "text"):
        append_records(folder / "records.jsonl", [old])
    assert merge_results([there], here) == [Merged("text", 0, 1)]
    append_records(there / "text" / "records.jsonl", [{"direction": "down", "auroc": 0.4}])
    with pytest.raises(ExperimentError, match="without a status"):
        merge_results([there], here)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"world": 3, "status": "ok", "auroc": 1}', "different experiments"),
        ('{"method": "dp", "revision": 99, "status": "ok"}', "newer version of aloof"),
        ("[1]", "not an aloof record"),
        ('{"auroc": 1}', "without a status"),
    ],
)
def test_what_does_not_belong_there_changes_nothing(
    here: Path, there: Path, line: str, message: str
) -> None:
    write(there / "new", OTHER, "2026-11-01", auroc=0.8)
    write(there / "odds", OTHER, "2026-11-03", auroc=0.9)
    with (there / "odds" / "records.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(ExperimentError, match=message):
        merge_results([there], here)
    assert aurocs(here / "odds") == [0.5]
    assert not (here / "new").exists()


def test_a_folder_without_results_or_the_same_one_is_refused(
    here: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ExperimentError, match=r"empty has no results"):
        merge_results([tmp_path / "empty"], here)
    with pytest.raises(ExperimentError, match="cannot be merged with itself"):
        merge_results([here / "odds"], here)
