"""``aloof data``: which data sets there are, getting them, and what they repeat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from aloof.cli.duplicates import duplicates

if TYPE_CHECKING:
    from aloof.datasets import Dataset

__all__ = ["data"]

data = typer.Typer(
    no_args_is_help=True,
    help=(
        "List the benchmark data sets, download them, show where they are, and find "
        "duplicate images.\n\nFiles are downloaded once into a cache folder and checked. If "
        "the environment variable ALOOF_DATA names a folder, they are read from there "
        "(odds/cardio.mat, mnist/... and so on) and nothing is downloaded."
    ),
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Names = Annotated[list[str], typer.Argument(help="Names of data sets, or all.")]


@data.command("list")
def _list(as_json: _Json = False) -> None:
    """Show every data set, and whether its files are on this machine."""
    from rich.console import Console
    from rich.table import Table

    from aloof.datasets import list_datasets

    if as_json:
        _print_json(list_datasets())
        return
    table = Table()
    table.add_column("name", no_wrap=True)
    for column in ("holds", "here", "home"):
        table.add_column(column, overflow="fold")
    for entry in list_datasets():
        table.add_row(entry.name, entry.content, "yes" if entry.present else "no", entry.home)
    Console().print(table)


@data.command("get")
def _get(names: _Names, as_json: _Json = False) -> None:
    """Download what is missing, check it, and print where it is."""
    wanted = _wanted(names)
    for entry in wanted:
        entry.check()
        if not as_json:
            typer.echo(entry.path)
    if as_json:
        _print_json(wanted)


@data.command("path")
def _path(names: _Names, as_json: _Json = False) -> None:
    """Print where files are looked for, whether or not they exist. Downloads nothing."""
    wanted = _wanted(names)
    if as_json:
        _print_json(wanted)
        return
    for entry in wanted:
        typer.echo(entry.path)


data.command("duplicates")(duplicates)


def _wanted(names: list[str]) -> tuple[Dataset, ...]:
    from aloof.datasets import find_dataset, list_datasets

    every = [entry.name for entry in list_datasets()]
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return tuple(map(find_dataset, chosen))


def _print_json(entries: tuple[Dataset, ...]) -> None:
    typer.echo(json.dumps([entry.describe() for entry in entries], indent=2))
