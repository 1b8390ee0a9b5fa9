"""A study: its cases, what a case depends on, what runs a group of cases, how its table looks.

Everything else, resuming, records, processes, tables on disk, is the same for all studies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import torch

from aloof.bench.identity import Identity
from aloof.bench.records import Record
from aloof.bench.specification import Specification
from aloof.bench.tables import Grid, Line
from aloof.training import EpochReport, ProgressCallback

__all__ = ["Group", "Outcome", "Study", "Tell", "Where", "Work", "epochs", "read_case"]

_C = TypeVar("_C")
Outcome = dict[str, Any]

Tell = Callable[[int, int, str], None]
"""Told how much is done, of how much, and of what (empty: of the group)."""

Work = Callable[[Tell], Iterable[Outcome]]
"""Runs a group: yields an outcome for each of its cases, in their order."""


def epochs(tell: Tell, what: str = "") -> ProgressCallback:
    """Return what tells of every epoch of a training."""

    def report(epoch: EpochReport) -> None:
        tell(epoch.epoch, epoch.max_epochs, what)

    return report


def read_case(case_type: type[Any], record: Record) -> Any:
    """Return the case of a record; what an older record lacks has its default.

    Parameters
    ----------
    case_type
        A dataclass.
    record
        As it was written: the fields of its case come before its `status`.

    Raises
    ------
    ValueError
        For a record of another kind of study, or of a version that tells cases apart by more
        than this one knows.
    """
    own = {field.name: field.default for field in fields(case_type)}
    lacking = [name for name in own if own[name] is MISSING and name not in record]
    if lacking:
        raise ValueError(f"it lacks {', '.join(lacking)}")
    first = takewhile(lambda name: name != "status", record) if "status" in record else ()
    if unknown := [name for name in first if name not in own]:
        raise ValueError(f"it has {', '.join(unknown)}, which this version does not know")
    return case_type(**{name: record[name] for name in own if name in record})


@dataclass(frozen=True)
class Where:
    """The place of a run.

    Attributes
    ----------
    device
        Where networks train.
    folder
        Where results are and go.
    jobs
        Processes at the same time.
    """

    device: torch.device
    folder: Path
    jobs: int = 1


@dataclass(frozen=True, eq=False)
class Group(Generic[_C]):
    """Cases that are run together.

    Attributes
    ----------
    label
        For people; unique.
    cases
        Whose outcomes come out.
    prepare
        Makes what is run for them; called when the group starts.
    here
        Whether it has to run in this process. The work of others must be picklable.
    """

    label: str
    cases: tuple[_C, ...]
    prepare: Callable[[], Work] = field(repr=False)
    here: bool = False


class Study(ABC, Generic[_C]):
    """What a benchmark has to say about itself; `aloof.bench.runner.run_study` runs it.

    Attributes
    ----------
    case_type
        A frozen dataclass: its fields are in every record and identify it.
    spec
        The specification it was made from.
    cases
        In the order of the tables.
    """

    case_type: ClassVar[type]
    spec: Specification
    cases: Sequence[_C]

    def case_of(self, record: Record) -> _C:
        """Return what a record is about; see `read_case`."""
        case: _C = read_case(self.case_type, record)
        return case

    def infeasible(self, case: _C) -> str | None:
        """Return why a case cannot be; None: it can."""
        return None

    @abstractmethod
    def identity(self, case: _C) -> Identity:
        """Return what the result of a case depends on."""

    @abstractmethod
    def groups(self, cases: Sequence[_C], where: Where) -> Iterable[Group[_C]]:
        """Return what is run together, in the order to start it."""

    def prepare(self, folder: Path) -> None:
        """Write what the folder holds beside records."""
        return None

    def manifest(self) -> Mapping[str, Any]:
        """Return what the manifest says beside what all say."""
        return {}

    @property
    def title(self) -> str:
        """Above the tables."""
        return self.spec.title

    @abstractmethod
    def grids(self, records: Sequence[Record]) -> list[Grid]:
        """Return the tables that people read."""

    @abstractmethod
    def lines(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return the lines of ``table.csv``."""

    def summary(self, records: Sequence[Record]) -> Iterable[Line]:
        """Return the lines of ``summary.csv``, where ``table.csv`` has single figures.

        A line has means with standard deviations and standard errors; see `summary_lines`.
        """
        return ()

    def details(self, records: Sequence[Record]) -> list[Grid]:
        """Return tables too long to be printed; they are written to ``details.md``."""
        return []

    def draw(self, records: Sequence[Record], folder: Path) -> None:
        """Draw pictures of the records into the folder, where a study has any."""
        return None

    def draw_models(self, where: Where) -> None:
        """Draw pictures that need the models of a run besides its records."""
        return None
