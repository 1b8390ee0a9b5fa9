"""The pictures of the planning study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloof.bench.pictures import make_figure, tidy
from aloof.bench.planning.specification import PlanningSpecification
from aloof.bench.planning.tables import plans_with
from aloof.planning import Trajectories, collides, estimate_mean, estimate_share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["planning_curves", "planning_figure"]

_FREE, _HIT, _START, _GOAL = "#228833", "#cc3311", "#4477aa", "#ee6677"
_LINES = ("#ee7733", "#0077bb", "#009988", "#aa3377")


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
    figure = make_figure(3.3 * n_columns, 3.3 * n_rows + 0.5)
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
    spec: PlanningSpecification, records: Sequence[Mapping[str, Any]]
) -> Figure:
    """Draw success against the number of states and against time, and path cost."""
    figure = make_figure(13, 3.8)
    by_count, by_time, by_cost = figure.subplots(1, 3)
    colours = dict(zip(spec.methods, _LINES, strict=False))
    for sampler in spec.samplers:
        colour = colours.get(sampler.method, "#777777")
        own = [record for record in records if record["sampler"] == sampler.label]
        plans = [plans_with(own, count) for count in spec.counts]
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
        by_count.plot(spec.counts, share, label=sampler.label, **style)
        by_count.fill_between(
            spec.counts,
            [100 * estimate.low for estimate in success],
            [100 * estimate.high for estimate in success],
            color=colour,
            alpha=0.07,
        )
        by_time.plot([1e3 * value for value in seconds], share, **style)
        by_cost.plot(spec.counts, [estimate.value for estimate in cost], **style)
    for axis in (by_count, by_cost):
        axis.set_xscale("log")
        axis.set_xticks(spec.counts, map(str, spec.counts))
        axis.minorticks_off()
        axis.set_xlabel("states")
    by_time.set_xlabel("time (ms)")
    for axis in (by_count, by_time, by_cost):
        tidy(axis)
    by_count.set_ylabel("worlds with a path (%)")
    by_time.set_ylabel("worlds with a path (%)")
    by_cost.set_ylabel("path cost (optimal = 1)")
    by_count.legend(frameon=False, fontsize=8)
    return figure
