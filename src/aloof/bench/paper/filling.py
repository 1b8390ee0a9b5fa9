"""What the records say of a cell: its figure, how much of it there is, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Literal

from aloof.bench.paper.cells import Cell, Source
from aloof.bench.paper.kinds import KINDS
from aloof.bench.paper.results import Entry, Results
from aloof.bench.statistics import Moments, moments

__all__ = ["Filling", "State", "fill"]

State = Literal["filled", "older", "partial", "missing"]
"""Filled by records of today's systems, or of older revisions; by too few; by none."""


@dataclass(frozen=True)
class Filling:
    """A cell and what fills it.

    Attributes
    ----------
    cell
        Which.
    source
        Which of its sources; None: there is no record of any.
    state
        See `State`.
    values
        A figure for each problem, seed or run, in percent; none of pictures.
    problems
        Which problem, seed or run each figure is of.
    n
        How many records of the source there are, of the rarest of what is wanted.
    """

    cell: Cell
    source: Source | None
    state: State
    values: tuple[float, ...]
    problems: tuple[object, ...]
    n: int

    @property
    def moments(self) -> Moments:
        """The figure."""
        return moments(self.values)

    @property
    def difference(self) -> float | None:
        """The figure less the paper's; None where one of them is missing."""
        if self.cell.mean is None or not self.values:
            return None
        return self.moments.mean - self.cell.mean

    @property
    def error(self) -> float | None:
        """The standard error of the difference, both taken as samples of their own.

        None where one of them has no spread.
        """
        if self.cell.std is None or self.difference is None or len(self.values) < 2:
            return None
        theirs = self.cell.std**2 / (self.cell.whole * len(self.cell.sources[0].wants))
        return sqrt(self.moments.sem**2 + theirs)


def fill(cell: Cell, results: Results) -> Filling:
    """Return what fills a cell: the first source with enough records, else the best one."""
    tried = [_try(cell, source, results) for source in cell.sources]
    order = ("filled", "older", "partial", "missing")
    return min(tried, key=lambda f: (order.index(f.state), -f.n if f.state == "partial" else 0))


def _try(cell: Cell, source: Source, results: Results) -> Filling:
    current: list[dict[object, float]] = []
    every: list[dict[object, float]] = []
    for want in source.wants:
        entries = results.of(cell.kind, want)
        every.append(_values(cell, entries.items()))
        young = ((k, entry) for k, entry in entries.items() if not entry.outdated)
        current.append(_values(cell, young))
    state: State
    for state, found in (("filled", current), ("older", every)):
        if min(map(len, found)) >= cell.needed:
            return _filling(cell, source, state, found)
    state = "partial" if any(every) else "missing"
    return _filling(cell, source if any(every) else None, state, every)


def _filling(
    cell: Cell, source: Source | None, state: State, found: list[dict[object, float]]
) -> Filling:
    by_problem = {
        (number, problem): value
        for number, own in enumerate(found)
        for problem, value in own.items()
    }
    values, problems = tuple(by_problem.values()), tuple(by_problem)
    return Filling(cell, source, state, values, problems, min(map(len, found)))


def _values(cell: Cell, entries: Iterable[tuple[object, Entry]]) -> dict[object, float]:
    found = {}
    for replicate, entry in entries:
        value = KINDS[cell.kind].value(entry.record, cell.members) if cell.kind else 0.0
        if value is not None:
            found[replicate] = value
    return found
