"""``aloof calibrate``: thresholds and p-values from data that was not trained on."""

from __future__ import annotations

import json

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

__all__ = ["calibrate"]


@also(LABELLING, READING)
def calibrate(
    context: typer.Context,
    model: Model,
    data: Data,
    missing_columns: MissingColumns = "refuse",
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Set a model's threshold and p-values by new data, without training again.

    Use data that the model was not trained on and that looks like what it will score. Rows
    labelled as anomalies are left out.

    Example: **aloof calibrate model last-month.parquet**
    """
    fitted = open_model(model, device=device)
    called(context, fitted, fitted.calibrate, data)
    fitted.save(model)
    known = fitted.detector.calibration_scores_
    n = 0 if known is None else len(known)
    level = -float(fitted.detector.offset_)
    if as_json:
        typer.echo(json.dumps({"n_calibration": n, "anomaly_score": level}))
    else:
        typer.echo(
            f"{model} is now calibrated with {n:,} {fitted.things} and flags "
            f"{fitted.threshold}."
        )
