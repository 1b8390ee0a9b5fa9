"""Run a study into a folder: what is already there is not run again.

The folder holds ``records.jsonl``, ``manifest.json`` and what is made of the records.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from aloof.bench.deadline import Deadline
from aloof.bench.identity import jsonable
from aloof.bench.provenance import code_version, device_name, now, provenance
from aloof.bench.records import Record, append_records, good, latest, read_records
from aloof.bench.revisions import is_newer
from aloof.bench.study import Study, Where
from aloof.bench.tables import Grid, to_csv, to_markdown
from aloof.bench.workers import Event, execute
from aloof.exceptions import ExperimentError
from aloof.io import write_file
from aloof.persistence import versions
from aloof.phrases import count
from aloof.training import resolve_device

__all__ = ["MANIFEST", "RECORDS", "run_study", "stored", "write_tables"]

_C = TypeVar("_C")
RECORDS, MANIFEST = "records.jsonl", "manifest.json"


def run_study(
    study: Study[_C],
    folder: Path,
    *,
    jobs: int = 1,
    device: str = "auto",
    command: str = "",
    on_event: Callable[[Event], None] | None = None,
    deadline: Deadline | None = None,
    cluster: bool = False,
) -> list[Record]:
    """Run what the folder does not hold yet, and return the record of every case.

    Cases that failed before are tried again. Whenever this is interrupted, the folder holds
    everything that was done, and calling it again does the rest.

    Parameters
    ----------
    study
        What to run.
    folder
        Where results are and go.
    jobs
        Processes at the same time, each with one thread; 1: this process.
    device
        Where networks train. On another device than the CPU they train in this process.
    command
        What the user typed, for the manifest.
    on_event
        Called as things happen.
    deadline
        When to end, with what is done by then. What does not fit is not started.
    cluster
        Whether the processes are those of a Ray cluster.

    Returns
    -------
    Records in the order of the study's cases; with a deadline, of those that have one.
    """
    tell = on_event or _ignore
    where = Where(resolve_device(device), folder, jobs)
    started = time.monotonic()
    path = folder / RECORDS
    try:
        folder.mkdir(parents=True, exist_ok=True)
        records = read_records(path, study.case_of)
        _refuse_newer(records, path)
        found = latest(records, study.case_of)
        study.prepare(folder)
    except OSError as error:
        raise ExperimentError(
            f"Cannot use {folder} for results: {error.strerror or error}."
        ) from error
    manifest = {
        "command": command,
        "experiment": study.spec.model_dump(),
        "started": now(),
        **code_version(),
        "versions": versions(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "device": device_name(where.device),
        "jobs": jobs,
        **study.manifest(),
    }
    _write_manifest(folder, manifest)

    def write(case: _C, outcome: Mapping[str, Any], extra: Mapping[str, Any]) -> None:
        record = {**asdict(case), **outcome, **extra, **provenance()}  # type: ignore[call-overload]
        found.update(latest(append_records(path, [record]), study.case_of))

    todo = []
    for case in study.cases:
        reason = study.infeasible(case)
        if reason is None:
            if not study.identity(case).holds(found.get(case, _NOTHING)):
                todo.append(case)
        elif found.get(case, {}).get("message") != f"infeasible: {reason}":
            write(case, {"status": "infeasible", "message": f"infeasible: {reason}"}, {})
    tell(Event("planned", "", len(todo)))
    groups = list(study.groups(todo, where)) if todo else []
    n_run = 0
    running = execute(groups, n_workers=jobs, on_event=tell, deadline=deadline, cluster=cluster)
    with closing(running) as results:  # type: ignore[type-var]
        for case, outcome in results:
            made = {"status": "ok", "device": manifest["device"], **outcome}
            write(case, made, study.identity(case).record)
            n_run += 1
    done = {"finished": now(), "seconds": time.monotonic() - started, "n_run": n_run}
    _write_manifest(folder, {**manifest, **done})
    return [found[case] for case in study.cases if case in found]


def stored(study: Study[_C], folder: Path) -> list[Record]:
    """Return the records of a study that a folder holds, and run nothing.

    Those of an older revision of their system are among them: a table says how many.
    """
    found = latest(read_records(folder / RECORDS, study.case_of), study.case_of)
    return [found[case] for case in study.cases if case in found and _shown(study, case, found)]


def write_tables(
    study: Study[Any], records: list[Record], folder: Path, *, command: str = ""
) -> list[Grid]:
    """Write the tables of a study into a folder, and return them.

    ``table.md`` is for people, ``table.csv`` has every figure; ``summary.csv`` has their means
    where ``table.csv`` has none, ``details.md`` what is too long to be read at once.

    Parameters
    ----------
    study
        What was run.
    records
        One for each case.
    folder
        Where to.
    command
        How to make them again; said below the tables.
    """
    grids = study.grids(records)
    footer = _footer(study, records, command)
    write_file(
        folder / "table.md",
        to_markdown(grids, title=study.title, footer=footer),
        ExperimentError,
    )
    write_file(folder / "table.csv", to_csv(study.lines(records)), ExperimentError)
    if details := study.details(records):
        write_file(
            folder / "details.md",
            to_markdown(details, title=study.title, footer=footer),
            ExperimentError,
        )
    if summary := list(study.summary(records)):
        write_file(folder / "summary.csv", to_csv(summary), ExperimentError)
    return grids


_NOTHING: Record = {"status": "missing"}


def _refuse_newer(records: list[dict[str, Any]], path: Path) -> None:
    """Raise an error for records that would be hidden by older ones."""
    newer = [record for record in records if is_newer(record)]
    if newer:
        method = newer[0].get("method", "a system")
        raise ExperimentError(
            f"{path} has {count(len(newer), 'record')} from a newer version of aloof "
            f"(revision {newer[0]['revision']} of {method}). Update aloof, or choose another "
            "folder. Nothing was changed."
        )


def _shown(study: Study[_C], case: _C, found: Mapping[_C, Record]) -> bool:
    if study.infeasible(case) is not None:
        return True
    return study.identity(case).describes(found[case])


def _outdated(study: Study[Any], record: Record) -> bool:
    case = study.case_of(record)
    return study.infeasible(case) is None and study.identity(case).outdates(record)


def _footer(study: Study[Any], records: list[Record], command: str) -> str:
    """Say how tables can be made again, and what the records know of their making."""
    made = f"Made with `{command}`" if command else "Made"
    devices = ", ".join(sorted({str(r["device"]) for r in records if "device" in r}))
    days = [str(r["finished"])[:10] for r in records if "finished" in r]
    if devices:
        made += f"; records of {devices}"
    if days:
        made += f", the last of {max(days)}"
    dirty = sum(bool(r.get("dirty")) for r in records)
    nameless = sum("code" not in r for r in records)
    notes = [made + "."]
    if nameless:
        notes.append(f"{nameless} of {len(records)} records do not say which code made them.")
    if dirty:
        notes.append(f"{dirty} were made with changes that were not committed.")
    outdated = sum(_outdated(study, record) for record in good(records))
    if outdated:
        notes.append(
            f"{outdated} are of an older revision of their system: a run makes them again."
        )
    return " ".join(notes)


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_file(
        folder / MANIFEST, json.dumps(jsonable(manifest), indent=2) + "\n", ExperimentError
    )


def _ignore(event: Event) -> None:
    pass
