"""What the records say: means, and paired tests against the best peer of each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.bench.odds.specification import OddsSpecification, System
from aloof.bench.statistics import Paired, paired

__all__ = ["Block", "Cell", "Comparison", "overall_mean", "summarise"]


@dataclass(frozen=True, eq=False)
class Cell:
    """One system on one data set; values are shares, not percent, in the order of `seeds`.

    Attributes
    ----------
    seeds
        Those with a result.
    auroc, average_precision, fit_seconds
        One value for each.
    failures
        Why there is no result, for seeds that have none.
    """

    seeds: tuple[int, ...]
    auroc: NDArray[np.float64]
    average_precision: NDArray[np.float64]
    fit_seconds: NDArray[np.float64]
    failures: Mapping[int, str]

    @property
    def by_seed(self) -> dict[int, float]:
        """AUROC in percent, for each seed."""
        return dict(zip(self.seeds, (100 * self.auroc).tolist(), strict=True))


@dataclass(frozen=True)
class Comparison:
    """One of our systems against the best peer of a data set.

    Attributes
    ----------
    system, dataset, peer
        Who, where, and against whom.
    result
        Their difference in AUROC points on the same seeds.
    """

    system: System
    dataset: str
    peer: System
    result: Paired


@dataclass(frozen=True, eq=False)
class Block:
    """The results under one condition.

    Attributes
    ----------
    gamma_l, gamma_p
        The condition.
    systems, datasets
        Rows and columns.
    cells
        By system and data set; every pair is there.
    feasible
        The data sets that have enough anomalies for the condition; means are over these.
    best_peer
        By data set, the peer with the best mean AUROC among those with a result for every
        seed; only where there is one.
    comparisons
        Of each of our systems with these.
    """

    gamma_l: float
    gamma_p: float
    systems: tuple[System, ...]
    datasets: tuple[str, ...]
    cells: Mapping[tuple[System, str], Cell]
    feasible: tuple[str, ...]
    best_peer: Mapping[str, System]
    comparisons: tuple[Comparison, ...]


def summarise(
    spec: OddsSpecification, records: Sequence[Mapping[str, Any]]
) -> tuple[Block, ...]:
    """Gather records into a block for each condition.

    Parameters
    ----------
    spec
        What they are of; records of anything else are left out.
    records
        One for each case.
    """
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        if record["seed"] < spec.seeds:
            system = System(record["method"], record["setting"], record["variant"])
            key = (record["gamma_l"], record["gamma_p"], system, record["dataset"])
            found.setdefault(key, []).append(record)
    return tuple(_block(spec, found, *condition) for condition in spec.conditions)


def overall_mean(block: Block, system: System, measure: str, n_seeds: int) -> float | None:
    """Return the mean over feasible data sets; None unless all have all seeds."""
    cells = [block.cells[system, name] for name in block.feasible]
    if not cells or any(len(cell.seeds) < n_seeds for cell in cells):
        return None
    return float(np.mean([getattr(cell, measure).mean() for cell in cells]))


def _block(
    spec: OddsSpecification,
    found: Mapping[tuple[Any, ...], list[Mapping[str, Any]]],
    gamma_l: float,
    gamma_p: float,
) -> Block:
    systems, datasets = spec.systems, spec.datasets
    cells = {
        (system, name): _cell(found.get((gamma_l, gamma_p, system, name), []))
        for system in systems
        for name in datasets
    }
    best: dict[str, System] = {}
    for name in datasets:
        complete = [
            system
            for system in systems
            if not (system.ours or system.unfair)
            and len(cells[system, name].seeds) == spec.seeds
        ]
        if complete:
            best[name] = max(complete, key=lambda s: float(cells[s, name].auroc.mean()))
    comparisons = [
        Comparison(
            system, name, peer, paired(cells[system, name].by_seed, cells[peer, name].by_seed)
        )
        for system in systems
        for name, peer in best.items()
        if system.ours and cells[system, name].seeds
    ]
    feasible = tuple(
        name
        for name in datasets
        if not all(_is_infeasible(cells[system, name]) for system in systems)
    )
    return Block(gamma_l, gamma_p, systems, datasets, cells, feasible, best, tuple(comparisons))


def _is_infeasible(cell: Cell) -> bool:
    reasons = cell.failures.values()
    return bool(reasons) and all(reason.startswith("infeasible") for reason in reasons)


def _cell(records: Sequence[Mapping[str, Any]]) -> Cell:
    good = sorted((r for r in records if r["status"] == "ok"), key=lambda r: int(r["seed"]))
    return Cell(
        seeds=tuple(int(record["seed"]) for record in good),
        auroc=np.array([record["auroc"] for record in good]),
        average_precision=np.array([record["average_precision"] for record in good]),
        fit_seconds=np.array([record["fit_seconds"] for record in good]),
        failures={
            int(record["seed"]): str(record.get("message", record["status"]))
            for record in records
            if record["status"] != "ok"
        },
    )
