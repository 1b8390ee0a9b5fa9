"""Run a plan into a folder: what is already there is not run again.

The folder holds ``records.jsonl``, ``splits.json`` (every row number) and ``manifest.json``.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from aloof.exceptions import ExperimentError
from aloof.experiments.measure import Trial
from aloof.experiments.plan import Plan, what_counts
from aloof.experiments.protocol import split_record
from aloof.experiments.records import (
    Case,
    append_records,
    jsonable,
    latest,
    read_records,
    write_text,
)
from aloof.experiments.workers import Event, EventCallback, Job, execute
from aloof.persistence import versions
from aloof.training import resolve_device

__all__ = ["pending", "run_plan", "stored"]

_RECORDS, _SPLITS, _MANIFEST = "records.jsonl", "splits.json", "manifest.json"
_SPLIT_KEYS = ("dataset", "data_sha256", "gamma_l", "gamma_p", "seed")


def run_plan(
    plan: Plan,
    folder: Path,
    *,
    jobs: int = 1,
    device: str = "auto",
    command: str = "",
    on_event: EventCallback | None = None,
) -> list[Mapping[str, Any]]:
    """Run what the folder does not hold yet, and return the record of every case.

    All seeds of our methods on one data set are one stacked run with one warm-up; other
    systems run one by one. Cases that failed before are tried again. Whenever this is
    interrupted, the folder holds everything that was done, and calling it again does the rest.

    Parameters
    ----------
    plan
        What to run.
    folder
        Where results are and go.
    jobs
        Processes at the same time, each with one thread; 1: this process.
    device
        Where our methods train. On another device than the CPU they train in this process,
        one stack after the other.
    command
        What the user typed, for the manifest.
    on_event
        Called as things happen.

    Returns
    -------
    Records in the order of `Plan.cases`.
    """
    records = folder / _RECORDS
    on_event = on_event or _ignore
    started = time.monotonic()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = latest(read_records(records))
        _write_splits(plan, folder / _SPLITS)
    except OSError as error:
        raise ExperimentError(
            f"{folder} cannot be used for results: {error.strerror or error}."
        ) from error
    manifest = {
        "command": command,
        "experiment": asdict(plan.experiment),
        "started": _now(),
        "versions": versions(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "device": str(resolve_device(device)),
        "jobs": jobs,
        "data_sha256": {name: table.sha256 for name, table in plan.tables.items()},
    }
    _write_manifest(folder, manifest)
    _append_infeasible(plan, records, found)
    todo = pending(plan, found)
    on_event(Event("planned", "", len(todo)))
    here, there = _jobs(plan, todo, device)
    if resolve_device(device).type == "cpu":
        here, there = [], here + there
    for group, n_workers in ((here, 1), (there, jobs)):
        with closing(execute(group, n_workers=n_workers, on_event=on_event)) as results:  # type: ignore[type-var]
            for job, outcomes in results:
                items = [
                    (case, _complete(plan, case, outcome))
                    for case, outcome in zip(job.cases, outcomes, strict=True)
                ]
                found |= latest(append_records(records, items))
    done = {"finished": _now(), "seconds": time.monotonic() - started, "n_run": len(todo)}
    _write_manifest(folder, {**manifest, **done})
    return [found[case] for case in plan.cases]


def stored(plan: Plan, folder: Path) -> list[Mapping[str, Any]]:
    """Return the records of a plan's cases that a folder holds, and run nothing."""
    found = latest(read_records(folder / _RECORDS))
    missing = set(pending(plan, found))
    return [found[case] for case in plan.cases if case in found and case not in missing]


def pending(plan: Plan, found: Mapping[Case, Mapping[str, Any]]) -> list[Case]:
    """Return the cases that have no result with the same data, rows and configuration."""
    return [
        case
        for case in plan.cases
        if case.place in plan.splits and not _holds(plan, case, found.get(case))
    ]


def _holds(plan: Plan, case: Case, record: Mapping[str, Any] | None) -> bool:
    if record is None or record.get("status") != "ok":
        return False
    known = {**record, "config": what_counts(record.get("config", {}))}
    return all(known.get(key) == value for key, value in plan.identity(case).items())


def _jobs(plan: Plan, cases: Sequence[Case], device: str) -> tuple[list[Job], list[Job]]:
    """Return jobs of our methods, a stack each, and jobs of the others; large data first."""
    groups: dict[tuple[Any, ...], list[Case]] = {}
    for case in cases:
        key: tuple[Any, ...] = (case.dataset, case.gamma_l, case.gamma_p)
        # Our methods are fitted together: they share the warm-up.
        key += (case.setting, case.variant) if case.system.ours else (case.method, case.seed)
        groups.setdefault(key, []).append(case)
    ours: list[Job] = []
    others: list[Job] = []
    for group in groups.values():
        first = group[0]
        systems = dict.fromkeys(case.system.label for case in group)
        n_seeds = len(group) // len(systems)
        label = f"{first.dataset} {', '.join(systems)}"
        if len(plan.experiment.conditions) > 1:
            label += f", gamma_l {first.gamma_l:g}, gamma_p {first.gamma_p:g}"
        label += f", {n_seeds} seeds" if n_seeds > 1 else f", seed {first.seed}"
        job = Job(label, tuple(group), partial(_trials, plan, tuple(group), device))
        (ours if first.system.ours else others).append(job)
    for found in (ours, others):
        found.sort(key=lambda job: -len(plan.tables[job.cases[0].dataset].X))
    return ours, others


def _trials(plan: Plan, cases: Sequence[Case], device: str) -> list[Trial]:
    return [plan.trial(case, device=device) for case in cases]


def _complete(plan: Plan, case: Case, outcome: Mapping[str, Any]) -> dict[str, Any]:
    extra = {"versions": versions(), "finished": _now()}
    return {**outcome, **plan.identity(case), **extra}


def _append_infeasible(plan: Plan, records: Path, found: dict[Case, Mapping[str, Any]]) -> None:
    items = []
    for case in plan.cases:
        reason = plan.infeasible.get(case.place)
        known = found.get(case, {})
        if reason is not None and known.get("message") != f"infeasible: {reason}":
            outcome = {"status": "infeasible", "message": f"infeasible: {reason}"}
            items.append((case, {**outcome, "finished": _now()}))
    found |= latest(append_records(records, items))


def _write_splits(plan: Plan, path: Path) -> None:
    """Write the rows of every split, and keep those of earlier runs."""
    entries: dict[tuple[Any, ...], dict[str, Any]] = {}
    if path.exists():
        try:
            for entry in json.loads(path.read_text(encoding="utf-8")):
                entries[tuple(entry[key] for key in _SPLIT_KEYS)] = entry
        except (ValueError, KeyError, TypeError) as error:
            raise ExperimentError(
                f"{path} is not a file of splits. Remove it, or choose another folder."
            ) from error
    for (name, *_), split in plan.splits.items():
        sha256 = plan.tables[name].sha256
        entry = {"dataset": name, "data_sha256": sha256, **split_record(split)}
        entries[tuple(entry[key] for key in _SPLIT_KEYS)] = entry
    lines = ",\n".join(json.dumps(entry) for entry in entries.values())
    write_text(path, f"[\n{lines}\n]\n")


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_text(folder / _MANIFEST, json.dumps(jsonable(manifest), indent=2) + "\n")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _ignore(event: Event) -> None:
    pass
