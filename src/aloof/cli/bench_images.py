"""``aloof bench images``: the paper's image experiments."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from aloof.exceptions import AloofError, ExperimentError, MissingExtraError
from aloof.experiments.experiment import read_options
from aloof.experiments.image_experiment import ImageExperiment, make_image_experiment
from aloof.experiments.image_results import image_curves, write_image_results
from aloof.experiments.images import run_images, stored_images
from aloof.experiments.table import to_rich
from aloof.training import EpochReport

__all__ = ["images"]


def images(
    dataset: Annotated[
        str | None,
        typer.Option(help="fashion-mnist, mnist, cifar10 or cats-vs-dogs."),
    ] = None,
    gamma_l: Annotated[
        str | None,
        typer.Option(help="Ratios of labelled anomalies. Default: 0,0.01,0.05,0.1,0.2."),
    ] = None,
    gamma_p: Annotated[
        str | None, typer.Option(help="Ratios of hidden anomalies. Default: 0.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: vae, mml, dp, mml-dp, cae, deep-svdd, deep-sad, "
            "deep-sad-ill, classifier, ss-dgm, oc-svm, iforest, kde, ssad, and the last four "
            "with -hybrid. Default: vae,mml,dp."
        ),
    ] = None,
    problems: Annotated[
        int | None,
        typer.Option(help="10: each class with one other; 90: all pairs. Default: 10."),
    ] = None,
    members: Annotated[int | None, typer.Option(help="Of an ensemble. Default: 5.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Of our methods. Default: what suits the image set.")
    ] = None,
    baseline_epochs: Annotated[
        int | None, typer.Option(help="Of deep baselines. Default: 150, twice.")
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(help="Most members of a method to train at once. Default: 150."),
    ] = None,
    experiment: Annotated[
        Path | None,
        typer.Option(help="A TOML file with any option of the experiment; those here win."),
    ] = None,
    device: Annotated[str, typer.Option(help="Where to train.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results. Default: results/ with the name of the TOML file, or of "
            "the image set.",
            file_okay=False,
        ),
    ] = None,
    tables_only: Annotated[
        bool,
        typer.Option("--tables-only", help="Run nothing: make tables of what is there."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the records as JSON lines, no table.")
    ] = False,
) -> None:
    """Take each class as normal, a few images of one other class as labelled anomalies.

    Trains all problems, ratios, methods and members as stacks, with one warm-up for everything
    with the same normal class, and tests on all classes. Meant for a GPU.

    Writes records.jsonl (a line for each problem), table.md, table.csv and curves.png. Stop it
    whenever you like: the same command continues, and loses at most one chunk.

    Example: **aloof bench images --dataset fashion-mnist --gamma-l 0,0.05 --methods vae,dp**
    """
    given: dict[str, Any] = {
        "dataset": dataset,
        "gamma_l": _numbers("--gamma-l", gamma_l),
        "gamma_p": _numbers("--gamma-p", gamma_p),
        "methods": None if methods is None else [m.strip() for m in methods.split(",")],
        "problems": problems,
        "members": members,
        "max_epochs": epochs,
        "baseline_epochs": baseline_epochs,
        "stack": stack,
    }
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    try:
        base = {} if experiment is None else read_options(experiment)
        base.pop("name", None)
        what = make_image_experiment(
            {**base, **{k: v for k, v in given.items() if v is not None}}
        )
        name = what.dataset if experiment is None else experiment.stem
        folder = out or Path("results") / name
        try:
            records = (
                stored_images(what, folder)
                if tables_only
                else _run(what, folder, device, command)
            )
        except KeyboardInterrupt:
            typer.echo(
                f"Interrupted. What is done is in {folder}; the same command continues.",
                err=True,
            )
            raise typer.Exit(130) from None
        if not records:
            raise ExperimentError(f"{folder} holds no result of this experiment.")
    except AloofError as error:
        typer.echo(f"aloof bench: {error}", err=True)
        raise typer.Exit(2) from None
    title = what.title or f"{what.dataset}: labelled anomalies"
    grids = write_image_results(records, folder, title=title, command=command)
    try:
        image_curves(records, folder / "curves.png")
    except MissingExtraError as error:
        typer.echo(f"The picture was not drawn: {error}", err=True)
    if as_json:
        for record in records:
            typer.echo(json.dumps(record))
        return
    console = Console(width=None if sys.stdout.isatty() else 200)
    for grid in grids:
        console.print(to_rich(grid))
    console.print(f"Results are in {folder}.", highlight=False)


def _numbers(name: str, text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        typer.echo(f"aloof bench: {name} takes numbers with commas between.", err=True)
        raise typer.Exit(2) from None


def _run(
    what: ImageExperiment, folder: Path, device: str, command: str
) -> list[dict[str, Any]]:
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        all_cases = bar.add_task("cases")
        chunk = bar.add_task("this chunk", total=None)

        def on_chunk(done: int, total: int, words: str) -> None:
            bar.update(all_cases, completed=done, total=total)
            bar.update(chunk, description=words, completed=0, total=None)

        def on_epoch(report: EpochReport) -> None:
            bar.update(chunk, completed=report.epoch, total=report.max_epochs)

        return run_images(
            what, folder, device=device, command=command, on_chunk=on_chunk, on_epoch=on_epoch
        )
