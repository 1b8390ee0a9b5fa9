"""The files people read: ``table.md``, ``table.csv`` and ``plot.png`` beside the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aloof.experiments.experiment import Experiment
from aloof.experiments.plot import plot_results
from aloof.experiments.records import write_text
from aloof.experiments.summary import summarise
from aloof.experiments.table import Grid, make_grids, to_csv, to_markdown
from aloof.report import save_figure

__all__ = ["write_plot", "write_tables"]


def write_tables(
    experiment: Experiment,
    records: Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    command: str = "",
) -> list[Grid]:
    """Write the tables of an experiment into a folder, and return them.

    Parameters
    ----------
    experiment
        What was run.
    records
        One for each case.
    folder
        Where to.
    command
        How to make them again; said below the tables.
    """
    blocks = summarise(experiment, records)
    grids = make_grids(experiment, blocks)
    footer = f"Made with `{command}`." if command else ""
    write_text(folder / "table.md", to_markdown(grids, title=experiment.title, footer=footer))
    write_text(folder / "table.csv", to_csv(experiment, blocks))
    return grids


def write_plot(
    experiment: Experiment, records: Sequence[Mapping[str, Any]], folder: Path
) -> None:
    """Draw the results into a folder."""
    figure = plot_results(experiment, summarise(experiment, records))
    save_figure(figure, folder / "plot.png")
