"""``aloof bench odds``: the paper's tables of numbers, and every system it compares with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.cli.bench.experiment import (
    Options,
    Records,
    TablesOnly,
    chosen,
    command_line,
    names,
    numbers,
    show,
    stoppable,
)
from aloof.cli.bench.running import running
from aloof.exceptions import ExperimentError, MissingExtraError
from aloof.experiments.experiment import make_experiment
from aloof.experiments.plan import make_plan
from aloof.experiments.results import write_plot, write_tables
from aloof.experiments.runner import run_plan, stored

__all__ = ["odds"]


def odds(
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
    experiment: Options = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes, one thread each.")] = 2,
    device: Annotated[str, typer.Option(help="Where our methods train.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results. Default: results/NAME.", file_okay=False),
    ] = None,
    tables_only: TablesOnly = False,
    as_json: Records = False,
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
    given = {
        "datasets": names("datasets", datasets),
        "methods": names("methods", methods),
        "settings": names("setting", setting),
        "seeds": seeds,
        "gamma_l": numbers("gamma-l", gamma_l),
        "gamma_p": numbers("gamma-p", gamma_p),
    }
    named = {} if experiment is None else {"name": experiment.stem}
    what = make_experiment({**named, **chosen(experiment, given)})
    folder = out or Path("results") / what.name
    plan, command = make_plan(what), command_line()
    with stoppable(folder), running() as report:
        records = (
            stored(plan, folder)
            if tables_only
            else run_plan(
                plan, folder, jobs=jobs, device=device, command=command, on_event=report
            )
        )
    if not records:
        raise ExperimentError(f"{folder} holds no result of this experiment.")
    grids = write_tables(what, records, folder, command=command)
    try:
        write_plot(what, records, folder)
    except MissingExtraError as error:
        typer.echo(f"plot.png was not drawn: {error}", err=True)
    show(grids, records, folder, as_json=as_json)
    failed = sum(record["status"] == "error" for record in records)
    if failed:
        typer.echo(
            f"{failed} of {len(records)} fits failed; the reasons are below the table and in "
            f"{folder / 'records.jsonl'}. The same command tries them again.",
            err=True,
        )
        raise typer.Exit(1)
