"""``aloof data``: which data sets there are, getting them, and what images they repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from aloof.cli.progress import progress_bar
from aloof.datasets import (
    Dataset,
    Duplicates,
    Pair,
    PublicImages,
    find_dataset,
    find_duplicates,
    list_datasets,
)
from aloof.report import check_drawing, image_pairs, save_figure

__all__ = ["data"]

data = typer.Typer(
    no_args_is_help=True,
    help=(
        "Data sets of the benchmarks: list them, get them, say where they are and which "
        "images they repeat.\n\n"
        "Files are downloaded once into a cache folder and checked. Where the environment "
        "variable ALOOF_DATA names a folder, they are read from there (odds/cardio.mat, "
        "mnist/... and so on) and nothing is downloaded."
    ),
)

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_Names = Annotated[list[str], typer.Argument(help="Names of data sets, or all.")]


@data.command("list")
def _list(as_json: _Json = False) -> None:
    """Show every data set, and whether its files are on this machine."""
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
    """Download what is not here yet, check it, and print where it is."""
    wanted = _wanted(names)
    for entry in wanted:
        entry.check()
        if not as_json:
            typer.echo(entry.path)
    if as_json:
        _print_json(wanted)


@data.command("path")
def _path(names: _Names, as_json: _Json = False) -> None:
    """Print where files are looked for, whether or not they are there; get nothing."""
    wanted = _wanted(names)
    if as_json:
        _print_json(wanted)
        return
    for entry in wanted:
        typer.echo(entry.path)


@data.command("duplicates")
def _duplicates(
    names: Annotated[list[str], typer.Argument(help="Names of image sets.")],
    similarity: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1.0,
            help="Correlation of edges from which on two images are alike. Shifted or cropped "
            "copies need less; digits and clothes can have more without being copies.",
        ),
    ] = 0.9,
    top: Annotated[int, typer.Option(min=1, help="Pairs in JSON and in a picture.")] = 24,
    pictures: Annotated[
        Path | None,
        typer.Option(help="Folder for a picture of the most similar pairs.", file_okay=False),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Count images that are there twice: in training and test, and within each.

    Every image is compared with every other, as it is and mirrored; a minute of one processor
    core for 70,000 images. Look at the pairs (--pictures): alike is not always a copy.

    Example: **aloof data duplicates cats-vs-dogs --pictures pairs**
    """
    entries = [find_dataset(name, PublicImages) for name in names]
    if pictures is not None:
        check_drawing()  # before a minute of work, not after it
        pictures.mkdir(parents=True, exist_ok=True)
    described = []
    for entry in entries:
        with progress_bar(f"Comparing {entry.name}") as progress:
            found = find_duplicates(entry.load(), similarity=similarity, progress=progress)
        described.append(found.describe(top))
        if not as_json:
            _show_duplicates(entry, found)
        shown = found.among("train-test")[:top]
        if pictures is not None and shown:
            path = pictures / f"{entry.name}.png"
            save_figure(image_pairs([_pictured(found, pair) for pair in shown]), path)
            if not as_json:
                typer.echo(path)
    if as_json:
        typer.echo(json.dumps(described, indent=2))


def _show_duplicates(entry: PublicImages, found: Duplicates) -> None:
    table = Table(title=f"{entry.title}: {entry.content}")
    table.add_column("images", no_wrap=True)
    table.add_column("same pixels", justify="right")
    table.add_column(f"similarity of {found.similarity:g} and more", justify="right")
    for parts, label in (
        ("train-test", "of the test, with one in training"),
        ("test", "of the test, with another there"),
        ("train", "of training, with another there"),
    ):
        counts = found.images(parts, same=True), found.images(parts)
        table.add_row(label, *(f"{count:,}" for count in counts))
    console = Console()
    console.print(table)
    console.print(
        f"Without the test images in the first row no AUROC would change by more than "
        f"{100 * found.largest_change:.2f} points.",
        highlight=False,
    )


def _pictured(found: Duplicates, pair: Pair) -> tuple[str, Any, Any]:
    images = {"train": found.dataset.train, "test": found.dataset.test}
    first, second = (images[part][index] for part, index in (pair.first, pair.second))
    title = f"{pair.first[1]} - {pair.second[1]}: {pair.similarity:.2f}"
    return title + (", mirrored" if pair.mirrored else ""), first, second


def _wanted(names: list[str]) -> tuple[Dataset, ...]:
    every = [entry.name for entry in list_datasets()]
    chosen = dict.fromkeys(n for name in names for n in (every if name == "all" else [name]))
    return tuple(map(find_dataset, chosen))


def _print_json(entries: tuple[Dataset, ...]) -> None:
    typer.echo(json.dumps([entry.describe() for entry in entries], indent=2))
