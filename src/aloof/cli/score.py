"""``aloof score``: everything in a table or among images with its anomaly score."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Annotated

import typer

from aloof.cli.group import fail, tell_skipped
from aloof.cli.harmless import known_harmless
from aloof.cli.options import (
    READING,
    Data,
    Device,
    Json,
    MissingColumns,
    Model,
    Store,
    also,
    called,
)
from aloof.models.loading import open_model
from aloof.models.table import TableModel, check_output
from aloof.models.table.streaming import is_unfinished
from aloof.models.table.words import short
from aloof.phrases import count

__all__ = ["score"]


@also(READING)
def score(
    context: typer.Context,
    model: Model,
    data: Data,
    out: Annotated[
        str,
        typer.Option(
            metavar="SCORES",
            help="The file to write: .csv or .tsv (also with .gz), .xlsx, .parquet or .arrow; "
            "- for CSV on standard output.",
        ),
    ],
    reasons: Annotated[
        int, typer.Option(min=0, help="Number of reasons to give for each flagged row.")
    ] = 3,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Copy a column to the output, besides the id. Repeatable."
        ),
    ] = None,
    keep_all: Annotated[
        bool,
        typer.Option(
            "--keep-all",
            help="Copy all columns of the data. Images: folder, size and brightness.",
        ),
    ] = False,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Flag this many rows, the highest scores of this file, whatever the "
            "threshold says. On ties, earlier rows come first.",
        ),
    ] = None,
    flagged_only: Annotated[
        bool, typer.Option("--flagged-only", help="Write only the flagged rows.")
    ] = False,
    sort: Annotated[
        bool,
        typer.Option(
            "--sort", help="Write the highest scores first. Needs memory for the rows written."
        ),
    ] = False,
    missing_columns: MissingColumns = "refuse",
    ignore_rules: Annotated[
        bool,
        typer.Option(
            "--ignore-rules", help="Flag rows, too, that reviewers know to be harmless."
        ),
    ] = False,
    store: Store = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run, if there is one.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace an existing file, and discard an interrupted run."
        ),
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score every row of a table, however large, and say why rows are flagged.

    Writes the id, anomaly_score (higher is worse), p_value, is_anomaly and the reasons in
    words, in the order of the rows. If the table does not look like the training table,
    warnings name the columns. Rows that reviewers know to be harmless (**aloof review**) are
    not flagged, and suppressed_by says by which rule.

    The file appears once everything is done. If the run is killed, run the same command with
    **--resume**: it picks up where it stopped and writes the same bytes.

    Example: **aloof score model new.parquet --out scores.csv**

    The 20 worst rows, with all their columns: **aloof score model new.csv --top 20
    --flagged-only --sort --keep-all --out worst.xlsx**

    An image model scores a folder, a zip archive or a file: **aloof score model new-images/
    --top 20 --flagged-only --sort --out worst.csv**. Files that cannot be used are named and
    skipped.

    The file need not be laid out like the training file: delimiter, encoding and header line
    are detected again. Numbers and dates are read as in training.

    In a pipe: **zcat new.csv.gz | aloof score model - --out - | head**
    """
    started = time.monotonic()
    if as_json and out == "-":
        fail("Scores and JSON cannot both go to standard output. Name a file with --out.")
    check_output(out, force=force)
    fitted = open_model(model, device=device)
    try:
        rules = {} if ignore_rules else known_harmless(fitted, model, store)
        done = called(
            context,
            fitted,
            fitted.score_file,
            data,
            own=("ignore_rules", "store") if isinstance(fitted, TableModel) else (),
            keep=keep or (),
            **rules,
        )
    except KeyboardInterrupt:
        if is_unfinished(out):
            typer.echo("Run the same command with --resume to continue.", err=True)
        raise
    tell_skipped(done.skipped)
    seconds = time.monotonic() - started
    if as_json:
        found = {
            "out": out,
            f"n_{fitted.things}": done.n_rows,
            "n_anomalies": done.n_anomalies,
            "n_suppressed": done.n_suppressed,
            "n_resumed": done.n_resumed,
            "skipped": [{"file": name, "reason": why} for name, why in done.skipped],
            "threshold": fitted.threshold.as_dict() if top is None else {"top": top},
            "drift": [asdict(each) for each in done.drift],
            "remark": done.remark,
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
    elif out != "-":
        skipped = f", {count(len(done.skipped), 'file')} skipped" if done.skipped else ""
        rule, things = str(fitted.threshold), fitted.things
        if top is not None:
            rule = f"the {count(done.n_anomalies, 'highest score')}"
        elif expected := fitted.threshold.expectation(done.n_rows, things=things):
            rule = f"{rule}: {expected}"
        typer.echo(
            f"Scored {count(done.n_rows, things.removesuffix('s'))} in {seconds:.1f} s: "
            f"{done.n_anomalies:,} flagged ({rule}){skipped}. The scores are in {out}."
        )
        if done.n_suppressed:
            typer.echo(
                f"{count(done.n_suppressed, things.removesuffix('s'))} known to be harmless by "
                "reviewers' rules would be flagged, too; see the column suppressed_by, or "
                "--ignore-rules."
            )
        if done.drift:
            n = count(len(done.drift), "difference")
            named = dict.fromkeys(each.column for each in done.drift if each.column)
            columns = f" ({short(', '.join(named), 100)})" if named else ""
            typer.echo(f"The {things} do not look like the training {things}: {n}{columns}.")
    if done.remark and not as_json:
        typer.echo(f"Nothing is flagged. {done.remark}", err=out == "-")
