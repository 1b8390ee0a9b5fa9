"""``aloof fit``: from a table, or from images, to a model."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.cli.group import fail
from aloof.cli.images import are_images, fit_images_command, refuse
from aloof.cli.options import Delimiter, Device, Encoding, FileFormat, Json, opened
from aloof.exceptions import StaleCheckpointError
from aloof.persistence import check_place
from aloof.tabular import Source, TableModel
from aloof.tabular import fit as fit_table
from aloof.text import DEFAULT_EMBEDDER
from aloof.training import discard_checkpoints

__all__ = ["fit"]


def fit(
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The folder for the model.")],
    train: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, Parquet or Arrow: a file, a folder, a glob in quotes, or - for CSV "
            "on standard input. Or a folder or zip archive of images.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column of labels: 1, true or yes for anomalies, 0, false or no for "
            "normal rows, nothing for those nobody looked at.",
        ),
    ] = None,
    anomaly_value: Annotated[
        str | None,
        typer.Option(metavar="V", help="The label of anomalies, where it is another."),
    ] = None,
    method: Annotated[
        str, typer.Option(metavar="[dp|mml|mml-dp|vae]", help="How to learn from labels.")
    ] = "dp",
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that names the rows.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column not to learn from. Repeatable."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="Take a column for a number, category, boolean, timestamp or text. "
            "Repeatable.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of free text to read. Repeatable."),
    ] = None,
    embedder: Annotated[
        str,
        typer.Option(
            help="What makes numbers of text: all-minilm-l6-v2, hashing, or the folder or name "
            "of a sentence-transformers model."
        ),
    ] = DEFAULT_EMBEDDER,
    normal: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Images: the normal ones.")
    ] = None,
    anomaly: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Images: the anomalies.")
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Images: a table of file names and labels."),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(min=2, help="Images: resize to so many pixels. Default: as most are."),
    ] = None,
    members: Annotated[int, typer.Option(min=1, help="Networks in the ensemble.")] = 5,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the rows. Default: 150, fewer for many rows; images: 20 to 100; "
            "text alone: 10 to 150.",
        ),
    ] = None,
    calibration: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.9, help="Share of rows held out for thresholds and p-values."
        ),
    ] = 0.2,
    max_rows: Annotated[
        int, typer.Option(min=1, help="Learn from a sample where there are more rows.")
    ] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="One seed, one model.")] = 0,
    device: Device = "auto",
    delimiter: Delimiter = None,
    encoding: Encoding = "utf8",
    file_format: FileFormat = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a model that is there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Learn what is normal from a table with a few labelled anomalies.

    Columns may hold numbers, categories, true and false, times, text (**--text**), and gaps.
    Rows without a label count as normal. A part of them is held out to calibrate with.

    A killed fit continues where it was when the same command is given again, and ends with the
    same bytes.

    Example: **aloof fit train.csv --label fraud --id payment --out model**

    Images: **aloof fit --normal good/ --anomaly bad/ --size 64 --out model**, or one folder
    with **--labels labels.csv**.
    """
    started = time.monotonic()
    check_place(out, force=force)
    of_images = {"--normal": normal, "--anomaly": anomaly, "--labels": labels, "--size": size}
    if are_images(train, of_images):
        refuse(
            "images", {"--drop": drop, "--kind": kind, "--text": text, "--format": file_format}
        )
        refuse("images", {"--max-rows": None if max_rows == 1_000_000 else max_rows})
        refuse("images", {"--embedder": None if embedder == DEFAULT_EMBEDDER else embedder})
        fit_images_command(
            train,
            out,
            folders=(normal, anomaly),
            labels=(labels, id, label, anomaly_value, delimiter, encoding),
            settings={
                "size": size,
                "method": method,
                "members": members,
                "calibration": calibration,
                "seed": seed,
                "device": device,
                "max_epochs": epochs,
            },
            as_json=as_json,
        )
        return
    refuse("a table", of_images)
    if train is None:
        fail("There is nothing to learn from. Name a table, or a folder of images.")
    source = opened(train, delimiter, encoding, file_format)
    settings: dict[str, Any] = {
        "label": label,
        "anomaly_value": anomaly_value,
        "method": method,
        "id": id,
        "drop": drop or (),
        "kinds": _kinds(kind or []),
        "text": text or (),
        "embedder": embedder,
        "members": members,
        "calibration": calibration,
        "seed": seed,
        "max_rows": max_rows,
        "device": device,
        "max_epochs": epochs,
        "verbose": sys.stderr.isatty(),
    }
    model = _fitted(source, out.with_name(f".{out.name}.checkpoint"), settings)
    model.save(out)
    _report(model, out, time.monotonic() - started, as_json)


def _fitted(source: Source, checkpoint: Path, settings: dict[str, Any]) -> TableModel:
    """Fit, or go on with a fit that was killed."""
    try:
        return fit_table(source, checkpoint=checkpoint, **settings)
    except StaleCheckpointError:
        if not source.paths:  # standard input cannot be read again
            raise
        typer.echo("A killed fit had other data or settings; starting over.", err=True)
        discard_checkpoints(checkpoint)
        return fit_table(source, checkpoint=checkpoint, **settings)
    except KeyboardInterrupt:
        typer.echo("The same command continues.", err=True)
        raise


def _kinds(pairs: list[str]) -> dict[str, Any]:
    kinds = {}
    for pair in pairs:
        column, equals, kind = pair.rpartition("=")
        if not equals or not column:
            fail(f"--kind must be COLUMN=KIND, such as code=category; got {pair!r}.")
        kinds[column] = kind
    return kinds


def _report(model: TableModel, out: Path, seconds: float, as_json: bool) -> None:
    training = model.training
    if as_json:
        found = {
            "model": str(out),
            "columns": list(model.columns),
            "dropped": dict(model.encoder.dropped),
            "threshold": model.threshold.as_dict(),
            "training": training,
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
        return
    sampled = training["n_used"] < training["n_rows"]
    of_all = f", a sample of {training['n_rows']:,}" if sampled else ""
    typer.echo(
        f"Learned from {training['n_training']:,} rows and {training['n_anomalies']:,} "
        f"labelled anomalies in {len(model.columns)} columns{of_all}; "
        f"{training['n_calibration']:,} rows held out to calibrate. {seconds:.1f} s."
    )
    typer.echo(f"It flags {model.threshold}. To change that: aloof threshold {out} --help")
    typer.echo(f"The model is in {out}. Next: aloof score {out} DATA --out scores.csv")
