"""The planning experiment as tables and pictures."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloof.experiments.planning import PlanningExperiment
from aloof.experiments.records import write_text
from aloof.experiments.table import Grid, to_markdown
from aloof.planning import (
    Estimate,
    Trajectories,
    collides,
    estimate_mean,
    estimate_share,
)
from aloof.report import check_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["planning_curves", "planning_figure", "planning_grids", "write_planning_tables"]

_FREE, _HIT, _START, _GOAL = "#228833", "#cc3311", "#4477aa", "#ee6677"
_LINES = ("#ee7733", "#0077bb", "#009988", "#aa3377")


def planning_grids(
    experiment: PlanningExperiment, records: Sequence[Mapping[str, Any]]
) -> list[Grid]:
    """Return tables: quality of the states, success, path cost and time of the planner."""
    labels = [sampler.label for sampler in experiment.samplers]
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
                f"Of {experiment.n_states} states of the sampler alone. Covered: the share of "
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
            (label, *(text(_plans(own[label], count)) for count in experiment.counts))
            for label in labels
        )
        header = ("states", *map(str, experiment.counts))
        mixed = f"Of learned states {100 * experiment.learned:g} %, the rest uniform."
        grids.append(Grid(title, header, rows, notes=(note, mixed)))
    return grids


def write_planning_tables(
    experiment: PlanningExperiment,
    records: Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    command: str = "",
) -> list[Grid]:
    """Write ``table.md`` and ``table.csv``, and return the tables."""
    grids = planning_grids(experiment, records)
    footer = f"Made with `{command}`." if command else ""
    title = "Motion planning: where not to sample"
    write_text(folder / "table.md", to_markdown(grids, title=title, footer=footer))
    text = io.StringIO()
    names = ("sampler", "world", "collision", "coverage", "n", "found", "cost", "seconds")
    writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for record in records:
        for outcome in record["plans"]:
            writer.writerow({**record, **outcome})
    write_text(folder / "table.csv", text.getvalue())
    return grids


def planning_figure(
    test: Trajectories, states: Mapping[str, Sequence[NDArray[np.float64]]]
) -> Figure:
    """Draw the paper's figure: a row for each world, a column for each sampler.

    Parameters
    ----------
    test
        Worlds with their optimal trajectories.
    states
        By title, the states of each world.
    """
    check_drawing()
    from matplotlib.figure import Figure

    n_rows, n_columns = len(test), len(states)
    figure = Figure(figsize=(3.3 * n_columns, 3.3 * n_rows + 0.5), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for column, (title, drawn) in enumerate(states.items()):
        for row, world in enumerate(test.worlds):
            axis, points = axes[row, column], drawn[row][:, :2]
            axis.imshow(
                world.grid, cmap="Greys", alpha=0.6, origin="lower", extent=(0, 1, 0, 1)
            )
            axis.plot(*test.states[row, :, :2].T, c="black", lw=1, label="optimal path")
            hit = collides(world.grid, points)
            for chosen, colour, marker, label in (
                (~hit, _FREE, "o", "free"),
                (hit, _HIT, "x", "in collision"),
            ):
                axis.scatter(
                    *points[chosen].T, s=9, c=colour, marker=marker, lw=0.8, label=label
                )
            for name, colour in (("start", _START), ("goal", _GOAL)):
                axis.scatter(*getattr(world, name), s=70, c=colour, zorder=3, label=name)
            axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
            axis.set_xlabel(f"{100 * hit.mean():.0f} % in collision")
        axes[0, column].set_title(title)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    return figure


def planning_curves(
    experiment: PlanningExperiment, records: Sequence[Mapping[str, Any]]
) -> Figure:
    """Draw success against the number of states and against time, and path cost."""
    check_drawing()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 3.8), layout="constrained")
    by_count, by_time, by_cost = figure.subplots(1, 3)
    colours = dict(zip(experiment.methods, _LINES, strict=False))
    for sampler in experiment.samplers:
        colour = colours.get(sampler.method, "#777777")
        own = [record for record in records if record["sampler"] == sampler.label]
        plans = [_plans(own, count) for count in experiment.counts]
        success = [estimate_share([p["found"] for p in some]) for some in plans]
        cost = [estimate_mean([p["cost"] for p in some if "cost" in p]) for some in plans]
        seconds = [float(np.mean([p["seconds"] for p in some])) for some in plans]
        style: dict[str, Any] = {
            "c": colour,
            "ls": "-" if sampler.screen else "--" if sampler.noise else ":",
            "marker": "o",
            "ms": 4,
        }
        share = [100 * estimate.value for estimate in success]
        by_count.plot(experiment.counts, share, label=sampler.label, **style)
        by_count.fill_between(
            experiment.counts,
            [100 * estimate.low for estimate in success],
            [100 * estimate.high for estimate in success],
            color=colour,
            alpha=0.07,
        )
        by_time.plot([1e3 * value for value in seconds], share, **style)
        by_cost.plot(experiment.counts, [estimate.value for estimate in cost], **style)
    for axis in (by_count, by_cost):
        axis.set_xscale("log")
        axis.set_xticks(experiment.counts, map(str, experiment.counts))
        axis.minorticks_off()
        axis.set_xlabel("states")
    by_time.set_xlabel("time (ms)")
    for axis in (by_count, by_time, by_cost):
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    by_count.set_ylabel("worlds with a path (%)")
    by_time.set_ylabel("worlds with a path (%)")
    by_cost.set_ylabel("path cost (optimal = 1)")
    by_count.legend(frameon=False, fontsize=8)
    return figure


def _plans(records: Sequence[Mapping[str, Any]], count: int) -> list[dict[str, Any]]:
    return [p for record in records for p in record["plans"] if p["n"] == count]


def _percent(estimate: Estimate) -> str:
    value, low, high = (100 * v for v in (estimate.value, estimate.low, estimate.high))
    return _number(Estimate(value, low, high, estimate.n), ".1f")


def _number(estimate: Estimate, form: str) -> str:
    if np.isnan(estimate.value):
        return ""
    low, high = format(estimate.low, form), format(estimate.high, form)
    return f"{format(estimate.value, form)} [{low}, {high}]"
