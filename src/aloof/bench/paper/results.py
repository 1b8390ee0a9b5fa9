"""What all folders of results hold, by cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from aloof.bench.identity import Identity
from aloof.bench.paper.cells import Want
from aloof.bench.paper.experiments import Experiment
from aloof.bench.paper.kinds import Fields, Kind
from aloof.bench.records import Record, read_records
from aloof.bench.revisions import is_newer
from aloof.bench.runner import RECORDS
from aloof.bench.study import read_case
from aloof.exceptions import ExperimentError
from aloof.phrases import count

__all__ = ["CUBO", "Entry", "Results", "Timing", "read_results"]

# A picture of an example; it has no record.
CUBO = "docs/pictures/cubo-1d.png"


@dataclass(frozen=True)
class Entry:
    """A record that can fill a cell.

    Attributes
    ----------
    record
        As it was written.
    outdated
        Whether its system has a newer revision: a run makes it again.
    """

    record: Record
    outdated: bool


@dataclass(frozen=True)
class Timing:
    """How long a record took.

    Attributes
    ----------
    experiment, want
        What it is of.
    seconds
        Its share.
    record
        The rest of what is known.
    """

    experiment: Experiment
    want: Want
    seconds: float
    record: Record


@dataclass
class Results:
    """Records of all experiments.

    Attributes
    ----------
    problems
        Why something was left out, a sentence each: nothing should be made of the rest.
    notes
        What else a reader should know, a sentence each.
    timings
        Of every record that has one.
    """

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    _entries: dict[tuple[str, Want], dict[tuple[Any, ...], Entry]] = field(default_factory=dict)

    def of(self, kind: Kind | str, want: Want) -> Mapping[tuple[Any, ...], Entry]:
        """Return the entries of a cell, by replicate."""
        name = kind if isinstance(kind, str) else kind.name
        return self._entries.get((name, want), {})

    def wants(self, kind: str) -> list[Want]:
        """Return everything that there are entries of."""
        return [want for name, want in self._entries if name == kind]

    def add(self, kind: str, want: Want, replicate: tuple[Any, ...], entry: Entry) -> None:
        """Add an entry, unless there is a better one: current, or else younger."""
        own = self._entries.setdefault((kind, want), {})
        if replicate not in own or _value(entry) >= _value(own[replicate]):
            own[replicate] = entry


def read_results(folder: Path, experiments: Iterable[Experiment]) -> Results:
    """Read the records of experiments, each from the folder that has its name.

    Records of errors, of another configuration than the experiment asks for, of a newer version
    or of another experiment fill nothing.

    Parameters
    ----------
    folder
        With the folders of experiments.
    experiments
        Whose results to read.
    """
    found = Results()
    for experiment in experiments:
        path = folder / experiment.name / RECORDS
        try:
            records = read_records(path, partial(read_case, experiment.kind.case_type))
        except ExperimentError as error:
            found.problems.append(str(error))
            continue
        _gather(found, experiment, path, records)
    _pictures(found, folder)
    return found


def _gather(
    found: Results, experiment: Experiment, path: Path, records: list[dict[str, Any]]
) -> None:
    kind = experiment.kind
    own, foreign, newer, other = [], 0, 0, 0
    for record in records:
        if not kind.belongs(experiment.spec, record):
            foreign += 1
        elif is_newer(record):
            newer += 1
        elif record.get("status", "ok") == "ok":
            own.append(record)
    check = _Check(experiment)
    for record, seconds in zip(own, kind.shares(own), strict=True):
        case = kind.fields(record)
        want = kind.want(case)
        if seconds is not None:
            found.timings.append(Timing(experiment, want, seconds, record))
        entry = check(record, case, want)
        if entry is None:
            other += 1
        else:
            found.add(kind.name, want, kind.replicate(case), entry)
    if foreign:
        found.problems.append(
            f"{path} holds {count(foreign, 'record')} of another experiment than "
            f"{experiment.path}. Move them to that experiment's folder."
        )
    if newer:
        found.problems.append(
            f"{path} holds {count(newer, 'record')} from a newer version of aloof. Update "
            "aloof."
        )
    if other:
        found.notes.append(
            f"{path} holds {count(other, 'record')} with another configuration than "
            f"{experiment.path} has now; they fill nothing."
        )


class _Check:
    """Whether records are what an experiment asks for; each configuration is looked at once."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._identities: dict[Want, Identity | None] = {}
        self._same: dict[tuple[Want, str], bool] = {}

    def __call__(self, record: Record, case: Fields, want: Want) -> Entry | None:
        """Return the entry of a record; None: it is of another configuration."""
        kind = self._experiment.kind
        own = *want, *(case[name] for name in kind.configured)
        if own not in self._identities:
            try:
                self._identities[own] = kind.identity(self._experiment.spec, case)
            except (LookupError, ValueError):  # nothing it knows
                self._identities[own] = Identity(None, revision=0)
        identity = self._identities[own]
        if identity is None:  # taken at its word
            return Entry(record, outdated=False)
        key = own, json.dumps(record.get("config"), sort_keys=True)
        if key not in self._same:
            self._same[key] = identity.describes(record)
        return Entry(record, identity.outdates(record)) if self._same[key] else None


def _pictures(found: Results, folder: Path) -> None:
    """Add pictures that other commands have drawn, with how they were made."""
    for path in sorted(folder.glob("figure1*/*.json")):
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            setting = str(record["setting"])
        except (OSError, ValueError, KeyError, TypeError):
            found.problems.append(f"{path} does not say how its picture was made.")
            continue
        if path.with_suffix(".png").is_file():
            found.add("", ("figure1", setting), (path.stem,), Entry(record, outdated=False))
    if (folder.parent / CUBO).is_file():
        found.add("", ("cubo",), (CUBO,), Entry({}, outdated=False))


def _value(entry: Entry) -> tuple[bool, str]:
    return not entry.outdated, str(entry.record.get("finished", ""))
