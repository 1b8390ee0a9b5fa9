"""``aloof bench planning``: the paper's motion-planning experiment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TaskID

from aloof.cli.bench.experiment import (
    Options,
    Records,
    chosen,
    command_line,
    names,
    progress,
    show,
    stoppable,
)
from aloof.exceptions import MissingExtraError
from aloof.experiments.planning import (
    PlanningExperiment,
    load_worlds,
    make_planning_experiment,
    run_planning,
    train_models,
)
from aloof.experiments.planning_results import (
    planning_curves,
    planning_figure,
    write_planning_tables,
)
from aloof.planning import StateGenerator, Trajectories
from aloof.report import save_figure
from aloof.training import EpochReport

__all__ = ["planning"]

_SHOWN = 3  # worlds in the figure, as in the paper


def planning(
    worlds: Annotated[int | None, typer.Option(help="Unseen worlds. Default: 100.")] = None,
    train: Annotated[
        int | None, typer.Option(help="Worlds to learn from. Default: 3000.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas between. Default: vae,dp,mml.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Of the training. Default: 200.")] = None,
    experiment: Options = None,
    device: Annotated[str, typer.Option(help="Where to train and to draw.")] = "auto",
    jobs: Annotated[int, typer.Option(min=1, help="Processes that solve worlds.")] = 2,
    out: Annotated[
        Path, typer.Option(help="Folder for models and results.", file_okay=False)
    ] = Path("results/planning"),
    as_json: Records = False,
) -> None:
    """Teach a network where not to sample, and plan with it in worlds it has not seen.

    Makes worlds with narrow passages and solves them with OMPL, trains a conditional VAE of
    the robot's states with each method, points on walls being the anomalies, and measures
    collisions, coverage of the optimal path, and a planner's success, cost and time.

    Writes figure.png (VAE left, DP-VAE right), curves.png, table.md, table.csv, records.jsonl
    and models/. Stop it whenever you like: the same command continues.

    Try first, a quarter of an hour on a CPU: **aloof bench planning --experiment
    experiments/planning-small.toml**
    """
    given = {
        "n_worlds": worlds,
        "n_train": train,
        "methods": names("methods", methods),
        "max_epochs": epochs,
    }
    what, command = make_planning_experiment(chosen(experiment, given)), command_line()
    with stoppable(out):
        models, test, records = _run(what, out, device, jobs, command)
    grids = write_planning_tables(what, records, out, command=command)
    try:
        _draw(what, models, test, records, out)
    except MissingExtraError as error:
        typer.echo(f"Pictures were not drawn: {error}", err=True)
    show(grids, records, out, as_json=as_json)


def _run(
    what: PlanningExperiment, out: Path, device: str, jobs: int, command: str
) -> tuple[dict[str, StateGenerator], Trajectories, list[dict[str, Any]]]:
    with progress() as bar:
        tasks: dict[str, TaskID] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total)
            bar.update(tasks[name], completed=done)

        def on_epoch(method: str, report: EpochReport) -> None:
            tell(f"training {method}", report.epoch, report.max_epochs)

        models = train_models(
            what,
            out,
            device=device,
            jobs=jobs,
            on_epoch=on_epoch,
            on_solved=lambda n: tell("solving worlds to learn from", n, what.n_train),
        )
        test = load_worlds(
            what,
            test=True,
            jobs=jobs,
            on_done=lambda n: tell("solving unseen worlds", n, what.n_worlds),
        )
        records = run_planning(
            what,
            models,
            test,
            out,
            device=device,
            command=command,
            on_record=lambda done, total: tell("planning", done, total),
        )
    return models, test, records


def _draw(
    what: PlanningExperiment,
    models: dict[str, StateGenerator],
    test: Trajectories,
    records: list[dict[str, Any]],
    out: Path,
) -> None:
    first = replace(test, worlds=test.worlds[:_SHOWN], states=test.states[:_SHOWN])
    states = {}
    for sampler in what.samplers:
        if sampler.method in ("vae", "dp") and sampler.noise:
            states[sampler.label] = [
                models[sampler.method].draw(world, what.n_states, screen=sampler.screen)
                for world in first.worlds
            ]
    if states:
        save_figure(planning_figure(first, states), out / "figure.png")
    save_figure(planning_curves(what, records), out / "curves.png")
