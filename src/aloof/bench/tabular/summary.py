"""What the records say: means over the tasks that all systems have, ranks and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import rankdata

from aloof.bench.cells import Cell, gather
from aloof.bench.records import Record, good
from aloof.bench.statistics import Paired, moments, paired
from aloof.bench.tabular.protocols import Condition
from aloof.bench.tabular.specification import System, TablesSpecification

__all__ = ["Block", "shown_systems", "summarise"]


@dataclass(frozen=True, eq=False)
class Block:
    """The results under one condition.

    Attributes
    ----------
    spec
        What was run.
    condition
        Under which.
    cells
        By system and task; every pair is there.
    """

    spec: TablesSpecification
    condition: Condition
    cells: Mapping[tuple[System, str], Cell]

    @cached_property
    def n_tasks(self) -> dict[System, int]:
        """On how many tasks systems have a result; those without any are left out."""
        found = [system for (system, _), cell in self.cells.items() if good(cell.records)]
        return {system: found.count(system) for system in self.spec.systems if system in found}

    @cached_property
    def shown(self) -> tuple[System, ...]:
        """The systems with results on half of the tasks that another one has, or more.

        Others would keep most tasks out of the means of all.
        """
        most = max(self.n_tasks.values(), default=0)
        return tuple(system for system, n in self.n_tasks.items() if 2 * n >= most)

    @cached_property
    def seeds(self) -> frozenset[int]:
        """The seeds that means are over: those that all shown systems have.

        All of them where systems have none in common.
        """
        have = [
            {r["seed"] for task in self.spec.chosen for r in good(self.cells[s, task].records)}
            for s in self.shown
        ]
        common = set.intersection(*have) if have else set()
        return frozenset(common or range(self.spec.seeds))

    @cached_property
    def feasible(self) -> tuple[str, ...]:
        """The tasks whose tables allow a split for some seed, as far as records know."""
        return tuple(
            task
            for task in self.spec.chosen
            if not all(self.cells[system, task].infeasible for system in self.spec.systems)
        )

    @cached_property
    def common(self) -> tuple[str, ...]:
        """The tasks on which all shown systems have every seed that can be."""
        return tuple(
            task
            for task in self.feasible
            if self.shown and all(self._whole(system, task) for system in self.shown)
        )

    def lacking(self, system: System) -> list[str]:
        """Return the feasible tasks that a shown system keeps out of the means."""
        return [task for task in self.feasible if not self._whole(system, task)]

    def means(self, system: System, measure: str) -> dict[str, float]:
        """Return a measure in percent for each common task: the mean over seeds."""
        return {task: self._cell(system, task).moments(measure).mean for task in self.common}

    def mean(self, system: System, measure: str) -> float:
        """Return the mean over common tasks in percent; NaN where there is none."""
        if system not in self.shown:
            return float("nan")
        return moments(self.means(system, measure).values()).mean

    @cached_property
    def ranks(self) -> dict[System, float]:
        """The average rank by AUROC over common tasks, 1 the best; of fair systems."""
        fair = [system for system in self.shown if not system.unfair]
        if not fair or not self.common:
            return {}
        figures = np.array([[*self.means(system, "auroc").values()] for system in fair])
        ranks = rankdata(-np.round(figures, 9), axis=0).mean(1)
        return dict(zip(fair, ranks.tolist(), strict=True))

    @cached_property
    def wins(self) -> dict[System, int]:
        """On how many common tasks no fair system has a higher AUROC."""
        fair = [*self.ranks]
        if not fair:
            return {}
        figures = np.array([[*self.means(system, "auroc").values()] for system in fair])
        top = np.round(figures, 9) == np.round(figures, 9).max(0)
        return dict(zip(fair, top.sum(1).tolist(), strict=True))

    def ahead(self, system: System, measure: str) -> Paired:
        """Return how far a system is ahead of the reference, task by task."""
        reference = self.spec.reference
        if system == reference or system not in self.shown or reference not in self.shown:
            return paired({}, {})
        return paired(self.means(system, measure), self.means(reference, measure))

    def mean_of(self, system: System, field: str) -> float:
        """Return the mean over all records of a number that is no share; NaN without any."""
        found = [
            record[field]
            for task in self.common
            for record in good(self._cell(system, task).records)
            if record.get(field) is not None
        ]
        return moments(found).mean

    def _cell(self, system: System, task: str) -> Cell:
        """Return what the means are of."""
        records = self.cells[system, task].records
        return Cell([record for record in records if record["seed"] in self.seeds])

    def _whole(self, system: System, task: str) -> bool:
        cell = self._cell(system, task)
        bad = [reason for reason in cell.failures.values() if not _infeasible(reason)]
        return bool(good(cell.records)) and not bad and len(cell.records) == len(self.seeds)


def shown_systems(blocks: Sequence[Block]) -> list[System]:
    """Return the systems that some condition shows, in the order of tables."""
    shown = {system for block in blocks for system in block.shown}
    return [system for system in blocks[0].spec.systems if system in shown]


def summarise(spec: TablesSpecification, records: Sequence[Record]) -> list[Block]:
    """Gather records into a block for each condition.

    Parameters
    ----------
    spec
        What they are of; records of anything else are left out.
    records
        One for each case.
    """
    found = gather(
        records,
        _place,
        seeds=spec.seeds,
        conditions=spec.conditions,
        systems=spec.systems,
        names=spec.chosen,
    )
    return [Block(spec, condition, cells) for condition, cells in found]


def _place(record: Record) -> tuple[Condition, System, str]:
    condition = Condition(record["protocol"], record["labels"], record["hidden"])
    return condition, System(record["method"], record["variant"]), record["task"]


def _infeasible(reason: str) -> bool:
    return reason.startswith("infeasible")
