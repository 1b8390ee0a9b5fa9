"""What all benchmarks have in common: options, running, tables at the end."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console

from aloof.bench.deadline import Deadline
from aloof.bench.records import Record
from aloof.bench.runner import RECORDS, run_study, stored, write_tables
from aloof.bench.specification import Specification, specify
from aloof.bench.study import Study, Where
from aloof.bench.tables import to_rich
from aloof.cli.bench.progress import running
from aloof.exceptions import AloofError, ExperimentError, MissingExtraError
from aloof.training import resolve_device

__all__ = [
    "Device",
    "Experiment",
    "Jobs",
    "Json",
    "Minutes",
    "Out",
    "Ray",
    "TablesOnly",
    "carry_out",
    "names",
    "naming",
    "numbers",
    "specified",
]

_S = TypeVar("_S", bound=Specification)

Experiment = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file with any of the experiment's options. Options given here override it."
    ),
]
Device = Annotated[str, typer.Option(help="Where networks train.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes, one thread each.")]
Minutes = Annotated[
    float | None,
    typer.Option(
        help="When to stop, with what is done by then. The same command continues.",
        min=0.1,
    ),
]
Ray = Annotated[
    bool,
    typer.Option(
        "--ray",
        help="Run the processes on a Ray cluster: that of RAY_ADDRESS, or this machine.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for results. Default: results/NAME, after the experiment.",
        file_okay=False,
    ),
]
TablesOnly = Annotated[
    bool,
    typer.Option("--tables-only", help="Run nothing; make tables from the results that exist."),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print the records as JSON lines instead of a table.")
]


def names(option: str, text: str | None) -> list[str] | None:
    """Return what stands between commas, at least one thing."""
    if text is None:
        return None
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise ExperimentError(
            f"--{option} is empty. Give one value, or several separated by commas."
        )
    return found


def numbers(option: str, text: str | None) -> list[float] | None:
    """Return the numbers that stand between commas."""
    parts = names(option, text)
    try:
        return None if parts is None else [float(part) for part in parts]
    except ValueError:
        raise ExperimentError(
            f"--{option} must be a number, or several separated by commas; got {text!r}."
        ) from None


def specified(kind: type[_S], experiment: Path | None, given: dict[str, Any]) -> _S:
    """Return the specification of a TOML file, with what was given here in its place."""
    spec = specify(kind, given, file=experiment)
    if not spec.name and experiment is not None:
        spec = spec.model_copy(update={"name": experiment.stem})
    return spec


@contextmanager
def naming(experiment: Path | None) -> Iterator[None]:
    """Put the name of the TOML file before what is wrong with a study made from it."""
    try:
        yield
    except AloofError as error:
        if experiment is None or str(experiment) in str(error):
            raise
        raise ExperimentError(f"{experiment}: {error}") from error


def carry_out(
    study: Study[Any],
    folder: Path,
    *,
    device: str = "auto",
    jobs: int = 1,
    ray: bool = False,
    minutes: float | None = None,
    tables_only: bool = False,
    as_json: bool = False,
    draw: Callable[[Where], None] | None = None,
) -> None:
    """Run a study, write its tables and pictures, and print them.

    Parameters
    ----------
    study
        What to run.
    folder
        For results.
    device, jobs, ray, minutes, tables_only, as_json
        As the user gave them.
    draw
        Draws a picture that needs more than records; not with `tables_only`.
    """
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    with _stoppable(folder), running() as report:
        records = (
            stored(study, folder)
            if tables_only
            else run_study(
                study,
                folder,
                jobs=jobs,
                device=device,
                command=command,
                on_event=report,
                deadline=None if minutes is None else Deadline(60 * minutes),
                cluster=ray,
            )
        )
    if not records:
        raise ExperimentError(f"{folder} holds no results of this experiment.")
    grids = write_tables(study, records, folder, command=command)
    try:
        if draw is not None and not tables_only:
            draw(Where(resolve_device(device), folder, jobs))
        study.draw(records, folder)
    except MissingExtraError as error:
        typer.echo(f"Could not draw the pictures: {error}", err=True)
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
    else:
        console = Console(width=None if sys.stdout.isatty() else 200)
        for grid in grids:
            console.print(to_rich(grid))
        console.print(f"The results are in {folder}.", highlight=False)
    _tell_failures(records, folder)


@contextmanager
def _stoppable(folder: Path) -> Iterator[None]:
    """Say where an interrupted run has got to."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. Finished work is in {folder}; run the same command again to "
            "continue.",
            err=True,
        )
        raise typer.Exit(130) from None


def _tell_failures(records: list[Record], folder: Path) -> None:
    failed = sum(record.get("status") == "error" for record in records)
    if failed:
        typer.echo(
            f"{failed} of {len(records)} fits failed. The reasons are below the table and in "
            f"{folder / RECORDS}. Run the same command again to retry them.",
            err=True,
        )
        raise typer.Exit(1)
