from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aloof.baselines import BASELINES
from aloof.bench.identity import jsonable
from aloof.bench.odds import Case
from aloof.bench.records import Record, append_records, latest
from aloof.bench.records import read_records as read
from aloof.exceptions import AloofWarning, ExperimentError

CASE = Case("cardio", "dp", "ours", "", 0.01, 0.0, 3)
OTHER = Case("cardio", "knn", "", "", 0.01, 0.0, 3)


def case_of(record: Record) -> Case:
    return Case(**{field.name: record[field.name] for field in fields(Case)})


def read_records(path: Path) -> list[dict[str, Any]]:
    return read(path, case_of)


def append(path: Path, case: Case, **outcome: Any) -> list[dict[str, Any]]:
    return append_records(path, [{**asdict(case), "status": "ok", **outcome}])


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "records.jsonl"
    written = append(path, CASE, auroc=np.float64(0.1 + 0.2), config={"hidden": (8, 4)})
    written += append(path, OTHER, status="error", message="no\nluck")
    assert read_records(path) == written
    assert written[0]["auroc"] == 0.1 + 0.2
    assert written[0]["config"] == {"hidden": [8, 4]}
    assert list(latest(written, case_of)) == [CASE, OTHER]
    assert len(path.read_text().splitlines()) == 2


def test_the_last_record_of_a_case_counts(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    for auroc in (0.5, 0.9):
        append(path, CASE, auroc=auroc)
    assert latest(read_records(path), case_of)[CASE]["auroc"] == 0.9


def test_a_torn_line_is_left_out_and_then_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    append(path, CASE)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:20])
    with pytest.warns(AloofWarning, match=r"last line of .*records.jsonl is cut off"):
        assert len(read_records(path)) == 1
    append(path, OTHER)
    assert [record["method"] for record in read_records(path)] == ["dp", "knn"]


def test_a_whole_record_without_an_end_of_line_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    append(path, CASE)
    path.write_bytes(path.read_bytes().rstrip())
    assert [record["method"] for record in read_records(path)] == ["dp"]
    append(path, OTHER)
    assert [record["method"] for record in read_records(path)] == ["dp", "knn"]


def test_a_file_of_something_else_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text('{"dataset": "cardio"}\n')
    with pytest.raises(ExperimentError, match="not a record of this experiment: it lacks"):
        read_records(path)
    for text in ("results\n", "3\n"):
        path.write_text(text)
        with pytest.raises(ExperimentError, match=r"Line 1 of .* not an aloof record"):
            read_records(path)
    path.write_bytes(b"\x80\n")
    with pytest.raises(ExperimentError, match="does not hold records"):
        read_records(path)


def test_a_figure_that_is_not_a_number_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with pytest.raises(ValueError, match="JSON"):
        append(path, CASE, auroc=float("nan"))
    assert read_records(path) == []


def test_the_configuration_of_every_peer_is_json() -> None:
    for name, factory in BASELINES.items():
        config = jsonable(factory(random_state=0).get_params(deep=False))
        assert json.loads(json.dumps(config)) == config, name
    hybrid = jsonable(BASELINES["oc-svm-hybrid"](random_state=0).get_params(deep=False))
    assert hybrid["detector"]["class"] == "OneClassSVM"
