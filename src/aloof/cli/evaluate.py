"""``aloof evaluate``: how well a model agrees with labels."""

from __future__ import annotations

import json
from datetime import UTC, datetime
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
from aloof.models import Evaluation
from aloof.models.loading import open_model
from aloof.persistence import identity

__all__ = ["evaluate"]


@also(LABELLING, READING)
def evaluate(
    context: typer.Context,
    model: Model,
    data: Data,
    missing_columns: MissingColumns = "refuse",
    masks: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Images only: masks of the anomalies, to see whether defects are found where "
            "they are.",
        ),
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Compare scores and decisions with labels.

    Rows without a label are ignored. The table may be larger than memory.

    Example: **aloof evaluate model new.parquet --label fraud**

    **--json** also prints the data, the date and which model it was, for **aloof card**.

    Images: **aloof evaluate model new-images/ --normal good --anomaly bad**, or **--labels
    labels.csv**. With **--masks masks/**, heat maps are compared with masks as well.
    """
    fitted = open_model(model, device=device)
    found = called(context, fitted, fitted.evaluate, data)
    if found.upside_down:
        typer.echo(
            f"warning: normal {fitted.things} score higher than anomalies. Are the labels "
            "swapped? If not, these are not the kind of anomalies that the model looks for.",
            err=True,
        )
    if not as_json:
        typer.echo(_words(found, fitted.things))
        return
    date = datetime.now(UTC).date().isoformat()
    what = {"data": data, "date": date, "model": identity(model)}
    typer.echo(json.dumps({**found.as_dict(), **what}))


def _of_pixels(found: Evaluation) -> list[str]:
    if found.pixel_auroc is None or found.pro is None:
        return []
    return [
        f"AUROC of pixels    {found.pixel_auroc:.1%}",
        f"overlap (PRO)      {found.pro:.1%}",
    ]


def _words(found: Evaluation, things: str) -> str:
    precision = "none flagged" if found.precision is None else f"{found.precision:.1%}"
    without = f", {found.n_unlabelled:,} without a label" if found.n_unlabelled else ""
    return "\n".join(
        [
            f"{found.n_rows:,} {things}: {found.n_anomalies:,} anomalies, {found.n_normal:,} "
            f"normal{without}",
            f"AUROC              {found.auroc:.1%}",
            f"average precision  {found.average_precision:.1%}",
            *_of_pixels(found),
            f"Flagging {found.threshold}:",
            f"precision          {precision}",
            f"recall             {found.recall:.1%}",
            f"                   {'flagged':>10} {'not flagged':>12}",
            f"anomalies          {found.true_positives:>10,} {found.false_negatives:>12,}",
            f"normal {things:<12}{found.false_positives:>10,} {found.true_negatives:>12,}",
        ]
    )
