"""Results as a picture: a panel for each condition, two dots for each system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from aloof.bench.pictures import make_figure, tidy
from aloof.bench.tabular.summary import Block, shown_systems

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_results"]

_OURS, _PEER = "#cc3311", "#4477aa"


def plot_results(blocks: Sequence[Block]) -> Figure:
    """Show AUROC and average precision, means over the tasks that all systems have.

    Parameters
    ----------
    blocks
        The summary of a study; each condition has a panel, each amount of labels a column.
    """
    spec = blocks[0].spec
    n_columns = len(spec.labels) if len(spec.labels) > 1 else min(3, len(blocks))
    n_rows = -(-len(blocks) // n_columns)
    systems = shown_systems(blocks)
    figure = make_figure(2.2 + 3.2 * n_columns, n_rows * (1.2 + 0.22 * len(systems)))
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    heights = np.arange(len(systems), 0, -1)
    for axis in axes.flat[len(blocks) :]:
        axis.set_axis_off()
    for number, (axis, block) in enumerate(zip(axes.flat, blocks, strict=False)):
        for height, system in zip(heights, systems, strict=True):
            colour = _OURS if system.ours else _PEER
            for measure, fill in (("auroc", colour), ("average_precision", "white")):
                mean = block.mean(system, measure)
                if not np.isnan(mean):
                    axis.plot(mean, height, "o", ms=5, c=colour, mfc=fill)
        axis.set_yticks(heights, [s.label for s in systems] if not number % n_columns else [])
        axis.set_ylim(0.4, len(systems) + 0.6)
        axis.set_title(f"{block.condition} ({len(block.common)} tasks)", fontsize=10)
        tidy(axis, grid="x")
        if number + n_columns >= len(blocks):
            axis.set_xlabel("%")
    handles = [
        axes.flat[0].plot([], [], "o", c=colour, mfc=fill, label=label)[0]
        for colour, fill, label in (
            (_OURS, _OURS, "aloof"),
            (_PEER, _PEER, "peers"),
            ("#777777", "white", "average precision"),
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure
