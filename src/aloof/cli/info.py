"""``aloof info``: what is in a model."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table

from aloof.cli.options import Json, Model
from aloof.cli.wording import in_options
from aloof.models.loading import open_model

__all__ = ["info"]


def info(model: Model, as_json: Json = False) -> None:
    """Show what a model was made from, its threshold, and the command to make it again.

    Example: **aloof info model**
    """
    fitted = open_model(model, device="cpu")
    found = fitted.describe()
    if as_json:
        typer.echo(json.dumps(found))
        return
    facts = [*fitted.facts(), ("Made by", f"aloof {found['versions']['aloof']}")]
    width = max(len(term) for term, _ in facts) + 2
    for term, words in facts:
        typer.echo(f"{term:<{width}}{words}")
    if columns := found.get("columns"):
        table = Table("column", "kind", "in training", "missing")
        for column in columns:
            share = f"{column['missing_share']:.1%}"
            table.add_row(column["name"], column["kind"], column["values"], share)
        Console().print(table)
    for name, reason in found.get("dropped", {}).items():
        typer.echo(f"ignored: {name} ({reason})")
    typer.echo("To make it again:")
    for line in found["again"]:
        typer.echo(f"  {line}".rstrip())
    for words in found["training"].get("warnings", ()):
        typer.echo(f"warning: {in_options(words)}", err=True)
