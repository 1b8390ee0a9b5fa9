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
    """Take the threshold and p-values of a model from new data. Nothing is trained again.

    What is labelled as an anomaly is left out. The data must not be that of the training, and
    should be what is to come.

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
            f"{model} is calibrated with {n:,} {fitted.things} and flags {fitted.threshold}."
        )
