"""``aloof refit``: a model that goes on learning from answers."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from aloof.cli.group import fail
from aloof.cli.options import Device, Json, Model, Store
from aloof.feedback.refitting import CONFIRMED_WEIGHT
from aloof.feedback.refitting import refit as refit_model
from aloof.feedback.store import AnswerStore
from aloof.feedback.versions import add_version, use_version
from aloof.models.images import ImageModel
from aloof.models.loading import open_model
from aloof.models.table import TableModel

__all__ = ["refit"]


def refit(
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="What to learn from, in place of the training table or images.",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Rows or images to compare the rankings on, such as last month's. Default: "
            "DATA.",
        ),
    ] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Use the new version even if it is worse.")
    ] = False,
    keep_both: Annotated[
        bool, typer.Option("--keep-both", help="Keep the new version and use the old one.")
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Passes over the data. Default: 15 in 100 of those of a fit."),
    ] = None,
    confirmed_weight: Annotated[
        int,
        typer.Option(min=1, help="How often a row answered as normal is seen, others once."),
    ] = CONFIRMED_WEIGHT,
    store: Store = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Teach a model what reviewers answered, in a fraction of the time of a fit.

    It begins with the members there are. Answers are joined by id to the training table, or to
    DATA; those about other rows are learned from what was kept of them. Old and new are
    compared on answers that were held out (a fifth, from 20 answers on) and in their rankings.

    The new version is used unless it is worse; the old one is kept beside it, in
    MODEL.versions. **aloof versions MODEL** lists them and goes back.

    Example: **aloof refit model --compare march.csv**

    Images: **aloof refit model --compare new-images/**. What was answered about images in
    new-images is learned from there.
    """
    if accept and keep_both:
        fail("--accept and --keep-both exclude each other.")
    fitted = open_model(model, device=device)
    if not isinstance(fitted, TableModel | ImageModel):
        fail(f"{model} is a model of {fitted.kind}: fit it again, in Python.")
    with AnswerStore.of(model, store) as kept:
        standing = kept.standings()
    done = refit_model(
        fitted,
        standing,
        data,
        compare=compare,
        max_epochs=epochs,
        confirmed_weight=confirmed_weight,
        verbose=sys.stderr.isatty(),
    )
    version = add_version(model, done.model)
    used = accept or not (keep_both or done.comparison.is_worse)
    if used:
        use_version(model, version.number)
    if as_json:
        found: dict[str, Any] = {
            name: value
            for name, value in vars(done).items()
            if name not in ("model", "comparison")
        }
        found |= {
            "version": version.number,
            "parent": version.parent,
            "is_used": used,
            **asdict(done.comparison),
            "is_worse": done.comparison.is_worse,
        }
        typer.echo(json.dumps(found))
        return
    for line in done.lines():
        typer.echo(line)
    if used:
        typer.echo(
            f"{model} is version {version.number} now. To go back: aloof versions {model} "
            f"--use {version.parent}"
        )
    else:
        why = "It is worse, so" if done.comparison.is_worse else "As you wish,"
        typer.echo(
            f"{why} {model} is still version {version.parent}. To use the new one: aloof "
            f"versions {model} --use {version.number}"
        )
