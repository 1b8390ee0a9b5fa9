"""``aloof report``: what a model finds, as a page to send round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.options import (
    LABELLING,
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
from aloof.models.page import check_report

__all__ = ["report"]


@also(LABELLING, READING)
def report(
    context: typer.Context,
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page, such as report.html.")],
    top: Annotated[int, typer.Option(min=1, help="How many anomalies to list.")] = 20,
    title: Annotated[str, typer.Option(help="The heading.")] = "Anomaly report",
    missing_columns: MissingColumns = "refuse",
    device: Device = "auto",
    force: Annotated[
        bool, typer.Option("--force", help="Replace a page that is there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a page about what a model finds in a table: scores, anomalies, reasons.

    One HTML file that holds its pictures and opens offline. Where there are labels, the page
    compares with them. The table may be larger than memory: all rows are counted, some are
    drawn.

    Example: **aloof report model new.parquet --out report.html**

    For a model of images: a contact sheet of the strangest, and what is strange about them.
    """
    check_report(out, force=force)
    fitted = open_model(model, device=device)
    called(context, fitted, fitted.report, data)
    typer.echo(json.dumps({"report": str(out)}) if as_json else out)
