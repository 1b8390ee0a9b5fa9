"""``aloof bench merge``: results of several machines in one folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.merging import merge_results
from aloof.cli.bench.status import Results
from aloof.phrases import count

__all__ = ["merge"]


def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Results of other machines: a folder with a folder for each experiment, or "
            "the folder of one experiment.",
            exists=True,
            file_okay=False,
        ),
    ],
    results: Results = Path("results"),
) -> None:
    """Add what other machines have run to the results here.

    Run parts of an experiment wherever there is a machine, copy the folders **results** to
    one place, and merge them. Whatever two machines have run keeps the record of the later
    run; one with an error never takes the place of one without. Merging twice changes nothing.

    Tables are not made anew: run **aloof bench ... --tables-only** for each experiment that
    got records, then **aloof bench page**.

    Example: **aloof bench merge from-the-gpu/results from-the-cluster/results**
    """
    for merged in merge_results(folders, results):
        typer.echo(
            f"{merged.name}: added {count(merged.n_added, 'record')}; "
            f"{merged.n_left_out:,} were here already."
        )
