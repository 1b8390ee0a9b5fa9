from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from aloof.baselines import DeepSAD, IsolationForest
from aloof.bench import (
    read_split,
    run_study,
    runner,
    specify,
    splitting,
    trials,
    workers,
    write_tables,
)
from aloof.bench.deadline import Deadline
from aloof.bench.odds import OddsSpecification, OddsStudy, make_odds
from aloof.bench.provenance import device_of
from aloof.bench.records import read_records as read
from aloof.bench.study import Group, Where
from aloof.bench.workers import Event
from aloof.exceptions import ExperimentError

REAL = Path(os.environ.get("ALOOF_DATA") or Path(__file__).parents[3] / "shared" / "data")
real_data = pytest.mark.skipif(
    not (REAL / "odds").is_dir(), reason="no folder with real data; ALOOF_DATA can name one"
)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the jobs that are run in this process."""
    sizes: list[int] = []
    original = trials.measure

    def counted(trials: Any, tell: Any) -> Any:
        sizes.append(len(trials))
        return original(trials, tell)

    monkeypatch.setattr(splitting, "measure", counted)
    return sizes


def read_records(path: Path) -> list[dict[str, Any]]:
    return read(path, lambda record: record["method"])


def table(study: OddsStudy, records: Any, folder: Path) -> str:
    write_tables(study, records, folder)
    return (folder / "table.md").read_text() + (folder / "table.csv").read_text()


def test_seeds_of_networks_are_one_stack_and_equal_single_fits(
    study: Callable[..., OddsStudy], tmp_path: Path, measured: list[int]
) -> None:
    plan = study(methods=["dp", "good", "shallow"], seeds=3)
    records = run_study(plan, tmp_path / "out")
    assert sorted(measured) == [1, 1, 1, 3, 3]
    for case, record in zip(plan.cases, records, strict=True):
        assert plan.case_of(record) == case
        trial = plan.trial(case)
        scores = trial.detector.fit(trial.X, trial.y).anomaly_score(trial.X_test)
        assert record["auroc"] == pytest.approx(roc_auc_score(trial.y_test, scores), abs=2e-3)
        expected = average_precision_score(trial.y_test, scores)
        assert record["average_precision"] == pytest.approx(expected, abs=5e-3)
        assert record["stacked"] == (1 if case.method == "shallow" else 3)
        assert record["config"].get("max_epochs", 6) == 6
        assert record["n_labelled"] == 3
        assert record["peak_memory_mib"] > 10
        assert record["versions"]["aloof"]
        assert {"setting": "", "variant": ""}.items() <= record.items() or case.method == "dp"


def test_everybody_sees_the_recorded_rows(
    study: Callable[..., OddsStudy], tmp_path: Path
) -> None:
    plan = study(gamma_l=[0.0, 0.05], methods=["vae", "good"])
    records = run_study(plan, tmp_path)
    entries = json.loads((tmp_path / "splits.json").read_text())
    assert len(entries) == 4
    keys = ("dataset", "gamma_l", "gamma_p", "seed")
    digests = {tuple(entry[key] for key in keys): entry["sha256"] for entry in entries}
    for record in records:
        assert record["split_sha256"] == digests[tuple(record[key] for key in keys)]
    for entry in entries:
        sha256 = entry.pop("data_sha256")
        split = read_split({key: entry[key] for key in entry if key != "dataset"})
        table = plan.tables[entry["dataset"]]
        assert sha256 == table.sha256
        assert table.y[split.train_anomaly].all()


def test_what_is_done_is_not_run_again(
    study: Callable[..., OddsStudy], tmp_path: Path, measured: list[int]
) -> None:
    what = study()
    first = run_study(what, tmp_path)
    lines = (tmp_path / "records.jsonl").read_bytes()
    before = table(what, first, tmp_path)
    n_measured = len(measured)
    events: list[Event] = []
    second = run_study(what, tmp_path, on_event=events.append)
    assert len(measured) == n_measured
    assert [event.n_cases for event in events] == [0]
    assert second == first
    assert table(what, second, tmp_path) == before
    assert (tmp_path / "records.jsonl").read_bytes() == lines

    more = run_study(study(seeds=3), tmp_path)
    assert sum(measured[n_measured:]) == 3  # one more seed of each system
    assert [r for r in more if r["seed"] < 2] == first


def test_another_configuration_or_other_data_is_run_again(
    study: Callable[..., OddsStudy],
    tmp_path: Path,
    measured: list[int],
    registry: dict[str, Any],
) -> None:
    what = study(methods=["good", "poor"], seeds=1)
    first = run_study(what, tmp_path)
    registry["good"] = partial(registry["good"], beta_kl=0.5)
    second = run_study(what, tmp_path)
    assert measured == [1] * 3
    assert second[0]["config"]["beta_kl"] == 0.5
    assert second[1] == first[1]

    plan = what
    changed = {"many": replace(plan.tables["many"], sha256="f" * 64)}
    run_study(replace(plan, tables=changed), tmp_path)
    assert measured == [1] * 5


@pytest.mark.parametrize("stop_at", [0, 1, 2])
def test_an_interrupted_run_goes_on_to_the_same_table(
    study: Callable[..., OddsStudy],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop_at: int,
) -> None:
    what = study(methods=["vae", "dp", "good", "poor"])
    whole = table(what, _without_times(run_study(what, tmp_path / "a")), tmp_path)
    original, calls = trials.measure, []

    def stopping(trials: Any, tell: Any) -> Any:
        if len(calls) == stop_at:
            raise KeyboardInterrupt
        calls.append(len(trials))
        return original(trials, tell)

    monkeypatch.setattr(splitting, "measure", stopping)
    with pytest.raises(KeyboardInterrupt):
        run_study(what, tmp_path / "b")
    done = read_records(tmp_path / "b" / "records.jsonl")
    assert len(done) == sum(calls)
    monkeypatch.setattr(splitting, "measure", original)
    records = run_study(what, tmp_path / "b")
    assert [r for r in records if r in done] == sorted(done, key=records.index)
    assert len(read_records(tmp_path / "b" / "records.jsonl")) == len(records)
    assert table(what, _without_times(records), tmp_path) == whole


def _without_times(records: Any) -> list[dict[str, Any]]:
    return [{**record, "fit_seconds": 0.0} for record in records]


def test_a_failing_system_is_a_record_and_is_tried_again(
    study: Callable[..., OddsStudy],
    tmp_path: Path,
    registry: dict[str, Any],
    measured: list[int],
) -> None:
    what = study(methods=["vae", "broken", "good"])
    events: list[Event] = []
    records = run_study(what, tmp_path, on_event=events.append)
    states = {record["method"]: record["status"] for record in records}
    assert states == {"vae": "ok", "broken": "error", "good": "ok"}
    assert "auroc" not in records[2]
    assert "n_members" in records[2]["message"]
    assert any("n_members" in error for event in events for error in event.errors)
    text = table(what, records, tmp_path)
    assert "| broken |  |  |" in text
    assert "many, broken (2 seeds): ValueError: The 'n_members' parameter" in text

    registry["broken"] = registry["poor"]
    measured.clear()
    records = run_study(what, tmp_path)
    assert measured == [2]
    assert {record["status"] for record in records} == {"ok"}


def test_one_bad_seed_does_not_spoil_its_stack(
    study: Callable[..., OddsStudy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = trials.fit_many

    def failing(detectors: Any, data: Any, **keywords: Any) -> None:
        if any(detector.random_state == 1 for detector in detectors):
            raise RuntimeError("seed 1 diverged")
        original(detectors, data, **keywords)

    monkeypatch.setattr(trials, "fit_many", failing)
    what = study(methods=["dp"], seeds=3)
    records = run_study(what, tmp_path)
    assert [record["status"] for record in records] == ["ok", "error", "ok"]
    assert records[1]["message"] == "RuntimeError: seed 1 diverged"
    assert "(2 of 3 seeds)" in table(what, records, tmp_path)


def test_too_few_anomalies_leave_a_cell_empty_and_say_why(
    study: Callable[..., OddsStudy], tmp_path: Path, measured: list[int]
) -> None:
    what = study(datasets=["few", "many"], methods=["vae", "good"], gamma_l=0.1)
    records = run_study(what, tmp_path)
    few = [record for record in records if record["dataset"] == "few"]
    assert {record["status"] for record in few} == {"infeasible"}
    assert few[0]["message"].startswith("infeasible: gamma_l = 0.1 asks for 7 labelled")
    assert "have only 2 anomalies" in few[0]["message"]
    assert sum(measured) == 4
    text = table(what, records, tmp_path)
    assert "| vae (ours, short) |  | " in text
    assert "- few: infeasible: gamma_l = 0.1 asks for 7" in text
    assert "that have enough anomalies (many)" in text
    n_lines = len(read_records(tmp_path / "records.jsonl"))
    run_study(what, tmp_path)
    assert len(read_records(tmp_path / "records.jsonl")) == n_lines
    what.draw(records, tmp_path)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")

    with pytest.raises(ExperimentError, match=r"None of this can run\. few: gamma_l"):
        study(datasets=["few"], gamma_l=0.1)


def test_warnings_of_a_method_are_kept_with_its_record(
    study: Callable[..., OddsStudy], tmp_path: Path
) -> None:
    records = run_study(study(methods=["dp"], gamma_l=0.0, seeds=1), tmp_path)
    assert (
        "LabelWarning: DualPriorVAE was given no labelled anomalies"
        in records[0]["warnings"][0]
    )


def test_processes_give_what_one_process_gives(
    study: Callable[..., OddsStudy], tmp_path: Path
) -> None:
    what = study(methods=["vae", "dp", "good", "broken"])
    alone = run_study(what, tmp_path / "a")
    events: list[Event] = []
    together = run_study(what, tmp_path / "b", jobs=2, on_event=events.append)
    for one, other in zip(alone, together, strict=True):
        assert one["status"] == other["status"]
        assert one["config"] == other["config"]
        if one["status"] == "ok":
            assert one["auroc"] == pytest.approx(other["auroc"], abs=2e-3)
    assert any(event.kind == "step" and event.total == 6 for event in events)
    assert sum(event.n_cases for event in events if event.kind == "finished") == 8


class MortalPool:
    """A pool whose worker dies of the system "poor", and takes what runs beside it along."""

    def __init__(self, *_: Any) -> None:
        self.dead = False

    def submit(self, run: Any, label: str, work: Any) -> Future[Any]:
        if self.dead:
            raise BrokenProcessPool
        future: Future[Any] = Future()
        self.dead = "poor" in label
        if self.dead:
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(run(label, work))
        return future

    def shutdown(self, **_: Any) -> None:
        pass


def test_a_dead_worker_costs_only_what_killed_it(
    study: Callable[..., OddsStudy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "ProcessPoolExecutor", MortalPool)
    what = study(methods=["vae", "poor", "good"])
    records = run_study(what, tmp_path, jobs=2)
    states = [record["status"] for record in records]
    assert states == ["ok", "ok", "error", "error", "ok", "ok"]
    assert "killed" in records[2]["message"]
    assert len(read_records(tmp_path / "records.jsonl")) == 6


def test_on_another_device_stacks_run_one_after_the_other_in_this_process(
    study: Callable[..., OddsStudy],
    tmp_path: Path,
    measured: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = OddsStudy.trial
    monkeypatch.setattr(runner, "resolve_device", lambda _: torch.device("meta"))
    monkeypatch.setattr(OddsStudy, "trial", lambda self, case, device: original(self, case))
    what = study(methods=["vae", "dp"])
    records = run_study(what, tmp_path, jobs=2)
    assert measured == [4]
    assert {record["status"] for record in records} == {"ok"}


def test_deep_peers_train_where_networks_train(
    study: Callable[..., OddsStudy], registry: dict[str, Any], tmp_path: Path
) -> None:
    registry["deep-sad"] = partial(DeepSAD, max_epochs=1, pretrain_epochs=1)
    registry["iforest"] = IsolationForest
    what = study(methods=["deep-sad", "iforest"], seeds=1)
    deep, _ = what.cases
    assert what.trial(deep, device="cuda:3").detector.device == "cuda:3"
    there = Where(torch.device("meta"), tmp_path, 2)
    assert [group.here for group in what.groups(what.cases, there)] == [True, False]
    here = Where(torch.device("cpu"), tmp_path, 2)
    assert [group.here for group in what.groups(what.cases, here)] == [False, False]
    (outcome,) = trials.measure([what.trial(deep, device="cpu")], lambda *_: None)
    assert outcome["device"] == "cpu"
    assert device_of(SimpleNamespace(device_="meta")) == "meta"
    assert device_of(IsolationForest()) == "cpu"


def test_a_folder_that_cannot_be_used(study: Callable[..., OddsStudy], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match="for results"):
        run_study(study(), tmp_path / "file" / "out")
    (tmp_path / "splits.json").write_text("{}x")
    with pytest.raises(ExperimentError, match="not a file of splits"):
        run_study(study(), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"revision": 99}, "1 record from a newer version of aloof .revision 99 of vae"),
        ({"shape": "round"}, "it has shape, which this version does not know"),
        ({"seed": ...}, "it lacks seed"),
    ],
)
def test_records_of_another_version_are_left_alone(
    study: Callable[..., OddsStudy], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    what = study(methods=["vae"], seeds=1)
    (record,) = run_study(what, tmp_path)
    path = tmp_path / "records.jsonl"
    changed = {**change, **record} if "shape" in change else {**record, **change}
    path.write_text(json.dumps({k: v for k, v in changed.items() if v is not ...}) + "\n")
    before = path.read_bytes()
    with pytest.raises(ExperimentError, match=message) as caught:
        run_study(what, tmp_path)
    assert "Nothing was changed." in str(caught.value)
    assert path.read_bytes() == before


class Ticks:
    """A clock that each look moves by a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_what_does_not_fit_is_not_started(
    study: Callable[..., OddsStudy], tmp_path: Path, measured: list[int]
) -> None:
    what = study(methods=["vae", "shallow"], seeds=2)  # a stack of two, and two alone
    events: list[Event] = []
    deadline = Deadline(1000, lambda cases: 2000 if len(cases) > 1 else 10)
    records = run_study(what, tmp_path, on_event=events.append, deadline=deadline)
    assert [record["method"] for record in records] == ["shallow", "shallow"]
    assert measured == [1, 1]
    (left,) = (event for event in events if event.kind == "left")
    assert (left.n_cases, left.group.endswith("2 seeds")) == (2, True)
    assert json.loads((tmp_path / "manifest.json").read_text())["n_run"] == 2

    rest = run_study(what, tmp_path)
    assert measured == [1, 1, 2]
    assert [r for r in rest if r["method"] == "shallow"] == records


def test_a_deadline_stops_what_is_running_and_keeps_what_is_done(
    study: Callable[..., OddsStudy], tmp_path: Path
) -> None:
    what = study(methods=["dp", "good"], seeds=2)
    events: list[Event] = []
    soon = Deadline(5, clock=Ticks())  # over after some of the six epochs of the stack
    records = run_study(what, tmp_path, on_event=events.append, deadline=soon)
    assert records == []  # no error either
    steps = [event for event in events if event.kind == "step"]
    assert 0 < len(steps) < 6
    assert sum(event.n_cases for event in events if event.kind == "left") == 4
    assert not (tmp_path / "records.jsonl").exists()

    late = Deadline(8, clock=Ticks())  # over when the stack is scored, before the others
    records = run_study(what, tmp_path, deadline=late)
    assert [record["method"] for record in records] == ["dp", "dp"]
    assert len(run_study(what, tmp_path)) == 4


def test_what_a_group_has_told_when_time_is_up_is_kept() -> None:
    def work(tell: Any) -> Any:
        for case in (1, 2, 3):
            yield {"status": "ok", "case": case}
            tell(case, 3, "scoring")

    for seconds, told, end in ((3, 2, ("left", 1)), (4, 3, ("finished", 3))):
        events: list[Event] = []
        group = Group("one", (1, 2, 3), lambda: work)
        soon = Deadline(seconds, clock=Ticks())
        results = workers.execute([group], n_workers=1, on_event=events.append, deadline=soon)
        assert [case for case, _ in results] == [1, 2, 3][:told]
        assert sum(event.kind == "outcome" for event in events) == told
        assert (events[-1].kind, events[-1].n_cases) == end


def test_a_deadline_ends_a_step_that_never_asks() -> None:
    def work(tell: Any) -> Any:
        yield {"status": "ok"}
        for _ in range(3000):  # as long as an epoch of a large network
            time.sleep(0.01)
        yield {"status": "ok"}

    before = signal.getsignal(signal.SIGALRM)
    events: list[Event] = []
    started = time.monotonic()
    results = []
    for result in workers.execute(
        [Group("one", (1, 2), lambda: work)],
        n_workers=1,
        on_event=events.append,
        deadline=Deadline(0.2, grace=0.1),
    ):
        time.sleep(0.6)  # writing it down takes longer than there is time, and is not cut short
        results.append(result)
    assert [case for case, _ in results] == [1]
    assert time.monotonic() - started < 20
    assert (events[-1].kind, events[-1].n_cases) == ("left", 1)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_deadline_ends_workers(study: Callable[..., OddsStudy], tmp_path: Path) -> None:
    sizes = {"n_members": 2, "hidden": [8], "latent_dim": 3}
    long = {"name": "long", "parameters": {**sizes, "max_epochs": 100_000}}
    what = study(methods=["dp"], seeds=1, variants=[long])
    events: list[Event] = []
    started = time.monotonic()
    records = run_study(what, tmp_path, jobs=2, on_event=events.append, deadline=Deadline(3.0))
    assert records == []
    assert time.monotonic() - started < 60
    assert [event.kind for event in events if event.kind != "step"] == [
        *("planned", "started", "left")
    ]


@real_data
def test_labelled_anomalies_help_on_cardio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slice of the benchmark with floors that a broken objective would miss."""
    monkeypatch.setenv("ALOOF_DATA", str(REAL))
    few = {"name": "short", "parameters": {"n_members": 2, "max_epochs": 50}}
    options = {"datasets": "cardio", "methods": ["vae", "dp"], "seeds": 2, "variants": [few]}
    records = run_study(make_odds(specify(OddsSpecification, options)), tmp_path)
    auroc = {
        method: np.array([r["auroc"] for r in records if r["method"] == method])
        for method in ("vae", "dp")
    }
    precision = np.mean([r["average_precision"] for r in records if r["method"] == "dp"])
    assert (auroc["dp"] > 0.95).all()
    assert (auroc["dp"] > auroc["vae"]).all()
    assert auroc["dp"].mean() > auroc["vae"].mean() + 0.01
    assert precision > 0.75
