"""What is left to run: the cases that cells lack, and the commands that run them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from aloof.bench.paper.cells import PEER, Cell, Source, Want
from aloof.bench.paper.experiments import Experiment
from aloof.bench.paper.filling import Filling
from aloof.bench.paper.kinds import Fields
from aloof.bench.paper.results import Results
from aloof.bench.specification import several

__all__ = ["Bundle", "Reason", "Work", "bundles", "find_work"]

Reason = Literal["missing", "again", "published", "more"]
"""Why to run something: the cell is empty; its records are of an older revision; a peer was not
run as it was published; there are more problems in the paper."""


@dataclass(frozen=True, eq=False)
class Work:
    """Cases of one cell that are left to run.

    Attributes
    ----------
    cell
        One that they fill; the first, where several tables have it.
    want
        What they are.
    experiment
        Whose they are.
    cases
        Which.
    reason
        Why.
    rank
        The smaller, the more important.
    """

    cell: Cell
    want: Want
    experiment: Experiment
    cases: tuple[Fields, ...]
    reason: Reason
    rank: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Bundle:
    """Work that one command does.

    Attributes
    ----------
    experiment
        The file it is in.
    works
        In the order of importance.
    """

    experiment: Experiment
    works: tuple[Work, ...]

    @property
    def options(self) -> dict[str, tuple[Any, ...]]:
        """What the command is narrowed to."""
        kind = self.experiment.kind
        found: dict[str, tuple[Any, ...]] = {}
        for option, name in kind.options.items():
            values = {case[name]: None for work in self.works for case in work.cases}
            given = tuple(value for value in values if value != "")
            stretched = option in self.experiment.stretched
            known = getattr(self.experiment.spec, option)
            if given and (stretched or {*several(known)} != {*given}):
                found[option] = given
        return found

    @property
    def command(self) -> str:
        """What to type."""
        kind, path = self.experiment.kind, self.experiment.path
        parts = ["aloof", "bench", kind.name, "--experiment", path.as_posix()]
        for option, values in self.options.items():
            text = ",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in values)
            parts += [f"--{option.replace('_', '-')}", text]
        return shlex.join(parts)


def find_work(
    fillings: Iterable[Filling], results: Results, experiments: Sequence[Experiment]
) -> tuple[list[Work], list[Cell]]:
    """Return what is left to run, and the cells that no experiment fills.

    Parameters
    ----------
    fillings
        Of the cells to look at.
    results
        What is there.
    experiments
        What can be run.
    """
    finder = _Finder(results, experiments)
    for filling in fillings:
        if filling.cell.kind:
            finder.look(filling)
    return sorted(finder.found, key=lambda work: work.rank), finder.uncovered


@dataclass
class _Finder:
    results: Results
    experiments: Sequence[Experiment]
    found: list[Work] = field(default_factory=list)
    uncovered: list[Cell] = field(default_factory=list)
    _taken: set[tuple[str, Want, tuple[Any, ...]]] = field(default_factory=set)
    _stretched: list[Experiment] | None = None

    def look(self, filling: Filling) -> None:
        """Plan what a cell lacks."""
        cell, source = filling.cell, filling.source
        if filling.state == "filled" and source is not None:
            better = cell.sources[: cell.sources.index(source)]
            source = next(
                (other for other in better if self._covering(other, cell.needed)), source
            )
            if source is not filling.source:
                self._plan(cell, source, cell.needed, "published")
        else:
            reason: Reason = "again" if filling.state == "older" else "missing"
            source = self._start(cell, reason)
        if source is None:
            self.uncovered.append(cell)
        elif cell.whole > cell.needed:
            self._plan(cell, source, cell.whole, "more")

    def _start(self, cell: Cell, reason: Reason) -> Source | None:
        """Plan to fill a cell by the first source that can be run, and return that one."""
        for stretch in (False, True):
            for source in cell.sources:
                if self._covering(source, cell.needed, stretch=stretch):
                    self._plan(cell, source, cell.needed, reason, stretch=stretch)
                    return source
        return None

    def _covering(self, source: Source, n: int, *, stretch: bool = False) -> list[Experiment]:
        """Return experiments that have enough cases of a source, the smallest first."""
        if stretch and self._stretched is None:
            self._stretched = [experiment.stretch() for experiment in self.experiments]
        every = (self._stretched or []) if stretch else self.experiments
        fitting = [
            experiment
            for experiment in every
            if all(len(experiment.cases.get(want, ())) >= n for want in source.wants)
        ]
        return sorted(
            fitting,
            key=lambda e: (len(e.cases[source.wants[0]]), -len(e.cases)),
        )

    def _plan(
        self, cell: Cell, source: Source, n: int, reason: Reason, *, stretch: bool = False
    ) -> None:
        covering = self._covering(source, n, stretch=stretch)
        if not covering:
            return
        experiment = covering[0]
        kind = experiment.kind
        for want in source.wants:
            done = self.results.of(kind, want)
            cases = []
            for case in experiment.cases[want]:
                place = (kind.name, want, kind.replicate(case))
                entry = done.get(place[2])
                if place not in self._taken and (entry is None or entry.outdated):
                    self._taken.add(place)
                    cases.append(case)
            if cases:
                rank = _rank(cell, kind.dataset(want), kind.method(want), reason)
                work = Work(cell, want, experiment, tuple(cases), reason, rank)
                self.found.append(work)


def bundles(works: Sequence[Work]) -> list[Bundle]:
    """Put together what one command can do, in the order of importance."""
    together: dict[tuple[Any, ...], list[Work]] = {}
    for work in works:
        kind = work.experiment.kind
        setting = work.want[kind.key.index("setting")]
        key = (work.rank[0], work.experiment.name, setting, kind.on_gpu(work.want))
        together.setdefault(key, []).append(work)
    return [Bundle(own[0].experiment, tuple(own)) for own in together.values()]


# The order in which peers of the image tables are wanted; the rest follows.
_PEERS = (
    "deep-sad",
    "cae",
    "deep-svdd",
    "oc-svm-hybrid",
    "iforest-hybrid",
    "kde-hybrid",
    "ssad-hybrid",
    "classifier",
    "ss-dgm-m2",
    "ss-dgm-m1-m2",
    "ss-dgm",
)
_SETS = ("cifar10", "mnist", "fashion-mnist", "cats-vs-dogs")


def _rank(cell: Cell, dataset: str, method: str, reason: Reason) -> tuple[int, ...]:
    """Return how important it is that a cell gets filled."""
    plain = method.removesuffix("-unfair")
    peer = _PEERS.index(plain) if plain in _PEERS else len(_PEERS)
    ours = cell.setting != PEER
    late = cell.setting.startswith("paper") or reason == "published"
    number = _SETS.index(dataset) if dataset in _SETS else 0
    if cell.kind != "images":
        first = {"odds": 60, "text": 70, "planning": 80}[cell.kind]
        return first + 5 * (reason == "published"), number, peer
    if reason == "more":
        return 50 + 2 * ("ablation" in cell.table) + 5 * late, number, peer
    if cell.table == "ill-trained":
        return 0, 0, 0
    if late:
        return 40, number, not ours, peer
    if ours and cell.table not in ("cats-vs-dogs", "pollution"):
        return 5, number, 0
    if cell.table == "cats-vs-dogs":
        return 20, 0, peer
    if cell.table == "pollution":
        return (31 if dataset == "mnist" else 30), number, peer
    return 10 + number, 0, peer
