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
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file to write, such as report.html.")
    ],
    top: Annotated[int, typer.Option(min=1, help="Number of anomalies to list.")] = 20,
    title: Annotated[str, typer.Option(help="The heading.")] = "Anomaly report",
    missing_columns: MissingColumns = "refuse",
    device: Device = "auto",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing page.")] = False,
    as_json: Json = False,
) -> None:
    """Write a page about what a model finds in a table: scores, anomalies, reasons.

    The page is one HTML file, pictures included, that opens offline. If the table has labels,
    the page compares the scores with them. The table may be larger than memory: all rows are
    counted, and a sample is drawn.

    Example: **aloof report model new.parquet --out report.html**

    For an image model, the page shows the strangest images and what is strange about them.
    """
    check_report(out, force=force)
    fitted = open_model(model, device=device)
    called(context, fitted, fitted.report, data)
    typer.echo(json.dumps({"report": str(out)}) if as_json else out)
