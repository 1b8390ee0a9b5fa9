"""``aloof card``: a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.group import fail
from aloof.cli.options import Model
from aloof.exceptions import ModelError
from aloof.io import write_file
from aloof.models.card import model_card, read_figures
from aloof.models.loading import open_model

__all__ = ["card"]


def card(
    model: Model,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write. Default: standard output."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The heading. Default: the name of the folder.")
    ] = None,
    license: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Licence of the model, such as apache-2.0."),
    ] = None,
    use: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What the model is meant for, and what not."),
    ] = None,
    figures: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="What aloof evaluate --json printed. Repeatable.", exists=True
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a model card in Markdown, with the front matter that model hubs read.

    What the model learned from, how it was fitted, its threshold and calibration, its limits,
    versions and digests come from the model. What it is for, its licence and how good it is
    come from you; without them, the card says that they are unknown.

    Example: **aloof card model --out CARD.md**

    With figures: **aloof evaluate model test.csv --json > test.json**, then **aloof card model
    --figures test.json --license apache-2.0 --use "Card payments in Norway; a person looks at
    every alert." --out CARD.md**
    """
    fitted = open_model(model, device="cpu")
    found = [read_figures(path) for path in figures or ()]
    text = model_card(fitted, model, name=name, license=license, use=use, figures=found)
    if out is None:
        typer.echo(text, nl=False)
        return
    if out.exists() and not force:
        fail(f"{out} already exists. Choose another name, or replace it with --force.")
    if out.resolve().parent == model.resolve():
        fail(f"{out} is inside the model, which holds nothing else. Choose a place beside it.")
    write_file(out, text, ModelError)
    typer.echo(f"The card is in {out}.")
