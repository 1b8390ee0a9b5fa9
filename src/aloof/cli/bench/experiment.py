"""What all experiments have in common: a file of options, stopping, tables at the end."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from aloof.exceptions import ExperimentError
from aloof.experiments.experiment import read_options
from aloof.experiments.table import Grid, to_rich

__all__ = [
    "Options",
    "Records",
    "TablesOnly",
    "chosen",
    "command_line",
    "names",
    "numbers",
    "progress",
    "show",
    "stoppable",
]

Options = Annotated[
    Path | None,
    typer.Option(help="A TOML file with any option of the experiment; those here win."),
]
TablesOnly = Annotated[
    bool, typer.Option("--tables-only", help="Run nothing: make tables of what is there.")
]
Records = Annotated[
    bool, typer.Option("--json", help="Print the records as JSON lines, no table.")
]


def names(option: str, text: str | None) -> list[str] | None:
    """Return what stands between commas, at least one thing."""
    if text is None:
        return None
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise ExperimentError(f"--{option} is empty: give one, or several with commas between.")
    return found


def numbers(option: str, text: str | None) -> list[float] | None:
    """Return the numbers that stand between commas."""
    parts = names(option, text)
    try:
        return None if parts is None else [float(part) for part in parts]
    except ValueError:
        raise ExperimentError(
            f"--{option} must be a number, or several with commas between; got {text!r}."
        ) from None


def chosen(experiment: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a TOML file, and those given on the command line in their place."""
    base = {} if experiment is None else read_options(experiment)
    return {**base, **{key: value for key, value in given.items() if value is not None}}


def command_line() -> str:
    """Return what the user typed, for the manifest."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


@contextmanager
def stoppable(folder: Path) -> Iterator[None]:
    """Say where an interrupted experiment has got to."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. What is done is in {folder}; the same command continues.", err=True
        )
        raise typer.Exit(130) from None


@contextmanager
def progress() -> Iterator[Progress]:
    """Show bars on a terminal; elsewhere, nothing."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        yield bar


def show(
    grids: Sequence[Grid], records: Sequence[Mapping[str, Any]], folder: Path, *, as_json: bool
) -> None:
    """Print the tables and where they are, or the records."""
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
        return
    console = Console(width=None if sys.stdout.isatty() else 200)
    for grid in grids:
        console.print(to_rich(grid))
    console.print(f"Results are in {folder}.", highlight=False)
