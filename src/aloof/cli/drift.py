"""``aloof drift``: whether data still looks like what was learned from."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import typer

from aloof.cli.group import fail, tell_skipped
from aloof.cli.options import READING, Data, Device, Json, Model, also, passed
from aloof.models.changes import LEAST, LEVEL, Change
from aloof.models.images import ImageModel
from aloof.models.images.changes import find_image_changes
from aloof.models.loading import open_model
from aloof.models.table import TableModel
from aloof.models.table.changes import find_changes
from aloof.phrases import count

__all__ = ["drift"]


@also(READING)
def drift(
    context: typer.Context,
    model: Model,
    data: Data,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Test whether the columns, the codes and the score are as in training.

    Each has a statistic of its own: Kolmogorov-Smirnov for numbers and scores, chi-squared for
    categories and gaps, the energy distance for codes. p-values allow for all of them: a table
    of the same source has any column called changed once in a hundred times at most. What
    differs by less than 0.05 does not count, however sure it is.

    Of images, the brightness, the codes and the score are tested, and other sizes and colours
    are named.

    Example: **aloof drift model march.csv**
    """
    fitted = open_model(model, device=device)
    if not isinstance(fitted, TableModel | ImageModel):
        fail(f"{model} is a model of {fitted.kind}, which keeps nothing to compare with.")
    (reading,) = passed(context, fitted.kind, fitted.read)
    if isinstance(fitted, ImageModel):
        images = fitted.read(data, **reading)
        tell_skipped(images.skipped)
        found, odd = find_image_changes(fitted, images), fitted.drift(images)
    else:
        source: Any = fitted.read(data, **reading)
        if data == "-":
            source = source.read()
        found, odd = find_changes(fitted, source), fitted.drift(source)
    changed = [change for change in found if change.has_changed]
    if as_json:
        listed = [{**asdict(each), "has_changed": each.has_changed} for each in found]
        said = [asdict(each) for each in odd]
        typer.echo(json.dumps({"columns": listed, "odd": said, "n_changed": len(changed)}))
        return
    for each in odd:
        typer.echo(f"{each.words}.")
    width = max((len(change.name) for change in found), default=0)
    for change in sorted(found, key=lambda change: not change.has_changed):
        typer.echo(f"{change.name:<{width}}  {_line(change)}".rstrip())
    if not changed and not odd:
        typer.echo(
            f"Nothing has changed by more than chance (p-values by Holm, {LEVEL:g}) and by at "
            f"least {LEAST:g}."
        )
        return
    typer.echo(
        f"{count(len(changed), 'test')} of {len(found)} "
        f"{'says' if len(changed) == 1 else 'say'} that something changed. If these "
        f"{fitted.things} are what is to come:"
    )
    typer.echo(f"  aloof calibrate {model} {data}   sets thresholds by them, trains nothing")
    typer.echo(f"  aloof refit {model} {data}   learns from them, and from answers")


def _line(change: Change) -> str:
    if change.p_value is None:
        return "not tested"
    size = "" if change.size is None else f"difference {change.size:.2f}, "
    mark = "CHANGED" if change.has_changed else "as before"
    words = f"; {change.words}" if change.has_changed and change.words else ""
    p = f"p-value {change.adjusted:.2g} ({change.test})"
    return f"{mark:<10}{change.picture:<12}{size}{p}{words}"
