"""The pictures of the planning study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloof.bench.pictures import make_figure, tidy
from aloof.bench.planning.specification import UNIFORM, PlanningSpecification
from aloof.bench.planning.tables import by_world, plans_with
from aloof.planning import Trajectories, collides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["planning_curves", "planning_figure"]

_FREE, _HIT, _START, _GOAL = "#228833", "#cc3311", "#4477aa", "#ee6677"
_LINES = ("#ee7733", "#0077bb", "#009988", "#aa3377")
_PANEL = 2.2  # inches


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
    n_rows, n_columns = len(test), len(states)
    figure = make_figure(_PANEL * n_columns, (_PANEL + 0.25) * n_rows + 0.5)
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
                (~hit, _FREE, "o", "free state"),
                (hit, _HIT, "x", "state in collision"),
            ):
                axis.scatter(
                    *points[chosen].T, s=7, c=colour, marker=marker, lw=0.8, label=label
                )
            for name, colour in (("start", _START), ("goal", _GOAL)):
                axis.scatter(*getattr(world, name), s=50, c=colour, zorder=3, label=name)
            axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
            axis.set_xlabel(f"{100 * hit.mean():.0f} % in collision", fontsize=9)
        axes[0, column].set_title(title, fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=5 if n_columns > 2 else 3,
        frameon=False,
        fontsize=9,
    )
    return figure


def planning_curves(
    spec: PlanningSpecification, records: Sequence[Mapping[str, Any]]
) -> Figure:
    """Draw success against the number of states and against time, and path cost.

    There is a row for each setting that was run. Intervals are in the tables: here they would
    hide each other.
    """
    run = [s for s in spec.setting if any(r["setting"] == s for r in records)] or [""]
    figure = make_figure(12, 3.2 * len(run))
    axes = figure.subplots(len(run), 3, squeeze=False)
    for row, setting in zip(axes, run, strict=True):
        own = [r for r in records if r["setting"] in ("", setting)]
        _draw_setting(spec, own, row)
        if setting:
            row[0].set_title(f"setting: {setting}", loc="left", fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, handlelength=3)
    return figure


def _draw_setting(
    spec: PlanningSpecification, records: Sequence[Mapping[str, Any]], axes: Any
) -> None:
    by_count, by_time, by_cost = axes
    colours = dict(zip(spec.methods, _LINES, strict=False))
    for sampler in spec.samplers:
        own = [record for record in records if record["sampler"] == sampler.label]
        if not own:
            continue
        found = [_of_plans(own, count, "found") for count in spec.counts]
        share = [100 * float(np.mean(values)) for values in found]
        cost = [np.mean(_of_plans(own, count, "cost") or np.nan) for count in spec.counts]
        seconds = [np.mean(_of_plans(own, count, "seconds")) for count in spec.counts]
        plain = sampler.method == UNIFORM
        style: dict[str, Any] = {
            "c": colours.get(sampler.method, "#777777"),
            "ls": "-" if sampler.screen or plain else "--" if sampler.noise else ":",
            "marker": "o",
            "ms": 4,
        }
        by_count.plot(spec.counts, share, label=sampler.label, **style)
        by_time.plot([1e3 * float(value) for value in seconds], share, **style)
        by_cost.plot(spec.counts, cost, **style)
    for axis in (by_count, by_cost):
        axis.set_xscale("log")
        axis.set_xticks(spec.counts, map(str, spec.counts))
        axis.minorticks_off()
        axis.set_xlabel("states")
    by_time.set_xscale("log")
    by_time.xaxis.set_major_formatter("{x:g}")
    by_time.set_xlabel("time (ms)")
    for axis in axes:
        tidy(axis)
    by_count.set_ylabel("worlds with a path (%)")
    by_time.set_ylabel("worlds with a path (%)")
    by_cost.set_ylabel("path cost (optimal = 1)")


def _of_plans(records: Sequence[Mapping[str, Any]], count: int, name: str) -> list[float]:
    """Return a figure of the plans with so many states, one for each world that has it."""
    return by_world(records, lambda r: [p[name] for p in plans_with([r], count) if name in p])
