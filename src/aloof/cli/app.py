"""The sub-commands, gathered; each is imported when it is asked for."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof._version import __version__
from aloof.cli.bench import bench
from aloof.cli.data import data
from aloof.cli.group import Commands

__all__ = ["app"]

_COMMANDS = (
    "fit",
    "score",
    "evaluate",
    "explain",
    "report",
    "threshold",
    "calibrate",
    "drift",
    "serve",
    "review",
    "label",
    "refit",
    "versions",
    "export",
    "info",
    "card",
    "demo",
)


class _Aloof(Commands):
    modules = {name: f"aloof.cli.{name}" for name in _COMMANDS}  # noqa: RUF012


app = typer.Typer(
    name="aloof",
    cls=_Aloof,
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
        "Find anomalies when you have plenty of normal data and only a few labelled "
        "anomalies.\n\nStart here: **aloof fit train.csv --label fraud --out model**, then "
        "**aloof explain model new.csv**. To see what a few labels are worth: **aloof "
        "demo**.\n\nExit codes: 0 success, 1 unexpected error, 2 bad usage or bad input (one "
        "line says what to do), 130 interrupted."
    )
)
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks. Works anywhere on the line.")
    ] = False,
) -> None:
    pass


app.add_typer(bench, name="bench")
app.add_typer(data, name="data")
