"""``aloof info``: what is in a model."""

from __future__ import annotations

import json
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from aloof.cli.images import describe_images
from aloof.cli.options import Json, Model
from aloof.persistence import read_model
from aloof.tabular import TableModel

__all__ = ["info"]


def info(model: Model, as_json: Json = False) -> None:
    """Show what a model was made from, its columns and its threshold.

    Example: **aloof info model**
    """
    content = read_model(model)
    if "images" in content[0]:
        describe_images(model, content, as_json=as_json)
        return
    fitted = TableModel.from_model(model, content, device="cpu")
    found = _facts(fitted, content[0]["versions"])
    if as_json:
        typer.echo(json.dumps(found))
        return
    training = fitted.training
    typer.echo(
        f"{found['estimator']}, {found['members']} members, aloof {found['versions']['aloof']}"
    )
    typer.echo(f"trained on     {training['source'] or 'a frame'}: {_rows(training)}")
    typer.echo(f"labels         {fitted.label or 'none'}{_meaning(fitted)}")
    typer.echo(f"id             {fitted.id or 'none'}")
    typer.echo(f"flags          {fitted.threshold}")
    table = Table("column", "kind", "in training", "missing")
    for column in found["columns"]:
        table.add_row(
            column["name"], column["kind"], column["values"], f"{column['missing_share']:.1%}"
        )
    Console().print(table)
    for name, reason in found["dropped"].items():
        typer.echo(f"not used: {name} ({reason})")
    for words in training["warnings"]:
        typer.echo(f"warning: {words}", err=True)


def _facts(model: TableModel, versions: dict[str, str]) -> dict[str, Any]:
    asked = dict.fromkeys(model.drop, "dropped by the user")
    return {
        "estimator": type(model.detector).__name__,
        "method": model.detector.method,
        "members": len(model.detector.member_seeds_),
        "label": model.label,
        "anomaly_value": model.anomaly_value,
        "id": model.id,
        "threshold": {
            "rule": model.threshold.as_dict(),
            "anomaly_score": -float(model.detector.offset_),
        },
        "columns": [
            {
                "name": column.name,
                "kind": column.kind,
                "values": column.summary(),
                "missing_share": column.missing_share,
                "features": len(column.features),
            }
            for column in model.encoder.columns
        ],
        "dropped": {**model.encoder.dropped, **asked},
        "training": model.training,
        "versions": versions,
    }


def _rows(training: dict[str, Any]) -> str:
    sampled = training["n_used"] < training["n_rows"]
    of_all = f" (a sample of {training['n_rows']:,})" if sampled else ""
    return (
        f"{training['n_used']:,} rows{of_all}, {training['n_anomalies']:,} labelled anomalies, "
        f"{training['n_calibration']:,} held out to calibrate"
    )


def _meaning(model: TableModel) -> str:
    return "" if model.anomaly_value is None else f", {model.anomaly_value!r} is an anomaly"
