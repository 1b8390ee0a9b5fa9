"""How far the paper's tables are: filled, missing, and what it takes to fill them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from pathlib import Path
from typing import Any

from aloof.bench.paper.cells import PEER, TABLES, Cell, paper_cells
from aloof.bench.paper.experiments import Experiment, read_experiments
from aloof.bench.paper.filling import Filling, State, fill
from aloof.bench.paper.results import CUBO, Results, read_results
from aloof.bench.paper.speeds import DeviceKind, Estimate, Speeds
from aloof.bench.paper.work import Bundle, Work, bundles, find_work
from aloof.exceptions import ExperimentError
from aloof.suggestion import did_you_mean

__all__ = ["Picture", "Status", "TableStatus", "Task", "look", "name_cells"]

# What draws the pictures that no study fills.
_DRAWN = {
    "figure1": "aloof bench figure1 --setting {setting} --out results/figure1-{setting}",
    "cubo": f"python examples/plot_cubo_1d.py --out {CUBO}",
}


@dataclass(frozen=True)
class TableStatus:
    """How far one table is.

    Attributes
    ----------
    name, title
        Of the table.
    fillings
        Of its cells.
    """

    name: str
    title: str
    fillings: tuple[Filling, ...]

    def count(self, *states: State, settings: str = "") -> int:
        """Return how many cells are in some states; all: of any setting."""
        return sum(
            f.state in states and (not settings or f.cell.setting.startswith(settings))
            for f in self.fillings
        )

    def share(self, setting: str) -> str:
        """Return how many cells of a setting are filled, of how many."""
        own = [f for f in self.fillings if f.cell.setting.startswith(setting)]
        return f"{sum(f.state == 'filled' for f in own)} of {len(own)}" if own else ""

    @property
    def replicates(self) -> str:
        """Of filled cells, how many problems, seeds or runs they have, of how many."""
        found = Counter(
            (min(f.n, f.cell.whole), f.cell.whole)
            for f in self.fillings
            if f.state == "filled" and f.cell.kind in ("images", "odds", "text")
        )
        return ", ".join(
            f"{cells} with {n} of {whole}" for (n, whole), cells in sorted(found.items())
        )

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "table": self.name,
            "title": self.title,
            "cells": len(self.fillings),
            **{state: self.count(state) for state in ("filled", "older", "partial", "missing")},
            "settings": {
                name: {"filled": self.count("filled", settings=name), "cells": n}
                for name in ("ours", "paper", PEER)
                if (n := sum(f.cell.setting.startswith(name) for f in self.fillings))
            },
            "each_cell": [_cell_record(filling) for filling in self.fillings],
        }


@dataclass(frozen=True)
class Task:
    """A command and how long it takes.

    Attributes
    ----------
    bundle
        What it does.
    estimate
        How long that takes.
    """

    bundle: Bundle
    estimate: Estimate

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU is of use."""
        first = self.bundle.works[0]
        return first.experiment.kind.on_gpu(first.want)

    @property
    def n_cases(self) -> int:
        """What is run."""
        return sum(len(work.cases) for work in self.bundle.works)

    @property
    def cells(self) -> str:
        """The cells that it fills."""
        return name_cells(work.cell for work in self.bundle.works)

    @property
    def reasons(self) -> Mapping[str, int]:
        """Why, and for how many cells."""
        return Counter(work.reason for work in self.bundle.works)

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "command": self.bundle.command,
            "experiment": self.bundle.experiment.name,
            "reasons": dict(self.reasons),
            "cells": [work.cell.label for work in self.bundle.works],
            "cases": self.n_cases,
            "device": "gpu" if self.on_gpu else "cpu",
            "minutes": round(self.estimate.minutes, 2),
            "how": self.estimate.how,
        }


@dataclass(frozen=True)
class Picture:
    """A picture that is not there, and what draws it."""

    cell: Cell
    command: str


@dataclass(frozen=True, eq=False)
class Status:
    """How far everything is.

    Attributes
    ----------
    results, experiments
        What is there, and what can be run.
    fillings
        Of every cell that was asked for.
    works
        What is left, the most important first.
    uncovered
        Cells that no experiment fills.
    speeds
        Of the device.
    """

    results: Results
    experiments: tuple[Experiment, ...]
    fillings: tuple[Filling, ...]
    works: tuple[Work, ...]
    uncovered: tuple[Cell, ...]
    speeds: Speeds

    @property
    def tables(self) -> list[TableStatus]:
        """Each table with its cells."""
        found = []
        for name, title in TABLES.items():
            own = tuple(f for f in self.fillings if f.cell.table == name)
            if own:
                found.append(TableStatus(name, title, own))
        return found

    @cached_property
    def tasks(self) -> list[Task]:
        """The commands that fill what is missing."""
        return [Task(bundle, self.time(bundle.works)) for bundle in bundles(self.works)]

    @property
    def few(self) -> list[Filling]:
        """Filled cells of images with fewer problems than the paper's, each once."""
        different = {(f.cell.sources, f.cell.members): f for f in self.fillings}
        return [
            f
            for f in different.values()
            if f.state == "filled" and f.cell.kind == "images" and f.n < f.cell.whole
        ]

    @property
    def n_staying_few(self) -> int:
        """How many of these no experiment has all problems of."""
        more = {work.want for work in self.works if work.reason == "more"}
        return sum(
            not any(more.issuperset(source.wants) for source in f.cell.sources)
            for f in self.few
        )

    @property
    def pictures(self) -> list[Picture]:
        """Pictures that are not there."""
        return [
            Picture(f.cell, _DRAWN[f.cell.table].format(setting=f.cell.setting))
            for f in self.fillings
            if not f.cell.kind and f.state != "filled"
        ]

    def time(self, works: Sequence[Work]) -> Estimate:
        """Return how long work takes, run by one command."""
        times = (self.speeds.estimate(w.experiment, w.want, len(w.cases)) for w in works)
        return reduce(add, times, self.speeds.start)

    @property
    def record(self) -> dict[str, Any]:
        """The same as JSON."""
        states = Counter(filling.state for filling in self.fillings)
        return {
            "device": self.speeds.device,
            "cells": len(self.fillings),
            **{state: states[state] for state in ("filled", "older", "partial", "missing")},
            "minutes": {
                name: round(
                    sum(t.estimate.minutes for t in self.tasks if t.on_gpu == on_gpu), 1
                )
                for name, on_gpu in (("networks", True), ("shallow", False))
            },
            "tables": [table.record for table in self.tables],
            "work": [task.record for task in self.tasks],
            "pictures": [{"cell": p.cell.label, "command": p.command} for p in self.pictures],
            "few": {"cells": len(self.few), "staying": self.n_staying_few},
            "uncovered": [cell.label for cell in self.uncovered],
            "problems": self.results.problems,
            "notes": self.results.notes,
        }


def look(
    results: Path,
    experiments: Path,
    *,
    device: DeviceKind = "cpu",
    tables: Sequence[str] | None = None,
) -> Status:
    """Compare what there is with what is in the paper.

    Parameters
    ----------
    results
        With the folders of results; none need be there.
    experiments
        With the files of experiments.
    device
        Where the rest would run.
    tables
        By name; None: all.
    """
    for name in tables or ():
        if name not in TABLES:
            raise ExperimentError(f"There is no table {name!r}{did_you_mean(name, TABLES)}")
    files = read_experiments(experiments)
    found = read_results(results, files)
    cells = [c for c in paper_cells() if tables is None or c.table in tables]
    fillings = tuple(fill(cell, found) for cell in cells)
    works, uncovered = find_work(fillings, found, files)
    return Status(found, files, fillings, tuple(works), tuple(uncovered), Speeds(found, device))


def name_cells(cells: Iterable[Cell]) -> str:
    """Name cells, those of a system and a data set together."""
    together: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in cells:
        own = together.setdefault((cell.row, cell.setting, cell.dataset), {})
        own[cell.condition] = None
    found = []
    for (row, setting, dataset), conditions in together.items():
        name = row if setting == PEER else f"{row} ({setting})"
        found.append(" ".join(filter(None, (name, dataset, ", ".join(conditions)))))
    return "; ".join(found)


def _cell_record(filling: Filling) -> dict[str, Any]:
    cell, own = filling.cell, filling.moments
    return {
        "row": cell.row,
        "dataset": cell.dataset,
        "condition": cell.condition,
        "setting": cell.setting,
        "state": filling.state,
        "source": None if filling.source is None else filling.source.label,
        "n": filling.n,
        "needed": cell.needed,
        "whole": cell.whole,
        "paper": None if cell.mean is None else [cell.mean, cell.std],
        "found": [own.mean, own.std] if own.n > 1 else [own.mean] if own.n else None,
        "difference": filling.difference,
        "error": filling.error,
    }
