"""``aloof fit``: from a table, or from images, to a model."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.cli.group import fail
from aloof.cli.options import (
    Anomaly,
    Delimiter,
    Device,
    Encoding,
    FileFormat,
    Json,
    Labels,
    Normal,
    given,
    passed,
)
from aloof.cli.progress import progress_bar
from aloof.exceptions import StaleCheckpointError
from aloof.models import Model
from aloof.models.kinds import kind_for
from aloof.persistence import check_target
from aloof.text import DEFAULT_EMBEDDER
from aloof.training import discard_checkpoints

__all__ = ["fit"]


def fit(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="The folder for the model.")],
    data: Annotated[
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
    normal: Normal = None,
    anomaly: Anomaly = None,
    labels: Labels = None,
    size: Annotated[
        int | None,
        typer.Option(min=2, help="Images: resize to so many pixels. Default: as most are."),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(help="Images: 1 for grey, 3 for colours. Default: grey if all are."),
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
    encoding: Encoding = None,
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
    check_target(out, force=force)
    kind_of_model = kind_for(data, given(context))
    checkpoint = out.with_name(f".{out.name}.checkpoint")
    with progress_bar("Reading") as progress:
        (options,) = passed(
            context,
            kind_of_model.model.kind,
            kind_of_model.fit,
            own=("out", "force"),
            kinds=kind,
            drop=drop or (),
            text=text or (),
            checkpoint=checkpoint,
            verbose=sys.stderr.isatty(),
            progress=progress,
        )
        if kind:
            options["kinds"] = _kinds(kind)
        if device != "auto":
            options["device"] = device
        fit = partial(kind_of_model.fit, data, **options)
        model = _fitted(fit, checkpoint, again=data != "-")
    model.save(out)
    _report(model, out, time.monotonic() - started, as_json)


def _fitted(fit: Callable[[], Model], checkpoint: Path, *, again: bool) -> Model:
    """Fit, or go on with a fit that was killed; `again` says whether data can be read again."""
    try:
        return fit()
    except StaleCheckpointError:
        if not again:
            raise
        typer.echo("A killed fit had other data or settings; starting over.", err=True)
        discard_checkpoints(checkpoint)
        return fit()
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


def _report(model: Model, out: Path, seconds: float, as_json: bool) -> None:
    training = model.training
    if as_json:
        found = {"model": str(out), **model.describe(), "seconds": round(seconds, 3)}
        typer.echo(json.dumps(found))
        return
    typer.echo(
        f"Learned from {training['n_training']:,} {model.things} and "
        f"{training['n_anomalies']:,} labelled anomalies{model.extent}; "
        f"{training['n_calibration']:,} {model.things} held out to calibrate. {seconds:.1f} s."
    )
    typer.echo(f"It flags {model.threshold}. To change that: aloof threshold {out} --help")
    typer.echo(f"The model is in {out}. Next: aloof score {out} DATA --out scores.csv")
