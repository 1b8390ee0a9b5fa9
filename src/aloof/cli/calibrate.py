"""``aloof calibrate``: thresholds and p-values from data that was not trained on."""

from __future__ import annotations

import json

import typer

from aloof.cli.options import (
    Anomaly,
    AnomalyValue,
    Data,
    Delimiter,
    Device,
    Encoding,
    FileFormat,
    Id,
    Json,
    Label,
    Labels,
    Model,
    Normal,
    called,
)
from aloof.models.loading import open_model

__all__ = ["calibrate"]


def calibrate(
    context: typer.Context,
    model: Model,
    data: Data,
    label: Label = None,
    anomaly_value: AnomalyValue = None,
    normal: Normal = None,
    anomaly: Anomaly = None,
    labels: Labels = None,
    id: Id = None,
    device: Device = "auto",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    file_format: FileFormat = None,
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
