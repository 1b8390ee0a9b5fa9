"""The tables of the planning study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from aloof.bench.planning.specification import PlanningSpecification
from aloof.bench.tables import Grid, Line
from aloof.planning import Estimate, estimate_mean, estimate_share

__all__ = ["csv_lines", "planning_grids", "plans_with"]

_COLUMNS = ("sampler", "world", "collision", "coverage", "n", "found", "cost", "seconds")


def planning_grids(
    spec: PlanningSpecification, records: Sequence[Mapping[str, Any]]
) -> list[Grid]:
    """Return tables: quality of the states, success, path cost and time of the planner."""
    labels = [sampler.label for sampler in spec.samplers]
    own = {label: [r for r in records if r["sampler"] == label] for label in labels}
    quality = tuple(
        (
            label,
            _percent(estimate_mean([r["collision"] for r in own[label]])),
            _percent(estimate_mean([r["coverage"] for r in own[label]])),
        )
        for label in labels
    )
    n = len(own[labels[0]])
    grids = [
        Grid(
            f"States, {n} unseen worlds",
            ("", "in collision (%)", "path covered (%)"),
            quality,
            notes=(
                f"Of {spec.n_states} states of the sampler alone. Covered: the share of "
                "the optimal path with a free state within half a cell.",
                "In brackets: 95 % confidence intervals over worlds. Means: of the network, "
                "without the noise of its likelihood. Screened: it draws again what its own "
                "anomaly score refuses.",
            ),
        )
    ]
    titles: dict[str, tuple[str, Callable[[list[dict[str, Any]]], str]]] = {
        "Success of PRM* (%)": (
            "Share of worlds with a path; states in collision count.",
            lambda plans: _percent(estimate_share([p["found"] for p in plans])),
        ),
        "Path cost": (
            "Length of the path found, the optimal one is 1; worlds with a path only.",
            lambda plans: _number(
                estimate_mean([p["cost"] for p in plans if "cost" in p]), ".3f"
            ),
        ),
        "Time (ms)": (
            "To draw the states and to plan.",
            lambda plans: _number(estimate_mean([1e3 * p["seconds"] for p in plans]), ".1f"),
        ),
    }
    for title, (note, text) in titles.items():
        rows = tuple(
            (label, *(text(plans_with(own[label], count)) for count in spec.counts))
            for label in labels
        )
        header = ("states", *map(str, spec.counts))
        mixed = f"Of learned states {100 * spec.learned:g} %, the rest uniform."
        grids.append(Grid(title, header, rows, notes=(note, mixed)))
    return grids


def csv_lines(records: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    """Yield a line for each sampler, world and number of states."""
    for record in records:
        for outcome in record["plans"]:
            both = {**record, **outcome}
            yield {name: both.get(name, "") for name in _COLUMNS}


def plans_with(records: Sequence[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return what a planner made of so many states, in all worlds of the records."""
    return [p for record in records for p in record["plans"] if p["n"] == count]


def _percent(estimate: Estimate) -> str:
    value, low, high = (100 * v for v in (estimate.value, estimate.low, estimate.high))
    return _number(Estimate(value, low, high, estimate.n), ".1f")


def _number(estimate: Estimate, form: str) -> str:
    if np.isnan(estimate.value):
        return ""
    low, high = format(estimate.low, form), format(estimate.high, form)
    return f"{format(estimate.value, form)} [{low}, {high}]"
