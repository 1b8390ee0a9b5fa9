"""``aloof data``: which data sets there are, getting them, and where they are."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from aloof.datasets import Dataset, dataset_path, fetch, find_dataset, list_datasets

__all__ = ["data"]

data = typer.Typer(
    no_args_is_help=True,
    help=(
        "Data sets of the benchmarks: list them, get them, say where they are.\n\n"
        "Files are downloaded once into a cache folder and checked. Where the environment "
        "variable ALOOF_DATA names a folder, they are read from there (odds/cardio.mat and "
        "so on) and nothing is downloaded."
    ),
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@data.command("list")
def _list(as_json: _Json = False) -> None:
    """Show every data set, and whether its file is on this machine."""
    entries = [_described(entry) for entry in list_datasets()]
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    table = Table("name")
    for column in ("rows", "columns", "anomalies"):
        table.add_column(column, justify="right")
    table.add_column("here")
    table.add_column("home", overflow="fold")
    for entry in entries:
        table.add_row(
            entry["name"],
            f"{entry['n_rows']}",
            f"{entry['n_columns']}",
            f"{entry['n_anomalies']} ({entry['n_anomalies'] / entry['n_rows']:.1%})",
            "yes" if entry["present"] else "no",
            entry["home"],
        )
    Console().print(table)


@data.command("get")
def _get(
    names: Annotated[list[str], typer.Argument(help="Names of data sets, or all.")],
    as_json: _Json = False,
) -> None:
    """Download what is not here yet, check it, and print where it is."""
    wanted = _wanted(names)
    for name in wanted:
        path = fetch(name)
        if not as_json:
            typer.echo(path)
    if as_json:
        typer.echo(json.dumps([_described(find_dataset(name)) for name in wanted], indent=2))


@data.command("path")
def _path(
    names: Annotated[list[str], typer.Argument(help="Names of data sets, or all.")],
    as_json: _Json = False,
) -> None:
    """Print where files are looked for, whether or not they are there; get nothing."""
    entries = [_described(find_dataset(name)) for name in _wanted(names)]
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    for entry in entries:
        typer.echo(entry["path"])


def _wanted(names: list[str]) -> list[str]:
    every = [entry.name for entry in list_datasets()]
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return [find_dataset(name).name for name in chosen]


def _described(entry: Dataset) -> dict[str, Any]:
    file = dataset_path(entry.name)
    return {
        "name": entry.name,
        "n_rows": entry.n_rows,
        "n_columns": entry.n_columns,
        "n_anomalies": entry.n_anomalies,
        "path": str(file),
        "present": file.is_file(),
        "home": entry.home,
        "urls": list(entry.urls),
        "sha256": list(entry.sha256),
    }
