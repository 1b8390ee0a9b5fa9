"""``aloof score``: every row of a table with its anomaly score and the reasons."""

from __future__ import annotations

import json
import time
from typing import Annotated

import typer

from aloof.cli.group import fail
from aloof.cli.images import is_image_model, refuse, score_images_command
from aloof.cli.options import (
    Data,
    Delimiter,
    Device,
    Encoding,
    FileFormat,
    Json,
    Model,
    opened,
)
from aloof.cli.progress import counting_rows
from aloof.tabular import TableModel, check_output
from aloof.tabular.counting import about_rows
from aloof.tabular.streaming import score_file

__all__ = ["score"]


def score(
    model: Model,
    data: Data,
    out: Annotated[
        str,
        typer.Option(
            metavar="SCORES",
            help="The file to be: .csv, .tsv (with .gz or without), .parquet or .arrow; - for "
            "CSV on standard output.",
        ),
    ],
    reasons: Annotated[
        int, typer.Option(min=0, help="How many reasons to give for flagged rows.")
    ] = 3,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Copy a column, besides the id. Repeatable."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was killed, if there is one.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace a file that is there, and forget a killed run."),
    ] = False,
    device: Device = "auto",
    delimiter: Delimiter = None,
    encoding: Encoding = "utf8",
    file_format: FileFormat = None,
    as_json: Json = False,
) -> None:
    """Score every row of a table, however large, and say why rows are flagged.

    Writes the id, anomaly_score (higher is worse), p_value, is_anomaly and the reasons in
    words, in the order of the rows. The file appears when all is done. If the run is killed,
    the same command with **--resume** goes on where it was, and ends with the same bytes.

    Example: **aloof score model new.parquet --out scores.csv**

    A model of images scores a folder, a zip archive or a file: **aloof score model new-images/
    --out scores.csv**. Files that cannot be used are named and left out.

    In a pipe: **zcat new.csv.gz | aloof score model - --out - | head**
    """
    started = time.monotonic()
    if as_json and out == "-":
        fail("Scores and JSON cannot both go to standard output. Name a file with --out.")
    check_output(out, force=force)
    if is_image_model(model):
        refuse("images", {"--keep": keep, "--resume": resume or None, "--format": file_format})
        refuse("images", {"--encoding": None if encoding == "utf8" else encoding})
        refuse("images", {"--delimiter": delimiter, "--reasons": None if reasons == 3 else 1})
        score_images_command(model, data, out, force=force, device=device, as_json=as_json)
        return
    fitted = TableModel.load(model, device=device)
    source = opened(data, delimiter, encoding, file_format)
    before = 0

    def advance(rows: int) -> None:
        nonlocal before
        progress(rows - before)
        before = rows

    try:
        with counting_rows("Scoring", about_rows(source)) as progress:
            done = score_file(
                fitted,
                source,
                out,
                reasons=reasons,
                keep=keep or (),
                resume=resume,
                force=force,
                on_rows=advance,
            )
    except KeyboardInterrupt:
        if before and out != "-" and source.paths:
            typer.echo("The same command with --resume continues.", err=True)
        raise
    seconds = time.monotonic() - started
    if as_json:
        found = {
            "out": out,
            "n_rows": done.n_rows,
            "n_anomalies": done.n_anomalies,
            "n_resumed": done.n_resumed,
            "threshold": fitted.threshold.as_dict(),
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
    elif out != "-":
        typer.echo(
            f"Scored {done.n_rows:,} rows in {seconds:.1f} s: {done.n_anomalies:,} flagged "
            f"({fitted.threshold}). The scores are in {out}."
        )
