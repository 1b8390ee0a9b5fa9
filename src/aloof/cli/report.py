"""``aloof report``: what a model finds in a table, as a page to send round."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.images import is_image_model, refuse, report_images_command
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
from aloof.report import check_report, write_report
from aloof.tabular import TableModel
from aloof.tabular.labelling import check_column

__all__ = ["report"]


def report(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page, such as report.html.")],
    top: Annotated[int, typer.Option(min=1, help="How many anomalies to list.")] = 20,
    title: Annotated[str, typer.Option(help="The heading.")] = "Anomaly report",
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column of labels. Default: as in training."),
    ] = None,
    anomaly_value: Annotated[
        str | None,
        typer.Option(metavar="V", help="The label of anomalies. Default: as in training."),
    ] = None,
    device: Device = "auto",
    delimiter: Delimiter = None,
    encoding: Encoding = "utf8",
    file_format: FileFormat = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a page that is there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a page about what a model finds in a table: scores, anomalies, reasons.

    One HTML file that holds its pictures and opens offline. Where the table has labels, the
    page compares with them. The table may be larger than memory: all rows are counted, some
    are drawn.

    Example: **aloof report model new.parquet --out report.html**

    For a model of images: a contact sheet of the strangest, and what is strange about them.
    """
    check_report(out, force=force)
    if is_image_model(model):
        refuse("images", {"--label": label, "--anomaly-value": anomaly_value})
        refuse("images", {"--delimiter": delimiter, "--format": file_format})
        refuse("images", {"--encoding": None if encoding == "utf8" else encoding})
        report_images_command(model, data, out, top, title, device=device, as_json=as_json)
        return
    fitted = TableModel.load(model, device=device)
    if label is not None or anomaly_value is not None:
        value = anomaly_value if anomaly_value is not None else fitted.anomaly_value
        fitted = fitted.with_label(label or fitted.label or "", value)
    source = opened(data, delimiter, encoding, file_format)
    if label is not None:
        check_column(label, source.names, "labels")
    with counting_rows("Scoring", source.n_rows) as done:
        write_report(fitted, source, out, top=top, force=force, title=title, on_rows=done)
    typer.echo(json.dumps({"report": str(out)}) if as_json else out)
