"""``aloof threshold``: how many rows a model flags."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from aloof.calibration import Threshold
from aloof.cli.group import fail
from aloof.cli.options import Json, Model
from aloof.models.loading import open_model

__all__ = ["threshold"]


def threshold(
    model: Model,
    share: Annotated[
        float | None, typer.Option(help="Share of normal rows to flag, such as 0.01.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="ALERTS/ROWS", help="Alerts per rows, such as 50/10000."),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="Share of false alarms among the flagged rows (false discovery rate), such "
            "as 0.05. Applies to the rows scored together."
        ),
    ] = None,
    value: Annotated[
        float | None, typer.Option(help="Flag anomaly scores above this value.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show or change how many rows a model flags, without training again.

    Example: **aloof threshold model --budget 50/10000**
    """
    fitted = open_model(model, device="cpu")
    given = {"share": share, "budget": budget, "fdr": fdr, "value": value}
    if any(part is not None for part in given.values()):
        try:
            rule = Threshold(**given)  # type: ignore[arg-type]
        except ValueError as error:
            fail(error)
        fitted.set_threshold(**rule.as_dict())  # type: ignore[arg-type]
        fitted.save(model)
    rule, level = fitted.threshold, -float(fitted.detector.offset_)
    if as_json:
        typer.echo(json.dumps({"rule": rule.as_dict(), "anomaly_score": level}))
        return
    typer.echo(f"{model} flags {rule}.")
    if rule.fdr is not None:
        typer.echo(f"Rows with an anomaly score below {level:.6g} are never flagged.")
    elif rule.value is None:
        typer.echo(f"That means anomaly scores above {level:.6g}.")
