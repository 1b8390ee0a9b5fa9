"""``aloof data duplicates``: which images a set holds more than once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from aloof.datasets import Duplicates, Pair

__all__ = ["duplicates"]

_ROWS = {
    "train-test": "in the test set, with a copy in the training set",
    "test": "in the test set, with another copy there",
    "train": "in the training set, with another copy there",
}


def duplicates(
    names: Annotated[list[str], typer.Argument(help="Names of image sets.")],
    similarity: Annotated[
        float,
        typer.Option(
            min=0.01,
            max=1.0,
            help="Correlation of edges above which two images count as alike. Shifted or "
            "cropped copies need a lower value; digits and clothes can exceed it without "
            "being copies.",
        ),
    ] = 0.9,
    top: Annotated[
        int, typer.Option(min=1, help="Number of pairs in the JSON and in the picture.")
    ] = 24,
    pictures: Annotated[
        Path | None,
        typer.Option(help="Folder for a picture of the most similar pairs.", file_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Count duplicate images between training and test set, and within each.

    Compares every image with every other, as it is and mirrored: about a minute on one
    processor core for 70,000 images. Look at the pairs (--pictures): images that look alike
    are not always copies.

    Example: **aloof data duplicates cats-vs-dogs --pictures pairs**
    """
    from aloof.cli.progress import progress_bar
    from aloof.datasets import PublicImages, find_dataset, find_duplicates
    from aloof.report import check_drawing, image_pairs, save_figure

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
            _show(found, f"{entry.title}: {entry.content}")
        shown = found.among("train-test")[:top]
        if pictures is not None and shown:
            path = pictures / f"{entry.name}.png"
            save_figure(image_pairs([_pictured(found, pair) for pair in shown]), path)
            if not as_json:
                typer.echo(path)
    if as_json:
        typer.echo(json.dumps(described, indent=2))


def _show(found: Duplicates, title: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    table.add_column("images", no_wrap=True)
    table.add_column("same pixels", justify="right")
    table.add_column(f"similarity of {found.similarity:g} or more", justify="right")
    for parts, label in _ROWS.items():
        counts = found.images(parts, same=True), found.images(parts)
        table.add_row(label, *(f"{count:,}" for count in counts))
    console = Console()
    console.print(table)
    console.print(
        "Without the test images in the first row, no AUROC would change by more than "
        f"{100 * found.largest_change:.2f} points.",
        highlight=False,
    )


def _pictured(found: Duplicates, pair: Pair) -> tuple[str, Any, Any]:
    images = {"train": found.dataset.train, "test": found.dataset.test}
    first, second = (images[part][index] for part, index in (pair.first, pair.second))
    title = f"{pair.first[1]} - {pair.second[1]}: {pair.similarity:.2f}"
    return title + (", mirrored" if pair.mirrored else ""), first, second
