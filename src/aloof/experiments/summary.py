"""What the records say: means, and paired tests against the best peer of each data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from aloof.experiments.experiment import Experiment, System
from aloof.experiments.records import case_of

__all__ = ["Block", "Cell", "Comparison", "compare", "overall_mean", "summarise"]


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


@dataclass(frozen=True)
class Comparison:
    """One of our systems against the best peer of a data set.

    Attributes
    ----------
    system, dataset, peer
        Who, where, and against whom.
    difference
        Mean of our AUROC minus the peer's on the same seeds.
    p_value
        Of the paired t-test, two-sided; None with fewer than two seeds, or where all
        differences are equal.
    n
        Seeds.
    """

    system: System
    dataset: str
    peer: System
    difference: float
    p_value: float | None
    n: int


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
    experiment: Experiment, records: Sequence[Mapping[str, Any]]
) -> tuple[Block, ...]:
    """Gather records into a block for each condition.

    Parameters
    ----------
    experiment
        What they are of; records of anything else are left out.
    records
        One for each case.
    """
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for record in records:
        case = case_of(record)
        if case.seed < experiment.seeds:
            key = (case.gamma_l, case.gamma_p, case.system, case.dataset)
            found.setdefault(key, []).append(record)
    return tuple(_block(experiment, found, *condition) for condition in experiment.conditions)


def compare(ours: Cell, theirs: Cell) -> tuple[float, float | None, int]:
    """Return the mean difference in AUROC on common seeds, its p-value, and how many."""
    common = sorted(set(ours.seeds) & set(theirs.seeds))
    a = np.array([ours.auroc[ours.seeds.index(seed)] for seed in common])
    b = np.array([theirs.auroc[theirs.seeds.index(seed)] for seed in common])
    differences = a - b
    # Of equal differences the test statistic is infinite or undefined.
    if len(common) < 2 or np.ptp(differences) < 1e-12:
        return float(np.mean(differences)) if common else float("nan"), None, len(common)
    return float(np.mean(differences)), float(ttest_rel(a, b).pvalue), len(common)


def overall_mean(block: Block, system: System, measure: str, n_seeds: int) -> float | None:
    """Return the mean over feasible data sets; None unless all have all seeds."""
    cells = [block.cells[system, name] for name in block.feasible]
    if not cells or any(len(cell.seeds) < n_seeds for cell in cells):
        return None
    return float(np.mean([getattr(cell, measure).mean() for cell in cells]))


def _block(
    experiment: Experiment,
    found: Mapping[tuple[Any, ...], list[Mapping[str, Any]]],
    gamma_l: float,
    gamma_p: float,
) -> Block:
    systems, datasets = experiment.systems, experiment.datasets
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
            and len(cells[system, name].seeds) == experiment.seeds
        ]
        if complete:
            best[name] = max(complete, key=lambda s: float(cells[s, name].auroc.mean()))
    comparisons = [
        Comparison(system, name, best[name], *compare(cells[system, name], cells[peer, name]))
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
