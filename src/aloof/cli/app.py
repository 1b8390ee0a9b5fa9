"""The sub-commands, gathered."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof._version import __version__
from aloof.cli.bench import bench
from aloof.cli.data import data
from aloof.cli.demo import demo
from aloof.cli.planning import planning

__all__ = ["app"]

app = typer.Typer(
    name="aloof",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"aloof {__version__}")
        raise typer.Exit


@app.callback(
    help=(
        "Semi-supervised anomaly detection: lots of mostly normal data, a handful of "
        "labelled anomalies.\n\nStart with **aloof demo**."
    )
)
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


app.command()(demo)
bench.command("planning")(planning)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")
