"""What all studies have in common on the command line: options, running, tables at the end."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import typer
from rich.console import Console

from aloof.bench.deadline import Deadline
from aloof.bench.records import Record
from aloof.bench.resuming import will_go_on
from aloof.bench.runner import RECORDS, run_study, stored, write_tables
from aloof.bench.specification import Specification, command_line, specify, widen
from aloof.bench.study import Study, Where
from aloof.bench.tables import to_rich
from aloof.cli.bench.progress import running
from aloof.cli.options import extended
from aloof.datasets import no_downloads
from aloof.exceptions import AloofError, ExperimentError, MissingExtraError
from aloof.training import resolve_device

__all__ = ["Device", "Jobs", "carries_out", "names", "stoppable", "typed"]

_S = TypeVar("_S", bound=Specification)

Device = Annotated[str, typer.Option(help="Where networks train.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of processes, one thread each.")]
_Experiment = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file with any of the experiment's options. Options given here override it."
    ),
]
_Minutes = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        help="Stop after so many minutes, and keep what is done. The same command continues.",
    ),
]
_Ray = Annotated[
    bool,
    typer.Option(
        "--ray",
        help="Run the processes on a Ray cluster: that of RAY_ADDRESS, or this machine.",
    ),
]
_Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for results. Default: results/NAME, after the experiment.",
        file_okay=False,
    ),
]
_TablesOnly = Annotated[
    bool,
    typer.Option("--tables-only", help="Run nothing; make tables from the results that exist."),
]
_Json = Annotated[
    bool, typer.Option("--json", help="Print the records as JSON lines instead of a table.")
]


def carries_out(
    kind: type[_S],
    make: Callable[..., Study[Any]],
    *,
    jobs: int | None = 1,
    cluster: bool = True,
    fields: Mapping[str, str] | None = None,
    folder: Callable[[_S], str] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function that declares the options of a study into the command that runs it.

    The command also has the options of all studies. An option sets the field of the
    specification that has its name; text for a field with several values is split at commas.
    Options that set no field are for `make`.

    Options beside a file ask for a part of its experiment, which is run and printed. What is
    written then shows the whole, as far as the folder has it.

    Parameters
    ----------
    kind
        The specification of the study.
    make
        Makes the study, from the specification and the options that are not in it.
    jobs
        How many processes if nothing is said; None: it runs in one, without the options
        ``--jobs`` and ``--ray``.
    cluster
        Whether they can be those of a Ray cluster; if not, there is no ``--ray``.
    fields
        Fields whose options have other names, by option.
    folder
        Names the folder for results if the specification has no name; None: as the command.
    """
    renamed = fields or {}
    shared: dict[str, tuple[Any, Any]] = {
        "experiment": (_Experiment, None),
        "minutes": (_Minutes, None),
        "device": (Device, "auto"),
        **({} if jobs is None else {"jobs": (Jobs, jobs)}),
        **({} if jobs is None or not cluster else {"ray": (_Ray, False)}),
        "out": (_Out, None),
        "tables_only": (_TablesOnly, False),
        "as_json": (_Json, False),
    }

    def add(declared: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(declared)
        def command(**values: Any) -> None:
            chosen = {name: values.pop(name) for name in shared}
            experiment, out = chosen.pop("experiment"), chosen.pop("out")
            given, rest = {}, {}
            for option, value in values.items():
                field = renamed.get(option, option)
                if field in kind.model_fields:
                    given[field] = _read(kind, field, option, value)
                else:
                    rest[option] = value
            spec = _specified(kind, experiment, given)
            with _naming(experiment):
                study = make(spec, **rest)
            name = spec.name or (declared.__name__ if folder is None else folder(spec))

            def whole() -> tuple[Study[Any], str]:
                own, wider = specify(kind, file=experiment), widen(spec, given, experiment)
                beside = {
                    option: getattr(wider, field)
                    for option in values
                    if given.get(field := renamed.get(option, option)) is not None
                    and getattr(wider, field) != getattr(own, field)
                }
                with no_downloads():
                    made = study if wider == spec else make(wider, **rest)
                return made, command_line(declared.__name__, experiment, beside)

            partly = (
                experiment
                and not chosen["tables_only"]
                and any(value is not None for value in given.values())
            )
            _carry_out(
                study, out or Path("results") / name, whole=whole if partly else None, **chosen
            )

        return extended(command, shared)

    return add


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


def typed() -> str:
    """Return the command as it was typed."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


@contextmanager
def stoppable(folder: Path) -> Iterator[None]:
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


def _read(kind: type[Specification], field: str, option: str, value: Any) -> Any:
    """Return the value of an option as the specification takes it."""
    declared = get_type_hints(kind)[field]
    if value is None or get_origin(declared) is not tuple:
        return value
    option, one = option.replace("_", "-"), get_args(declared)[0]
    parts = names(option, value) or []
    try:
        return [one(part) for part in parts]
    except ValueError:
        number = "a whole number" if one is int else "a number"
        raise ExperimentError(
            f"--{option} must be {number}, or several separated by commas; got {value!r}."
        ) from None


def _specified(kind: type[_S], experiment: Path | None, given: dict[str, Any]) -> _S:
    """Return the specification of a TOML file, with what was given here in its place."""
    spec = specify(kind, given, file=experiment)
    if not spec.name and experiment is not None:
        spec = spec.model_copy(update={"name": experiment.stem})
    return spec


@contextmanager
def _naming(experiment: Path | None) -> Iterator[None]:
    """Put the name of the TOML file before what is wrong with a study made from it."""
    try:
        yield
    except AloofError as error:
        if experiment is None or str(experiment) in str(error):
            raise
        raise ExperimentError(f"{experiment}: {error}") from error


def _carry_out(
    study: Study[Any],
    folder: Path,
    *,
    whole: Callable[[], tuple[Study[Any], str]] | None,
    device: str,
    minutes: float | None,
    tables_only: bool,
    as_json: bool,
    jobs: int = 1,
    ray: bool = False,
) -> None:
    """Run a study, write its tables and pictures into a folder, and print them.

    `whole` makes the study that this one is a part of, and says how to run it. Where the
    folder holds more of it, the tables there show all of that.
    """
    with stoppable(folder), running() as report:
        records = (
            stored(study, folder)
            if tables_only
            else run_study(
                study,
                folder,
                jobs=jobs,
                device=device,
                command=typed(),
                on_event=report,
                deadline=None if minutes is None else Deadline(60 * minutes),
                cluster=ray,
            )
        )
    if not records and minutes is not None:
        what_to_do = (
            "Run it again: it goes on from where it was stopped."
            if will_go_on(folder)
            else "Give it more --minutes, or a smaller part."
        )
        raise ExperimentError(f"Nothing was finished in {minutes:g} minutes. {what_to_do}")
    if not records:
        raise ExperimentError(f"{folder} holds no results of this experiment.")
    shown, held, made_with = study, records, typed()
    if whole is not None:
        try:
            larger, how = whole()
            if len(found := stored(larger, folder)) > len(records):
                shown, held, made_with = larger, found, how
        except AloofError as error:
            typer.echo(
                f"The tables in {folder} show what was run now, and nothing else: {error}",
                err=True,
            )
    grids = write_tables(shown, held, folder, command=made_with)
    try:
        if not tables_only:
            study.draw_models(Where(resolve_device(device), folder, jobs))
        shown.draw(held, folder)
    except MissingExtraError as error:
        typer.echo(f"Could not draw the pictures: {error}", err=True)
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
    else:
        console = Console(width=None if sys.stdout.isatty() else 200)
        for grid in grids if shown is study else study.grids(records):
            console.print(to_rich(grid))
        console.print(f"The results are in {folder}.", highlight=False)
        if shown is not study:
            console.print("Its tables show all of the experiment.", highlight=False)
    _tell_failures(records, folder)


def _tell_failures(records: list[Record], folder: Path) -> None:
    failed = sum(record.get("status") == "error" for record in records)
    if failed:
        typer.echo(
            f"{failed} of {len(records)} fits failed. The reasons are below the table and in "
            f"{folder / RECORDS}. Run the same command again to retry them.",
            err=True,
        )
        raise typer.Exit(1)
