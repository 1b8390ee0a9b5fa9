"""What the records say: a cell for each system and data set, and the best peer of each set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from aloof.bench.cells import Cell, gather
from aloof.bench.odds.specification import OddsSpecification, System
from aloof.bench.records import Record
from aloof.bench.statistics import Paired, paired

__all__ = ["Block", "Kind", "summarise"]

Kind = tuple[str, str]
"""A setting and a scaling: what systems are compared within."""


@dataclass(frozen=True, eq=False)
class Block:
    """The results under one condition.

    Attributes
    ----------
    spec
        What was run: systems are rows, data sets columns.
    gamma_l, gamma_p
        The condition.
    cells
        By system and data set; every pair is there.
    """

    spec: OddsSpecification
    gamma_l: float
    gamma_p: float
    cells: Mapping[tuple[System, str], Cell]

    @property
    def rows(self) -> list[System]:
        """Every system, ours first."""
        return sorted(self.spec.systems, key=lambda system: not system.ours)

    @cached_property
    def started(self) -> list[System]:
        """Those with a record of any set, be it of a failure."""
        cells, names = self.cells, self.spec.datasets
        return [s for s in self.rows if any(cells[s, name].records for name in names)]

    @cached_property
    def feasible(self) -> tuple[str, ...]:
        """The data sets with enough anomalies for the condition; means are over these."""
        systems = self.spec.systems
        return tuple(
            name
            for name in self.spec.datasets
            if not all(self.cells[system, name].infeasible for system in systems)
        )

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """What is never mixed: each setting with each scaling.

        Systems without a setting belong to all with their scaling.
        """
        found = dict.fromkeys((s.setting, s.scaling) for s in self.spec.systems)
        named = {scaling for setting, scaling in found if setting}
        return tuple(kind for kind in found if kind[0] or kind[1] not in named)

    @cached_property
    def best_peer(self) -> dict[Kind, dict[str, System]]:
        """By kind and data set, the peer with the best mean AUROC of those with every seed."""
        return {kind: self._best_peer(System("", kind[0], "", kind[1])) for kind in self.kinds}

    def kind_of(self, system: System) -> Kind:
        """Return what a system is compared within; without a setting, the first there is."""
        own = system.setting, system.scaling
        others = (kind for kind in self.kinds if kind[1] == system.scaling)
        return own if own in self.kinds else next(others)

    def ahead(self, system: System, name: str) -> Paired | None:
        """Return how far one of ours is ahead of the best peer of its kind on a data set."""
        own = self.cells[system, name].percent("auroc")
        if not system.ours or not own:
            return None
        peer = self.best_peer[self.kind_of(system)].get(name)
        return None if peer is None else paired(own, self.cells[peer, name].percent("auroc"))

    def _best_peer(self, one: System) -> dict[str, System]:
        best: dict[str, tuple[float, System]] = {}
        for (system, name), cell in self.cells.items():
            found = cell.moments("auroc")
            complete = found.n == self.spec.seeds
            if system.ours or system.unfair or not complete or not system.meets(one):
                continue
            if name not in best or found.mean > best[name][0]:
                best[name] = found.mean, system
        return {name: best[name][1] for name in self.spec.datasets if name in best}

    def overall(self, system: System, measure: str) -> float | None:
        """Return the mean over feasible data sets; None unless all have all seeds."""
        found = [self.cells[system, name].moments(measure) for name in self.feasible]
        if not found or any(cell.n < self.spec.seeds for cell in found):
            return None
        return float(np.mean([cell.mean for cell in found]))


def summarise(spec: OddsSpecification, records: Sequence[Record]) -> list[Block]:
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
        names=spec.datasets,
    )
    return [Block(spec, *condition, cells) for condition, cells in found]


def _place(record: Record) -> tuple[tuple[float, float], System, str]:
    scaling = record.get("scaling", "standard")
    system = System(record["method"], record["setting"], record["variant"], scaling)
    return (record["gamma_l"], record["gamma_p"]), system, record["dataset"]
