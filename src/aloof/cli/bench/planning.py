"""``aloof bench planning``: the paper's motion-planning experiment."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof.bench.planning import PlanningSpecification, make_planning
from aloof.cli.bench.command import carries_out

__all__ = ["planning"]


@carries_out(
    PlanningSpecification,
    make_planning,
    jobs=2,
    fields={"worlds": "n_worlds", "train": "n_train", "epochs": "max_epochs"},
)
def planning(
    worlds: Annotated[
        int | None, typer.Option(help="Number of unseen worlds to plan in. Default: 100.")
    ] = None,
    train: Annotated[
        int | None, typer.Option(help="Number of worlds to learn from. Default: 3000.")
    ] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods, separated by commas. Default: vae,dp,mml.")
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Which networks and settings to use: ours, paper, or both separated by a "
            "comma. Default: ours."
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Networks to train for each method. Default: 1.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Training epochs. Default: 6 (ours), 40 (paper).")
    ] = None,
) -> None:
    """Teach a network where not to sample, then plan with it in worlds it has never seen.

    Makes worlds with narrow passages, solves them with OMPL, and trains a conditional VAE on
    the robot's states with each method; points on walls are the anomalies. Then measures
    collisions, coverage of the optimal path, and a planner's success, cost and time.

    Writes states-ours.png or states-paper.png (VAE left, DP-VAE right), curves.png, table.md,
    table.csv, summary.csv (means), records.jsonl and models/. Stop it whenever you like: run
    the same command again to continue.

    Our setting takes a quarter of an hour per seed on a CPU, the paper's over two hours. A
    quick first try: **aloof bench planning --train 300 --worlds 20**
    """
