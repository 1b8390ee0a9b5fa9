"""``aloof bench next``: fill as many cells of the paper's tables as time allows."""

from __future__ import annotations

import json
import time
from math import ceil
from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.bench.paper.kinds import KINDS
from aloof.bench.paper.queue import Done, Tried, choose, find_least, run_task
from aloof.bench.paper.status import Status, Task, look
from aloof.bench.specification import known
from aloof.cli.bench.command import Device, Jobs, names, stoppable, typed
from aloof.cli.bench.progress import running
from aloof.cli.bench.status import (
    Experiments,
    Results,
    device_kind,
    tell_problems,
)
from aloof.exceptions import ExperimentError
from aloof.phrases import count, duration
from aloof.training import resolve_device

__all__ = ["next"]


def next(
    minutes: Annotated[float, typer.Option(help="How long it may run, in minutes.")],
    results: Results = Path("results"),
    experiments: Experiments = Path("experiments"),
    device: Device = "auto",
    only: Annotated[
        str | None,
        typer.Option(
            help="Kinds of studies, separated by commas: images, odds, text, planning."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="Tables, separated by commas; see aloof bench status. Default: all."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run, and run nothing.")
    ] = False,
    jobs: Jobs = 2,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object for each command.")
    ] = False,
) -> None:
    """Run what the paper's tables still lack, most important first, and stop in time.

    Works through the list of **aloof bench status**, taking as much as measured speeds say
    will fit. Each experiment writes its records into results/NAME and updates its tables. When
    the time is up, whatever is running stops; records are kept, and the next call carries on.

    On a machine with a GPU, systems without networks are skipped. On a machine without one,
    they come first, and what takes longer than there is time for is skipped. Jobs stop at the
    next epoch or case; worker processes (ODDS with two jobs) stop at once.

    Example: **aloof bench next --minutes 20 --only images**
    """
    ends = time.monotonic() + 60 * minutes
    if not minutes > 0:
        raise ExperimentError(f"--minutes must be more than 0; got {minutes:g}.")
    resolve_device(device)
    kinds = names("only", only)
    if kinds is not None:
        _check_kinds(kinds)
    tables = names("table", table)
    tried: Tried = set()
    ran: list[Done] = []
    while True:
        found = look(results, experiments, device=device_kind(device), tables=tables)
        if found.results.problems:
            raise ExperimentError(found.results.problems[0])
        if not ran:
            tell_problems(found)
        tasks = choose(found, ends - time.monotonic(), kinds=kinds, tried=tried)
        if not tasks and not ran:
            _refuse(found, minutes, ends - time.monotonic(), kinds)
        if dry_run or not tasks:
            break
        for task in tasks:
            left = ends - time.monotonic()
            if left > 0:
                ran.append(_run(task, results, left, found, tried, device, jobs, as_json))
        if ends <= time.monotonic():
            break
    if dry_run:
        for task in tasks:
            _tell(task, as_json=as_json)
        return
    _tell_end(ran, as_json=as_json)


def _check_kinds(kinds: list[str]) -> None:
    try:
        known("kind of study", KINDS)(tuple(kinds))
    except ValueError as error:
        raise ExperimentError(str(error)) from error


def _refuse(found: Status, minutes: float, left: float, kinds: list[str] | None) -> None:
    least = find_least(found, kinds=kinds)
    if least is None:
        of_kinds = kinds is None or any(w.experiment.kind.name in kinds for w in found.works)
        where = " on this device" if found.works and of_kinds else ""
        raise ExperimentError(f"Nothing is left to run{where}. See aloof bench status.")
    # Looking takes time, too, and not always the same.
    least_minutes = minutes + (least.seconds - left) / 60 + 0.1
    raise ExperimentError(
        f"Nothing fits into {minutes:g} minutes. Ask for {ceil(10 * least_minutes) / 10:g} or "
        f"more: {least.work.cell.label} ({least.work.experiment.name}), "
        f"{count(least.n_cases, 'case')}, takes about {duration(least.estimate.minutes)} "
        f"({least.estimate.how}); the rest is a margin."
    )


def _run(
    task: Task,
    results: Path,
    seconds: float,
    found: Status,
    tried: Tried,
    device: str,
    jobs: int,
    as_json: bool,
) -> Done:
    if not as_json:
        typer.echo(f"{seconds / 60:.1f} min left. ", nl=False)
        _tell(task, as_json=False)
    started = time.monotonic()
    with stoppable(results / task.bundle.experiment.name):
        try:
            with running() as report:
                done = run_task(
                    task,
                    results,
                    seconds,
                    found.speeds,
                    device=device,
                    jobs=jobs,
                    command=typed(),
                    on_event=report,
                    tried=tried,
                )
        except Exception as error:  # data that is not there, too little memory
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            typer.echo(f"{task.bundle.experiment.name} did not run: {reason}", err=True)
            done = Done(0, task.n_cases, (reason,), ())
    taken = (time.monotonic() - started) / 60
    for note in done.notes:
        typer.echo(note, err=True)
    if as_json:
        outcome: dict[str, Any] = {"run": done.n_run, "left": done.n_left}
        outcome |= {"failed": len(done.errors), "minutes_taken": round(taken, 2)}
        typer.echo(json.dumps({**task.record, **outcome}))
    else:
        left = f", {done.n_left:,} left" if done.n_left else ""
        typer.echo(f"  {count(done.n_run, 'case')} in {taken:.1f} min{left}.")
    return done


def _tell(task: Task, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(task.record))
        return
    typer.echo(
        f"{task.bundle.command}\n  {count(len(task.bundle.works), 'cell')}, "
        f"{count(task.n_cases, 'case')}, about "
        f"{duration(task.estimate.minutes)} ({task.estimate.how})"
    )


def _tell_end(ran: list[Done], *, as_json: bool) -> None:
    errors = [error for done in ran for error in done.errors]
    if not as_json:
        n_run, n_left = sum(done.n_run for done in ran), sum(done.n_left for done in ran)
        rest = f", {n_left:,} of the planned ones left" if n_left else ""
        typer.echo(
            f"Ran {count(n_run, 'case')}{rest}. To see what is missing: aloof bench status"
        )
    if errors:
        first = errors[0].rstrip(".")
        typer.echo(
            f"{len(errors)} failed. The first error: {first}. Run the command again to retry.",
            err=True,
        )
        raise typer.Exit(1)
