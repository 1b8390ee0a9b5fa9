"""The tables of the planning study."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from aloof.bench.methods import title_of
from aloof.bench.planning.specification import (
    KINDS,
    UNIFORM,
    PlanningSpecification,
    Sampler,
)
from aloof.bench.statistics import paired
from aloof.bench.tables import Grid, Line
from aloof.planning import Estimate, estimate_mean, estimate_share

__all__ = ["by_world", "csv_lines", "planning_grids", "plans_with", "system_label"]

_COLUMNS = (
    "setting",
    "sampler",
    "seed",
    "world",
    "collision",
    "coverage",
    "n",
    "found",
    "cost",
    "seconds",
)
_Records = Sequence[Mapping[str, Any]]
_Systems = dict[tuple[str, str], list[Mapping[str, Any]]]


def system_label(sampler: str, setting: str) -> str:
    """Return what a sampler is called in tables and pictures."""
    return f"{sampler} ({setting})" if setting else sampler


def planning_grids(spec: PlanningSpecification, records: _Records) -> list[Grid]:
    """Return tables: quality of the states, like with like, success, cost and time.

    Parameters
    ----------
    spec
        Whose order the rows have.
    records
        With all fields of their cases.
    """
    order = [(UNIFORM, "")]
    order += [(s.label, setting) for setting in spec.setting for s in spec.samplers[1:]]
    own: _Systems = {key: [] for key in order}
    for record in records:
        own[record["sampler"], record["setting"]].append(record)
    own = {key: found for key, found in own.items() if found}
    notes = [
        f"Of {spec.n_states} states of the sampler alone. Covered: the share of the optimal "
        "path with a free state within half a cell.",
        "Means: what the decoder says, as in the code the paper builds on. The others are "
        "drawn with the noise of the likelihood; screened: a network draws again what its own "
        "anomaly score refuses.",
        "In brackets: 95 % confidence intervals over worlds, for these networks; where there "
        "are several, a world's figure is their mean.",
    ]
    departures = spec.departures("paper") if "paper" in spec.setting else {}
    if departures:
        changed = ", ".join(f"{name} = {value}" for name, value in departures.items())
        notes.append(f"Not the paper's, in rows of the setting paper: {changed}.")
    n_worlds = len({record["world"] for record in records})
    quality = tuple(
        (
            system_label(*key),
            "" if key[0] == UNIFORM else str(_n_seeds(found)),
            _percent(estimate_mean(by_world(found, lambda r: [r["collision"]]))),
            _percent(estimate_mean(by_world(found, lambda r: [r["coverage"]]))),
        )
        for key, found in own.items()
    )
    return [
        Grid(
            f"States, {n_worlds} unseen worlds",
            ("", "networks", "in collision (%)", "path covered (%)"),
            quality,
            notes=tuple(notes),
        ),
        *_like_with_like(spec, own),
        *_plans(spec, own),
    ]


def _like_with_like(spec: PlanningSpecification, own: _Systems) -> list[Grid]:
    """Compare each method with the plain VAE: means with means, draws with draws."""
    rows = []
    for setting in spec.setting:
        for method in [method for method in spec.methods if method != "vae"]:
            for kind, how in KINDS.items():
                ours = own.get((Sampler(method, *how).label, setting))
                theirs = own.get((Sampler("vae", *how).label, setting))
                if ours and theirs:
                    name = system_label(f"{title_of(method)}, {kind}", setting)
                    rows.append((name, *_differences(spec, ours, theirs)))
    if not rows:
        return []
    found = (f"path found, {count} states" for count in spec.counts)
    notes = [
        "In percentage points: of means over the same worlds, less the VAE of the same seed.",
        "p: paired t-test over seeds. Networks of different seeds are independent of each "
        "other; the worlds are the same for all. Where there is one network of each method, "
        "there is no p, and nothing is known about other seeds.",
    ]
    title = "Like with like: a method less the plain VAE"
    header = ("", "in collision", "path covered", *found)
    return [Grid(title, header, tuple(rows), notes=tuple(notes))]


def _differences(
    spec: PlanningSpecification, ours: _Records, theirs: _Records
) -> tuple[str, ...]:
    measures: list[Callable[[Mapping[str, Any]], float]] = [
        lambda record: record["collision"],
        lambda record: record["coverage"],
        *(
            lambda record, count=count: plans_with([record], count)[0]["found"]
            for count in spec.counts
        ),
    ]
    common = {_place(r) for r in ours} & {_place(r) for r in theirs}
    both = [[r for r in some if _place(r) in common] for some in (ours, theirs)]
    return tuple(
        paired(*(_by_seed(some, measure) for some in both)).text for measure in measures
    )


def _plans(spec: PlanningSpecification, own: _Systems) -> list[Grid]:
    def success(records: _Records, count: int) -> str:
        found = by_world(records, lambda r: [p["found"] for p in plans_with([r], count)])
        # Of one network a world has a path or none; of several, a share of them has one.
        one = _n_seeds(records) == 1
        return _percent(estimate_share(found) if one else estimate_mean(found))

    def cost(records: _Records, count: int) -> str:
        found = by_world(
            records, lambda r: [p["cost"] for p in plans_with([r], count) if "cost" in p]
        )
        return _number(estimate_mean(found), ".3f")

    def milliseconds(records: _Records, count: int) -> str:
        found = by_world(records, lambda r: [p["seconds"] for p in plans_with([r], count)])
        return _number(estimate_mean([1e3 * value for value in found]), ".1f")

    titles = {
        "Success of PRM* (%)": (
            "Share of worlds with a path; states in collision count.",
            success,
        ),
        "Path cost": (
            "Length of the path found, the optimal one is 1; worlds with a path only.",
            cost,
        ),
        "Time (ms)": ("To draw the states and to plan.", milliseconds),
    }
    mixed = f"Of learned states {100 * spec.learned:g} %, the rest uniform."
    return [
        Grid(
            title,
            ("states", *map(str, spec.counts)),
            tuple(
                (system_label(*key), *(text(found, count) for count in spec.counts))
                for key, found in own.items()
            ),
            notes=(note, mixed),
        )
        for title, (note, text) in titles.items()
    ]


def csv_lines(records: _Records) -> Iterator[Line]:
    """Yield a line for each sampler, seed, world and number of states."""
    for record in records:
        for outcome in record["plans"]:
            both = {**record, **outcome}
            yield {name: both.get(name, "") for name in _COLUMNS}


def plans_with(records: _Records, count: int) -> list[dict[str, Any]]:
    """Return what a planner made of so many states, in all worlds of the records."""
    return [p for record in records for p in record["plans"] if p["n"] == count]


def _n_seeds(records: _Records) -> int:
    return len({record["seed"] for record in records})


def _place(record: Mapping[str, Any]) -> tuple[int, int]:
    return record["seed"], record["world"]


def by_world(
    records: _Records, values: Callable[[Mapping[str, Any]], list[float]]
) -> list[float]:
    """Return the mean over seeds of each world that has a value."""
    found: dict[int, list[float]] = {}
    for record in records:
        found.setdefault(record["world"], []).extend(values(record))
    return [float(np.mean(own)) for own in found.values() if own]


def _by_seed(
    records: _Records, measure: Callable[[Mapping[str, Any]], float]
) -> dict[int, float]:
    """Return the mean over worlds of each seed, in percent."""
    found: dict[int, list[float]] = {}
    for record in records:
        found.setdefault(record["seed"], []).append(100 * measure(record))
    return {seed: float(np.mean(own)) for seed, own in found.items()}


def _percent(estimate: Estimate) -> str:
    """Return a share in percent; its interval ends where shares do."""
    low, high = max(0.0, estimate.low), min(1.0, estimate.high)
    value, low, high = (100 * v for v in (estimate.value, low, high))
    return _number(Estimate(value, low, high, estimate.n), ".1f")


def _number(estimate: Estimate, form: str) -> str:
    if np.isnan(estimate.value):
        return ""
    low, high = format(estimate.low, form), format(estimate.high, form)
    return f"{format(estimate.value, form)} [{low}, {high}]"
