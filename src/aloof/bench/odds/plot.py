"""Results as a picture: a panel for each data set, a dot with its spread for each system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aloof.bench.odds.summary import Block
from aloof.bench.odds.tables import paper_rows
from aloof.bench.pictures import make_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_results"]

_OURS, _PEER, _PAPER = "#cc3311", "#4477aa", "#777777"


def plot_results(blocks: Sequence[Block]) -> Figure:
    """Show AUROC as mean and standard deviation over seeds, with the paper's figures.

    Parameters
    ----------
    blocks
        The summary of a study; each condition has panels of its own.
    """
    spec = blocks[0].spec
    panels = [(block, name) for block in blocks for name in spec.datasets]
    n_columns = min(3, len(panels)) if len(blocks) == 1 else len(spec.datasets)
    n_rows = -(-len(panels) // n_columns)
    systems = blocks[0].rows
    figure = make_figure(2.2 + 3.2 * n_columns, n_rows * (1.2 + 0.24 * len(systems)))
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    heights = range(len(systems), 0, -1)
    for number, axis in enumerate(axes.flat):
        if number >= len(panels):
            axis.set_axis_off()
            continue
        block, name = panels[number]
        printed = {
            (system.method, system.variant): figures
            for system, figures in paper_rows(block).items()
        }
        for height, system in zip(heights, systems, strict=True):
            found = block.cells[system, name].moments("auroc")
            if found.n:
                colour = _OURS if system.ours else _PEER
                spread = found.std if found.n > 1 else None
                axis.errorbar(found.mean, height, xerr=spread, fmt="o", ms=5, c=colour, lw=1.5)
            method = system.method.removesuffix("-unfair")
            key = (method, system.variant if spec.paper == "ablation" else "")
            if name in printed.get(key, {}):
                mean, std = printed[key][name]
                axis.errorbar(
                    mean, height - 0.25, xerr=std, fmt="D", ms=4, mfc="white", c=_PAPER, lw=0.8
                )
        axis.set_yticks(heights, [s.label for s in systems] if not number % n_columns else [])
        axis.set_ylim(0.4, len(systems) + 0.6)
        condition = ""
        if len(blocks) > 1:
            condition = f", gamma_l {block.gamma_l:g}, gamma_p {block.gamma_p:g}"
        axis.set_title(f"{name}{condition}", fontsize=10)
        tidy(axis, grid="x")
        if number + n_columns >= len(panels):
            axis.set_xlabel("AUROC (%)")
    handles = [
        axes.flat[0].plot([], [], marker, c=colour, mfc=fill, label=label)[0]
        for marker, colour, fill, label in (
            ("o", _OURS, _OURS, "aloof"),
            ("o", _PEER, _PEER, "peers, on the same splits"),
            ("D", _PAPER, "white", "the paper's figure"),
        )
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure
