"""``aloof bench status``: how far the paper's tables are."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from aloof.bench.paper.speeds import DeviceKind
from aloof.bench.paper.status import Status, look, name_cells
from aloof.bench.tables import Grid, to_rich
from aloof.cli.bench.command import names
from aloof.exceptions import ExperimentError
from aloof.phrases import count, duration

__all__ = ["Experiments", "Results", "device_kind", "status", "tell_problems"]

Results = Annotated[
    Path, typer.Option(help="The folder that holds the results.", file_okay=False)
]
Experiments = Annotated[
    Path,
    typer.Option(
        help="The folder that holds the TOML files of the experiments.", file_okay=False
    ),
]

_REASONS = {
    "missing": "missing",
    "again": "from an older revision, to be rerun",
    "published": "not run as published",
    "more": "with more problems",
}


def status(
    results: Results = Path("results"),
    experiments: Experiments = Path("experiments"),
    table: Annotated[
        str | None,
        typer.Option(
            help="Show only these tables, separated by commas. Their names are in the output."
        ),
    ] = None,
    missing: Annotated[
        bool,
        typer.Option("--missing", help="Show only what is missing, and name every cell."),
    ] = False,
    device: Annotated[
        str,
        typer.Option(
            help="The device to estimate times for: cpu, cuda, or auto for this machine's."
        ),
    ] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything as one JSON object.")
    ] = False,
) -> None:
    """Show which cells of the paper's tables are filled, and how to fill the others.

    Our methods have one cell for each setting: ours, and paper (the paper's own numbers and
    networks). Peers have one cell, which either setting fills; a run as their authors
    published it is preferred. A cell counts as filled once ten problems (or seeds) were run
    with the current system; "older" means that the system has changed since.

    Then come the commands that fill the rest, most important first, and how long they take
    on this machine: measured (same system and data, same kind of device), estimated (from
    similar ones) or guessed. **aloof bench next --minutes 20** runs as many as fit.

    Example: **aloof bench status --table images,cats-vs-dogs --missing**
    """
    tables = names("table", table)
    found = look(results, experiments, device=device_kind(device), tables=tables)
    if as_json:
        typer.echo(json.dumps(found.record, indent=1))
        return
    tell_problems(found)
    console = Console(width=None if sys.stdout.isatty() else 200)
    if not results.is_dir():
        console.print(f"There is no folder {results}, so every cell is missing.")
    if not missing:
        console.print(to_rich(_overview(found)))
    _tell_tasks(console, found, cells=missing)
    _tell_totals(console, found)


def device_kind(device: str) -> DeviceKind:
    """Return which kind of device is meant; one that is not there will do for estimates."""
    if device == "auto":
        return "gpu" if torch.cuda.is_available() else "cpu"
    kind = device.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        raise ExperimentError(f"--device must be auto, cpu or cuda; got {device!r}.")
    return "cpu" if kind == "cpu" else "gpu"


def tell_problems(found: Status) -> None:
    """Say what was left out: a line for each problem, one for everything else."""
    for line in found.results.problems:
        typer.echo(f"warning: {line}", err=True)
    notes = found.results.notes
    if notes:
        rest = count(len(notes) - 1, "more note")
        more = f" aloof bench status --json has {rest}." if len(notes) > 1 else ""
        typer.echo(f"note: {notes[0]}{more}", err=True)


def _overview(found: Status) -> Grid:
    rows = [
        (
            f"{table.name}: {table.title}",
            str(len(table.fillings)),
            str(table.count("filled")),
            str(table.count("older")),
            str(table.count("partial", "missing")),
            table.share("ours"),
            table.share("paper"),
            table.share("peer"),
            table.replicates,
        )
        for table in found.tables
    ]
    counted = ("cells", "filled", "older", "missing")
    settings = ("ours filled", "paper filled", "peers filled")
    header = ("table", *counted, *settings, "problems, seeds or runs")
    return Grid("The paper's tables and figures", header, tuple(rows))


def _tell_tasks(console: Console, found: Status, *, cells: bool) -> None:
    for task in found.tasks:
        reasons = task.reasons.items()
        what = ", ".join(f"{count(n, 'cell')} {_REASONS[why]}" for why, n in reasons)
        where = "GPU" if task.on_gpu and found.speeds.device == "gpu" else "CPU"
        estimate = task.estimate
        console.print(
            f"\n{duration(estimate.minutes):>11} on a {where}, {estimate.how}: {what}; "
            f"{count(task.n_cases, 'case')}",
            highlight=False,
        )
        console.print(f"  {task.bundle.command}", soft_wrap=True, highlight=False)
        if cells:
            console.print(f"    {task.cells}", soft_wrap=True, highlight=False, style="dim")
    for picture in found.pictures:
        console.print(f"\n  a picture: {picture.cell.table}", highlight=False)
        console.print(f"  {picture.command}", soft_wrap=True, highlight=False)
    if found.uncovered:
        console.print(
            f"\n{len(found.uncovered)} cells have no experiment: "
            + name_cells(found.uncovered),
            soft_wrap=True,
            highlight=False,
        )


def _tell_totals(console: Console, found: Status) -> None:
    record = found.record
    minutes = record["minutes"]
    device = "GPU" if found.speeds.device == "gpu" else "CPU"
    staying = record["few"]["staying"]
    few = f" {count(staying, 'cell')} with 10 of 90 problems will stay so." if staying else ""
    older = f", {record['older']} more by older revisions" if record["older"] else ""
    times = [f"{duration(minutes['networks'])} on a {device}"] if minutes["networks"] else []
    if minutes["shallow"]:
        times.append(f"{duration(minutes['shallow'])} on a CPU for systems without networks")
    rest = f" All these commands take {', and '.join(times)}." if times else ""
    console.print(
        f"\n{record['filled']} of {record['cells']} cells are filled{older}.{rest}{few}",
        highlight=False,
        soft_wrap=True,
    )
