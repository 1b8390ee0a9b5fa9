"""Bring together results that several machines have made of the same experiments.

Nothing is replaced: a record is added behind those of the folder, or it is left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aloof.bench.records import Record, append_records, latest, read_records
from aloof.bench.revisions import is_newer
from aloof.bench.runner import MANIFEST, RECORDS
from aloof.exceptions import ExperimentError

__all__ = ["Merged", "find_results", "merge_results"]

_Case = tuple[tuple[str, str | bool], ...]


@dataclass(frozen=True)
class Merged:
    """What became of the records of one experiment.

    Attributes
    ----------
    name
        Of the experiment.
    n_added
        Records that the results did not have.
    n_left_out
        Records that they had, or had better.
    """

    name: str
    n_added: int
    n_left_out: int


def find_results(folder: Path, results: Path) -> list[tuple[str, Path]]:
    """Return the files with records below a folder, each with its experiment.

    That is the name of their folder, if `results` has such an experiment, or what their
    manifest says.

    Parameters
    ----------
    folder
        Of results, or of one experiment.
    results
        The folder of results they go to.
    """
    own = folder / RECORDS
    paths = [own] if own.is_file() else sorted(folder.glob(f"*/{RECORDS}"))
    if not paths:
        raise ExperimentError(
            f"{folder} has no results: neither {RECORDS} nor folders with one. Name the "
            "folder results of the other machine, or a folder inside of it."
        )
    return [(_experiment(path.resolve().parent, results), path) for path in paths]


def _experiment(folder: Path, results: Path) -> str:
    """Return which experiment of some results a folder holds."""
    if (results / folder.name).is_dir():
        return folder.name
    try:
        said = json.loads((folder / MANIFEST).read_text())["experiment"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return folder.name
    known = isinstance(said, str) and said == Path(said).name and (results / said).is_dir()
    return said if known else folder.name


def merge_results(sources: Sequence[Path], results: Path) -> list[Merged]:
    """Add what other machines have run, and return what was added to which experiment.

    A case that was run here and there keeps the record of the later run, except that one
    with an error never takes the place of one without. Merging again changes nothing.
    Everything is read and checked before anything is written.

    Parameters
    ----------
    sources
        Folders of results, or of single experiments, from other machines.
    results
        The folder of results they go to.
    """
    plans: dict[str, _Plan] = {}
    for source in sources:
        for name, path in find_results(source, results):
            target = results / name / RECORDS
            if path.resolve() == target.resolve():
                raise ExperimentError(f"{path} cannot be merged with itself.")
            plan = plans.setdefault(name, _Plan(target))
            plan.take(path)
    for plan in plans.values():
        if plan.added:
            append_records(plan.target, plan.added)
    return [
        Merged(name, len(plan.added), plan.n_left_out) for name, plan in sorted(plans.items())
    ]


class _Plan:
    """What is to be added to one file."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.added: list[Record] = []
        self.n_left_out = 0
        own = read_records(target, _case_of)
        self._found = latest(own, _case_of)

    def take(self, path: Path) -> None:
        """Add the records of a file that are better than those at hand."""
        records = read_records(path, _case_of)
        self._check(path, records)
        for case, record in latest(records, _case_of).items():
            if _better(record, self._found.get(case)):
                self._found[case] = record
                self.added.append(record)
            else:
                self.n_left_out += 1

    def _check(self, path: Path, records: Sequence[Record]) -> None:
        unknown = [case for case in latest(records, _case_of) if case not in self._found]
        if any(is_newer(record) for record in records):
            fault = f"{path} has records from a newer version of aloof. Update aloof."
        elif not all(map(_says_status, unknown)):
            fault = (
                f"{path} has records without a status: it is not from aloof, or from a "
                "version too old to be merged."
            )
        elif {_names(case) for case in unknown} - (self._kinds or set(map(_names, unknown))):
            fault = (
                f"{path} and {self.target} hold results of different experiments, or of "
                "different versions of aloof."
            )
        else:
            return
        raise ExperimentError(f"{fault} Nothing was changed.")

    @property
    def _kinds(self) -> set[tuple[str, ...]]:
        """The names of the fields that tell the cases at hand apart."""
        return {_names(case) for case in self._found if _says_status(case)}


def _case_of(record: Record) -> _Case:
    """Return the fields that say what was run: those before the status.

    Old records without a status have themselves: they can be recognised, and no more.
    """
    names = list(record)
    end = names.index("status") if "status" in record else len(names)
    return (
        ("status", "status" in record),
        *((name, json.dumps(record[name])) for name in names[:end]),
    )


def _says_status(case: _Case) -> bool:
    return bool(case[0][1])


def _names(case: _Case) -> tuple[str, ...]:
    return tuple(name for name, _ in case)


def _better(record: Record, own: Record | None) -> bool:
    if own is None:
        return True
    failed, own_failed = (one.get("status") == "error" for one in (record, own))
    if failed != own_failed:
        return own_failed
    return bool(record.get("finished", "") > own.get("finished", ""))
