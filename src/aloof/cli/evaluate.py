"""``aloof evaluate``: how well a model agrees with labels."""

from __future__ import annotations

import json
from typing import Annotated

import numpy as np
import typer

from aloof.cli.group import fail, warner
from aloof.cli.images import is_image_model
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
from aloof.tabular import Evaluation, TableModel, evaluate_scores

__all__ = ["evaluate"]


def evaluate(
    model: Model,
    data: Data,
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
    as_json: Json = False,
) -> None:
    """Compare scores and decisions with labels.

    Rows without a label have no say. The file may be larger than memory.

    Example: **aloof evaluate model new.parquet --label fraud**
    """
    if is_image_model(model):
        fail("aloof evaluate compares with the labels of a table; this is a model of images.")
    fitted = TableModel.load(model, device=device)
    column = fitted.label if label is None else label
    if column is not None:
        value = fitted.anomaly_value if anomaly_value is None else anomaly_value
        fitted = fitted.with_label(column, value)
    source = opened(data, delimiter, encoding, file_format)
    labels, scores, warn = [], [], warner()
    with counting_rows("Scoring", source.n_rows) as done:
        for batch in source.batches():
            labels.append(fitted.labels(batch))
            scores.append(fitted.anomaly_score(batch, warn=warn))
            done(batch.num_rows)
    every = np.concatenate(scores)
    found = evaluate_scores(
        np.concatenate(labels), every, fitted.decide(every), threshold=str(fitted.threshold)
    )
    typer.echo(json.dumps(found.as_dict()) if as_json else _words(found))


def _words(found: Evaluation) -> str:
    precision = "none flagged" if found.precision is None else f"{found.precision:.1%}"
    without = f", {found.n_unlabelled:,} without a label" if found.n_unlabelled else ""
    return "\n".join(
        [
            f"{found.n_rows:,} rows: {found.n_anomalies:,} anomalies, {found.n_normal:,} "
            f"normal{without}",
            f"AUROC              {found.auroc:.1%}",
            f"average precision  {found.average_precision:.1%}",
            f"Flagging {found.threshold}:",
            f"precision          {precision}",
            f"recall             {found.recall:.1%}",
            f"                   {'flagged':>10} {'not flagged':>12}",
            f"anomalies          {found.true_positives:>10,} {found.false_negatives:>12,}",
            f"normal rows        {found.false_positives:>10,} {found.true_negatives:>12,}",
        ]
    )
