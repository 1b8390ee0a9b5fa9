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
    out: Annotated[Path, typer.Option(help="The page to write.", dir_okay=False)] = Path(
        "docs/reproduction.md"
    ),
) -> None:
    """Write the page that shows how far the paper reproduces, from the records alone.

    For every table and figure: our figures in both settings, the paper's, the difference with
    its standard error, and the number of problems or seeds. Run it whenever records were
    added. It needs neither data nor a GPU.
    """
    found = look(results, experiments)
    tell_problems(found)
    if found.results.problems:
        raise ExperimentError(
            f"The page was not written; see above for the reason. {out} is unchanged."
        )
    write_file(out, make_page(found, results, out), ExperimentError, parents=True)
    filled = found.record["filled"]
    typer.echo(f"{out}: {filled} of {len(found.fillings)} cells are filled.")
