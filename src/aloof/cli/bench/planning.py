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
    epochs: Annotated[int | None, typer.Option(help="Of the training. Default: 200.")] = None,
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

    Writes figure.png (VAE left, DP-VAE right), curves.png, table.md, table.csv, summary.csv
    (means), records.jsonl and models/. Stop it whenever you like: the same command continues.

    Try first, a quarter of an hour on a CPU: **aloof bench planning --experiment
    experiments/planning-small.toml**
    """
    given = {
        "n_worlds": worlds,
        "n_train": train,
        "methods": names("methods", methods),
        "max_epochs": epochs,
    }
    with naming(experiment):
        study = make_planning(specified(PlanningSpecification, experiment, given))
        carry_out(
            study,
            out or Path("results/planning"),
            device=device,
            jobs=jobs,
            tables_only=tables_only,
            as_json=as_json,
            draw=study.draw_states,
        )
