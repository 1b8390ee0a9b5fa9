"""``aloof explain``: what is most anomalous, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.cli.group import tell_skipped
from aloof.cli.options import (
    READING,
    Data,
    Device,
    Json,
    MissingColumns,
    Model,
    also,
    called,
)
from aloof.models.loading import open_model
from aloof.phrases import count

__all__ = ["explain"]


@also(READING)
def explain(
    context: typer.Context,
    model: Model,
    data: Data,
    top: Annotated[int, typer.Option(min=1, help="How many rows.")] = 20,
    reasons: Annotated[int, typer.Option(min=1, help="Number of reasons for each row.")] = 3,
    ids: Annotated[
        list[str] | None,
        typer.Option(
            "--id", help="Explain the row with this id, or this image file. Repeatable."
        ),
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option("--row", min=1, help="Explain this row, counted from 1. Repeatable."),
    ] = None,
    lines: Annotated[
        list[int] | None,
        typer.Option(
            "--line",
            min=1,
            help="Tell about the row in this line of the file or sheet. Repeatable.",
        ),
    ] = None,
    missing_columns: MissingColumns = "refuse",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PNG",
            help="Images only: write a picture that shows what is strange about them.",
        ),
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Show the most anomalous rows, or the rows you name, with reasons in words.

    The contributions of the columns add up to the anomaly score. Rows are counted from 1, and
    their line in the file is shown next to that. The file may be larger than memory.

    Example: **aloof explain model new.parquet --top 5**

    One row, flagged or not: **aloof explain model new.csv --id 4711**

    Images: **aloof explain model new-images/ --top 5 --out strange.png**, or one of them:
    **aloof explain model new-images/ --id bad/017.png --out strange.png**
    """
    fitted = open_model(model, device=device)
    asked: dict[str, Any] = {"ids": ids or (), "rows": rows or (), "lines": lines or ()}
    found = called(context, fitted, fitted.most_anomalous, data, **asked)
    tell_skipped(found.skipped)
    if as_json:
        typer.echo(json.dumps({f"n_{fitted.things}": found.n_rows, fitted.things: found.rows}))
        return
    of = f"of {count(found.n_rows, fitted.things.removesuffix('s'))}"
    if ids or rows or lines:
        typer.echo(f"{len(found.rows):,} {of}:")
    elif len(found.rows) == 1:
        typer.echo(f"The most anomalous {of}:")
    else:
        typer.echo(f"The {len(found.rows):,} most anomalous {of}:")
    for name, row in zip(found.names, found.rows, strict=True):
        p = "" if row["p_value"] is None else f"  p-value {row['p_value']:.2g}"
        flag = "  flagged" if row["is_anomaly"] else ""
        told = row.get("reasons", [])
        if told:
            typer.echo("")
        typer.echo(f"{name}  anomaly score {row['anomaly_score']:.4g}{p}{flag}")
        for reason in told:
            typer.echo(f"  {reason['contribution']:>8.3g}  {reason['words']}")
            for passage in reason.get("passages", []):
                words = f"of it due to {passage['text']!r}"
                typer.echo(f"  {passage['contribution']:>12.3g}  {words}")
    if found.remark:
        typer.echo(found.remark)
