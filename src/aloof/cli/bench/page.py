"""``aloof bench page``: what reproduces, as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.paper.page import make_page
from aloof.bench.paper.status import look
from aloof.cli.bench.status import Experiments, Results, tell_problems
from aloof.exceptions import ExperimentError
from aloof.io import write_file

__all__ = ["page"]


def page(
    results: Results = Path("results"),
    experiments: Experiments = Path("experiments"),
    out: Annotated[Path, typer.Option(help="The page.", dir_okay=False)] = Path(
        "docs/reproduction.md"
    ),
) -> None:
    """Write the page that says what of the paper reproduces, from the records alone.

    For every table and figure: our figures in both settings, the paper's, the difference with
    its standard error, and how many problems or seeds. Run it whenever records were added; it
    needs no data and no GPU.
    """
    found = look(results, experiments)
    tell_problems(found)
    if found.results.problems:
        raise ExperimentError(
            f"The page was not written, because of what is said above: {out} is as it was."
        )
    write_file(out, make_page(found, results, out), ExperimentError, parents=True)
    filled = found.record["filled"]
    typer.echo(f"{out}: {filled} of {len(found.fillings)} cells are filled.")
