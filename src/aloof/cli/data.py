"""``aloof data``: which data sets there are, getting them, and where they are."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from aloof.datasets import (
    Dataset,
    PublicImages,
    dataset_path,
    fetch,
    fetch_images,
    find_dataset,
    find_image_dataset,
    list_datasets,
    list_image_datasets,
)

__all__ = ["data"]

data = typer.Typer(
    no_args_is_help=True,
    help=(
        "Data sets of the benchmarks: list them, get them, say where they are.\n\n"
        "Files are downloaded once into a cache folder and checked. Where the environment "
        "variable ALOOF_DATA names a folder, they are read from there (odds/cardio.mat, "
        "mnist/... and so on) and nothing is downloaded."
    ),
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@data.command("list")
def _list(as_json: _Json = False) -> None:
    """Show every data set, and whether its file is on this machine."""
    entries = [_described(entry) for entry in list_datasets()]
    images = [_described_images(entry) for entry in list_image_datasets()]
    if as_json:
        typer.echo(json.dumps([*entries, *images], indent=2))
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
    table = Table()
    table.add_column("images", no_wrap=True)
    for column in ("training", "test", "classes", "pixels"):
        table.add_column(column, justify="right")
    table.add_column("here")
    table.add_column("home", overflow="fold")
    for entry in images:
        channels, height, width = entry["shape"]
        table.add_row(
            entry["name"],
            f"{entry['n_train']}",
            f"{entry['n_test']}",
            f"{len(entry['classes'])}",
            f"{width} x {height}{' x 3' if channels == 3 else ''}",
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
        path = fetch_images(name) if name in _image_names() else fetch(name)
        if not as_json:
            typer.echo(path)
    if as_json:
        typer.echo(json.dumps([_entry(name) for name in wanted], indent=2))


@data.command("path")
def _path(
    names: Annotated[list[str], typer.Argument(help="Names of data sets, or all.")],
    as_json: _Json = False,
) -> None:
    """Print where files are looked for, whether or not they are there; get nothing."""
    entries = [_entry(name) for name in _wanted(names)]
    if as_json:
        typer.echo(json.dumps(entries, indent=2))
        return
    for entry in entries:
        typer.echo(entry["path"])


def _wanted(names: list[str]) -> list[str]:
    every = [entry.name for entry in list_datasets()] + _image_names()
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return [_entry(name)["name"] for name in chosen]


def _image_names() -> list[str]:
    return [entry.name for entry in list_image_datasets()]


def _entry(name: str) -> dict[str, Any]:
    if name in _image_names():
        return _described_images(find_image_dataset(name))
    return _described(find_dataset(name))


def _described_images(entry: PublicImages) -> dict[str, Any]:
    return {
        "name": entry.name,
        "n_train": entry.n_train,
        "n_test": entry.n_test,
        "classes": list(entry.classes),
        "shape": list(entry.shape),
        "path": str(entry.path),
        "present": entry.present,
        "home": entry.home,
        "urls": [url for file in entry.files for url in file.urls],
        "sha256": [digest for file in entry.files for digest in file.sha256],
    }


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
