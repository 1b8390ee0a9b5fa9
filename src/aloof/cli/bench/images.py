"""``aloof bench images``: the paper's image experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from aloof.cli.bench.experiment import (
    Options,
    Records,
    TablesOnly,
    chosen,
    command_line,
    names,
    numbers,
    progress,
    show,
    stoppable,
)
from aloof.exceptions import ExperimentError, MissingExtraError
from aloof.experiments.image_experiment import ImageExperiment, make_image_experiment
from aloof.experiments.image_plot import write_image_plot
from aloof.experiments.image_results import write_image_results
from aloof.experiments.images import run_images, stored_images
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
    experiment: Options = None,
    device: Annotated[str, typer.Option(help="Where to train.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results. Default: results/ with the name of the TOML file, or of "
            "the image set.",
            file_okay=False,
        ),
    ] = None,
    tables_only: TablesOnly = False,
    as_json: Records = False,
) -> None:
    """Take each class as normal, a few images of one other class as labelled anomalies.

    Trains all problems, ratios, methods and members as stacks, with one warm-up for everything
    with the same normal class, and tests on all classes. Meant for a GPU.

    Writes records.jsonl (a line for each problem), table.md, table.csv and curves.png. Stop it
    whenever you like: the same command continues, and loses at most one chunk.

    Example: **aloof bench images --dataset fashion-mnist --gamma-l 0,0.05 --methods vae,dp**
    """
    given = {
        "dataset": dataset,
        "gamma_l": numbers("gamma-l", gamma_l),
        "gamma_p": numbers("gamma-p", gamma_p),
        "methods": names("methods", methods),
        "problems": problems,
        "members": members,
        "max_epochs": epochs,
        "baseline_epochs": baseline_epochs,
        "stack": stack,
    }
    what, command = make_image_experiment(chosen(experiment, given)), command_line()
    name = what.dataset if experiment is None else experiment.stem
    folder = out or Path("results") / name
    with stoppable(folder):
        records = (
            stored_images(what, folder) if tables_only else _run(what, folder, device, command)
        )
    if not records:
        raise ExperimentError(f"{folder} holds no result of this experiment.")
    title = what.title or f"{what.dataset}: labelled anomalies"
    grids = write_image_results(records, folder, title=title, command=command)
    try:
        write_image_plot(records, folder / "curves.png")
    except MissingExtraError as error:
        typer.echo(f"The picture was not drawn: {error}", err=True)
    show(grids, records, folder, as_json=as_json)


def _run(
    what: ImageExperiment, folder: Path, device: str, command: str
) -> list[dict[str, Any]]:
    with progress() as bar:
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
