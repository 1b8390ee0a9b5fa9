"""``aloof bench``: the paper's tables and figures, run here."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from aloof.exceptions import ExperimentError, MissingExtraError
from aloof.experiments.experiment import make_experiment, read_options
from aloof.experiments.figure1 import latent_spaces
from aloof.experiments.names import did_you_mean
from aloof.experiments.plan import make_plan
from aloof.experiments.records import write_text
from aloof.experiments.results import write_plot, write_tables
from aloof.experiments.runner import run_plan, stored
from aloof.experiments.settings import SETTINGS
from aloof.experiments.table import to_rich
from aloof.experiments.workers import Event, EventCallback
from aloof.report import latent_map, save_figure
from aloof.training import EpochReport

__all__ = ["bench"]

bench = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Run the paper's experiments and compare with other systems on the same splits.",
)


@bench.command("odds")
def _odds(
    datasets: Annotated[
        str | None, typer.Option(help="Names with commas between, or all. See aloof data list.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: vae, mml, dp, mml-dp, any peer (deep-sad, oc-svm, "
            "...), ours, peers or all. Default: ours."
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Of our methods: default (one configuration for all data), paper (its "
            "hyper-parameters for each data set), or both with a comma. Default: default."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many splits. Default: 10.")] = None,
    gamma_l: Annotated[
        str | None,
        typer.Option(help="Share of labelled anomalies; several with commas. Default: 0.01."),
    ] = None,
    gamma_p: Annotated[
        str | None,
        typer.Option(help="Share of hidden anomalies (pollution). Default: 0."),
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option(help="A TOML file that says all of the above; options given here win."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, one thread each.")] = 2,
    device: Annotated[str, typer.Option(help="Where our methods train.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results. Default: results/NAME.", file_okay=False),
    ] = None,
    tables_only: Annotated[
        bool,
        typer.Option("--tables-only", help="Run nothing: make tables of what is there."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the records as JSON lines, no table.")
    ] = False,
) -> None:
    """Compare anomaly detectors on the ODDS data sets.

    Every method sees the same rows: a random 60:40 split for each seed, with a share gamma-l
    of labelled anomalies among the training rows. All seeds of our methods on one data set
    train as one run with one warm-up; other systems run one by one.

    Writes records.jsonl, splits.json, table.md, table.csv, plot.png and manifest.json. Stop
    it whenever you like: the same command continues, and runs again only what failed or what
    has another configuration or other data now.

    Try first: **aloof bench odds --datasets cardio --methods vae,dp --seeds 2**

    The paper's main table: **aloof bench odds --experiment experiments/odds-main.toml**
    """
    options: dict[str, Any] = {
        "datasets": _split(datasets),
        "methods": _split(methods),
        "settings": _split(setting),
        "seeds": seeds,
    }
    options |= {"gamma_l": _numbers("gamma-l", gamma_l)}
    options |= {"gamma_p": _numbers("gamma-p", gamma_p)}
    given = {key: value for key, value in options.items() if value is not None}
    base = {} if experiment is None else read_options(experiment)
    what = make_experiment({**base, **given})
    folder = out or Path("results") / what.name
    plan = make_plan(what)
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    try:
        with _progress() as report:
            records = (
                stored(plan, folder)
                if tables_only
                else run_plan(
                    plan, folder, jobs=jobs, device=device, command=command, on_event=report
                )
            )
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. What is done is in {folder}; the same command continues.",
            err=True,
        )
        raise typer.Exit(130) from None
    if not records:
        raise ExperimentError(f"{folder} holds no result of this experiment.")
    grids = write_tables(what, records, folder, command=command)
    try:
        write_plot(what, records, folder)
    except MissingExtraError as error:
        typer.echo(f"plot.png was not drawn: {error}", err=True)
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
    else:
        console = Console(width=None if sys.stdout.isatty() else 200)
        for grid in grids:
            console.print(to_rich(grid))
        console.print(f"Results are in {folder}.", highlight=False)
    failed = sum(record["status"] == "error" for record in records)
    if failed:
        typer.echo(
            f"{failed} of {len(records)} fits failed; the reasons are below the table and in "
            f"{folder / 'records.jsonl'}. The same command tries them again.",
            err=True,
        )
        raise typer.Exit(1)


@bench.command("figure1")
def _figure1(
    out: Annotated[Path, typer.Option(help="Folder for the picture.", file_okay=False)] = Path(
        "results/figure1"
    ),
    setting: Annotated[str, typer.Option(help="default or paper.")] = "paper",
    seed: Annotated[int, typer.Option(min=0, help="Of the split and the networks.")] = 0,
    device: Annotated[str, typer.Option(help="Where to train.")] = "auto",
) -> None:
    """Draw the paper's first figure: latent spaces of a VAE and of DP-VAE on thyroid.

    Shows test rows, which neither has seen, mapped with t-SNE. Writes figure1.png and how it
    was made, figure1.json.
    """
    if setting not in SETTINGS:
        hint = did_you_mean(setting, SETTINGS)
        raise ExperimentError(f"There is no setting {setting!r}{hint}")
    with _progress() as report:

        def on_epoch(epoch: EpochReport) -> None:
            report(Event("epoch", "thyroid", 1, epoch.epoch, epoch.max_epochs))

        spaces = latent_spaces(setting=setting, seed=seed, device=device, on_epoch=on_epoch)
    try:
        out.mkdir(parents=True, exist_ok=True)
        save_figure(latent_map(spaces.codes, spaces.y_test, seed=seed), out / "figure1.png")
    except OSError as error:
        raise ExperimentError(
            f"{out} cannot be written to: {error.strerror or error}."
        ) from error
    write_text(out / "figure1.json", json.dumps(spaces.record, indent=2) + "\n")
    for title, auroc in spaces.record["auroc"].items():
        typer.echo(f"{title}: AUROC {100 * auroc:.1f} %")
    typer.echo(out / "figure1.png")


def _split(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _numbers(option: str, text: str | None) -> list[float] | None:
    parts = _split(text)
    try:
        return None if parts is None else [float(part) for part in parts]
    except ValueError:
        raise ExperimentError(
            f"--{option} must be a number, or several with commas between; got {text!r}."
        ) from None


@contextmanager
def _progress() -> Iterator[EventCallback]:
    """Show on a terminal what is running and how much is done; elsewhere, nothing."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    with bar:
        total = bar.add_task("fits", total=None)

        def report(event: Event) -> None:
            if event.kind == "planned":
                bar.update(total, total=event.n_cases)
                return
            if event.kind == "finished":
                bar.advance(total, event.n_cases)
                if event.job in tasks:
                    bar.remove_task(tasks.pop(event.job))
                for message in event.errors[:1]:
                    bar.console.print(f"{event.job} failed: {message}", markup=False)
                return
            if event.job not in tasks:
                tasks[event.job] = bar.add_task(f"  {event.job}", total=None)
            if event.kind == "epoch":
                bar.update(tasks[event.job], completed=event.epoch, total=event.max_epochs)

        yield report
