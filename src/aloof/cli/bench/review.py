"""``aloof bench review``: how much an answer is worth."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof.bench.review import ReviewSpecification, make_review
from aloof.cli.bench.command import carries_out

__all__ = ["review"]


@carries_out(
    ReviewSpecification,
    make_review,
    fields={"rows": "max_rows", "epochs": "max_epochs"},
)
def review(
    datasets: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between, of public tables or development tasks. "
            "Default: six of ODDS."
        ),
    ] = None,
    askers: Annotated[
        str | None,
        typer.Option(
            help="Who asks, with commas between: likely, anomalous, informative, mix, random, "
            "never refitted, isolation forest. Default: all."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Reviews of each. Default: 10.")] = None,
    questions: Annotated[int | None, typer.Option(help="Of each review. Default: 50.")] = None,
    rows: Annotated[
        int | None,
        typer.Option(help="Most rows of a table; half are reviewed. Default: 4000."),
    ] = None,
    members: Annotated[int | None, typer.Option(help="Of the ensemble. Default: 5.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of a fit.")] = None,
) -> None:
    """Simulate reviews on tables whose labels are known: anomalies found by questions asked.

    A detector is fitted without labels. It asks about ten rows, is told their true labels, is
    refitted and asks again. Compared are the ways of asking, asking at random, the most
    anomalous rows without refits, and an isolation forest with feedback.

    Writes plot.png, table.md, table.csv and records.jsonl. Stop it whenever you like: the same
    command continues.

    Try first: **aloof bench review --datasets cardio --seeds 1 --rows 1000**
    """
