"""``aloof fit``: from a table, or from images, to a model."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.group import fail
from aloof.cli.options import (
    Anomaly,
    Delimiter,
    Device,
    Encoding,
    FileFormat,
    Header,
    Json,
    Labels,
    Normal,
    Sheet,
    given,
    passed,
)
from aloof.cli.progress import progress_bar
from aloof.exceptions import StaleCheckpointError
from aloof.models import Model
from aloof.models.kinds import kind_for
from aloof.persistence import check_target
from aloof.phrases import count
from aloof.text import DEFAULT_EMBEDDER
from aloof.training import discard_checkpoints

__all__ = ["fit"]


def fit(
    context: typer.Context,
    out: Annotated[
        Path, typer.Option(metavar="MODEL", help="The folder to save the model in.")
    ],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, Excel, Parquet or Arrow: a file, a folder, a glob in quotes, or - "
            "for CSV on standard input. For images, a folder or a zip archive.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="The column with the labels: 1, true or yes for anomalies; 0, false or no "
            "for normal rows; empty if nobody has looked.",
        ),
    ] = None,
    anomaly_value: Annotated[
        str | None,
        typer.Option(
            metavar="V", help="The label that means anomaly, if it is a word of your own."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="[committee|dp|mml|mml-dp|vae]",
            help="How to learn from labels. Default: committee, which takes two to three times "
            "as long as dp; for images dp without a backbone, and for patches vae, with what "
            "labelled defects add.",
        ),
    ] = None,
    id: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that identifies rows.")
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column to ignore. Repeatable."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="Read a column as a number, category, boolean, timestamp or text. Repeatable.",
        ),
    ] = None,
    decimal: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIGN",
            help="The decimal sign in text columns, if the file leaves it open: --decimal , "
            "or, for one column, --decimal amount=, (repeatable).",
        ),
    ] = None,
    thousands: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SIGN",
            help="The thousands separator, used the same way: --thousands . if 1.234 means "
            "1234.",
        ),
    ] = None,
    day_first: Annotated[
        bool | None,
        typer.Option(
            "--day-first/--month-first",
            help="Whether 03/04/2024 is in April or in March, if the dates leave it open.",
            show_default=False,
        ),
    ] = None,
    date_format: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=FORMAT",
            help="How the dates in a column are written, such as 'booked=%d/%m/%y %H:%M' or "
            "booked=DD.MM.YYYY. Repeatable.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of free text to learn from. Repeatable."),
    ] = None,
    embedder: Annotated[
        str,
        typer.Option(
            help="How to turn text into numbers: all-minilm-l6-v2, hashing, or the folder or "
            "name of a sentence-transformers model."
        ),
    ] = DEFAULT_EMBEDDER,
    normal: Normal = None,
    anomaly: Anomaly = None,
    labels: Labels = None,
    masks: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Images only: masks of the anomalies, white where the defect is.",
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Images only: the network whose features to learn from: efficientnet-lite0, "
            "mobilenet-v2, or a file with weights; geometric or cut-paste: a small one that "
            "learns from your images; none: pixels. Default: what is installed.",
        ),
    ] = None,
    patches: Annotated[
        bool | None,
        typer.Option(
            "--patches/--whole",
            help="Images only: look for defects patch by patch, or at images as a whole. "
            "Default: what the images suggest.",
            show_default=False,
        ),
    ] = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Images only: resize to this many pixels; with a backbone, on the longer "
            "side. Patches of more than 1,024 are read tile by tile. Default: the most common "
            "size, at most 256, or 128 without a backbone.",
        ),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(help="Images only: 1 for grey, 3 for colour. Default: grey if all are."),
    ] = None,
    members: Annotated[int, typer.Option(min=1, help="Networks in the ensemble.")] = 5,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes over the rows. Default: 150, or fewer for many rows; images: 20 to "
            "100; text alone: 10 to 150.",
        ),
    ] = None,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="Distil the model to a single network that ranks rows nearly as it does, and "
            "scores them many times as fast. Such a model cannot be refitted.",
        ),
    ] = False,
    calibration: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.9, help="Share of rows to hold out for thresholds and p-values."
        ),
    ] = 0.2,
    max_rows: Annotated[
        int,
        typer.Option(
            min=1, help="Learn from a random sample if there are more rows than this."
        ),
    ] = 1_000_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")] = 0,
    device: Device = "auto",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    header: Header = None,
    file_format: FileFormat = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model.")] = False,
    as_json: Json = False,
) -> None:
    """Learn what is normal from a table with a few labelled anomalies.

    Columns may hold numbers, categories, true and false, times, text (**--text**) and gaps.
    Rows without a label count as normal; some of them are held out for calibration.

    Numbers and dates may be written any way the world writes them: 1.234,56 €, (1,234.56),
    12,5 %, 31/12/2024, 31. Dezember 2024. The command works out how from all values of a
    column, and tells you. If 1.234 or 03/04/2024 could mean two things, and no other column
    settles it, the command asks for **--decimal**, **--thousands**, **--day-first** or
    **--month-first**. The model remembers the answer, so you need not repeat it to score.

    If a fit is killed, run the same command again: it picks up where it stopped and writes the
    same bytes.

    Example: **aloof fit train.csv --label fraud --id payment --out model**

    An export in which 1.234 means 1234: **aloof fit export.csv --thousands . --out model**

    Images: **aloof fit --normal good/ --anomaly bad/ --out model**, or one folder and
    **--labels labels.csv**. With pip install 'aloof[vision]', it learns from the features of
    a pre-trained network. Small defects: **--patches**, with **--masks** if you have them.
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
            instead=kind_of_model.model.instead,
            kinds=kind or None,
            date_formats=date_format or None,
            decimal=decimal or None,
            thousands=thousands or None,
            drop=drop or (),
            text=text or (),
            checkpoint=checkpoint,
            verbose=sys.stderr.isatty(),
            progress=progress,
        )
        if kind:
            options["kinds"] = _pairs("kind", kind, "code=category")
        if date_format:
            example = "'booked=%d/%m/%Y'"
            options["date_formats"] = _pairs("date-format", date_format, example)
        for name, signs in (("decimal", decimal), ("thousands", thousands)):
            if signs:
                options[name] = _signs(name, signs)
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
        typer.echo("An interrupted fit used other data or settings. Starting over.", err=True)
        discard_checkpoints(checkpoint)
    except KeyboardInterrupt:
        typer.echo("Run the same command again to continue.", err=True)
        raise
    return fit()


def _pairs(option: str, pairs: list[str], example: str) -> dict[str, str]:
    found = {}
    for pair in pairs:
        column, equals, value = pair.rpartition("=")
        if not equals or not column:
            wanted = option.rpartition("-")[2].upper()
            fail(f"--{option} must be COLUMN={wanted}, such as {example}; got {pair!r}.")
        found[column] = value
    return found


def _signs(option: str, given: list[str]) -> str | dict[str, str]:
    """Return a sign for all columns, or signs by column."""
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    return _pairs(option, given, "amount=,")


def _report(model: Model, out: Path, seconds: float, as_json: bool) -> None:
    training = model.training
    if as_json:
        found = {"model": str(out), **model.describe(), "seconds": round(seconds, 3)}
        typer.echo(json.dumps(found))
        return
    for words in model.understood:
        typer.echo(f"Read {words}.")
    anomalies = count(training["n_anomalies"], "labelled anomaly", "labelled anomalies")
    typer.echo(
        f"Learned from {training['n_training']:,} {model.things} and {anomalies}"
        f"{model.extent}; held out {training['n_calibration']:,} {model.things} for "
        f"calibration. {seconds:.1f} s."
    )
    if made_fast := training.get("fast"):
        whose = model.things if training["n_calibration"] == 0 else f"held-out {model.things}"
        typer.echo(
            f"Distilled it to one network: on {whose}, its scores have a rank correlation of "
            f"{made_fast['rank_correlation']:.3f} with those of the whole model."
        )
    if n_suspects := training.get("n_suspects"):
        typer.echo(
            f"About {n_suspects:,} {model.things} without a label look like the labelled "
            f"anomalies. To see such {model.things}: aloof review {out} DATA"
        )
    typer.echo(
        f"The model flags {model.threshold}. To change that: aloof threshold {out} --help"
    )
    typer.echo(f"Saved the model in {out}. Next: aloof score {out} DATA --out scores.csv")
