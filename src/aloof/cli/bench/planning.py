"""``aloof bench planning``: the paper's motion-planning experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.planning import PlanningSpecification, make_planning
from aloof.cli.bench.command import (
    Device,
    Experiment,
    Jobs,
    Json,
    Out,
    TablesOnly,
    carry_out,
    names,
    naming,
    specified,
)

__all__ = ["planning"]


def planning(
    worlds: Annotated[int | None, typer.Option(help="Unseen worlds. Default: 100.")] = None,
    train: Annotated[
        int | None, typer.Option(help="Worlds to learn from. Default: 3000.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Names with commas between. Default: vae,dp,mml.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Whose networks and numbers: ours, paper, or both with a comma. Default: ours."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Networks of each method. Default: 1.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Of the training. Default: 6 (ours), 40 (paper).")
    ] = None,
    experiment: Experiment = None,
    device: Device = "auto",
    jobs: Jobs = 2,
    out: Out = None,
    tables_only: TablesOnly = False,
    as_json: Json = False,
) -> None:
    """Teach a network where not to sample, and plan with it in worlds it has not seen.

    Makes worlds with narrow passages and solves them with OMPL, trains a conditional VAE of
    the robot's states with each method, points on walls being the anomalies, and measures
    collisions, coverage of the optimal path, and a planner's success, cost and time.

    Writes states-ours.png or states-paper.png (VAE left, DP-VAE right), curves.png, table.md,
    table.csv, summary.csv (means), records.jsonl and models/. Stop it whenever you like: the
    same command continues.

    Our setting takes a quarter of an hour for each seed on a CPU, the setting paper is for a
    GPU. Try first: **aloof bench planning --train 300 --worlds 20**
    """
    given = {
        "n_worlds": worlds,
        "n_train": train,
        "methods": names("methods", methods),
        "setting": names("setting", setting),
        "seeds": seeds,
        "max_epochs": epochs,
    }
    spec = specified(PlanningSpecification, experiment, given)
    with naming(experiment):
        study = make_planning(spec)
        carry_out(
            study,
            out or Path("results") / (spec.name or "planning"),
            device=device,
            jobs=jobs,
            tables_only=tables_only,
            as_json=as_json,
            draw=study.draw_states,
        )
