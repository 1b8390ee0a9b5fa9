"""``aloof bench odds``: the paper's tables of numbers, and the systems it compares with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.odds import OddsSpecification, make_odds
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
    numbers,
    specified,
)

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
            help="Whose numbers our methods and deep peers run with: ours (one configuration "
            "for all data), paper (what the authors of each published for a data set), or both "
            "with a comma. Default: ours."
        ),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(
            help="Of the columns: standard (mean 0, variance 1), unit (from there to [0, 1]), "
            "or both with a comma. Default: standard."
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
    experiment: Experiment = None,
    jobs: Jobs = 2,
    device: Device = "auto",
    out: Out = None,
    tables_only: TablesOnly = False,
    as_json: Json = False,
) -> None:
    """Compare anomaly detectors on the ODDS data sets.

    Every method sees the same rows: a random 60:40 split for each seed, with a share gamma-l
    of labelled anomalies among the training rows. All seeds of our methods on one data set
    train as one run with one warm-up, those of a deep peer as one stack; other systems run one
    by one.

    Writes records.jsonl, splits.json, table.md, table.csv, plot.png and manifest.json. Stop
    it whenever you like: the same command continues, and runs again only what failed or what
    has another configuration or other data now.

    Try first: **aloof bench odds --datasets cardio --methods vae,dp --seeds 2**

    The paper's main table: **aloof bench odds --experiment experiments/odds-main.toml**

    Our methods with the paper's networks and numbers: **aloof bench odds --experiment
    experiments/odds-paper.toml**
    """
    given = {
        "datasets": names("datasets", datasets),
        "methods": names("methods", methods),
        "setting": names("setting", setting),
        "scaling": names("scaling", scaling),
        "seeds": seeds,
        "gamma_l": numbers("gamma-l", gamma_l),
        "gamma_p": numbers("gamma-p", gamma_p),
    }
    spec = specified(OddsSpecification, experiment, given)
    with naming(experiment):
        study = make_odds(spec)
    carry_out(
        study,
        out or Path("results") / (spec.name or "odds"),
        device=device,
        jobs=jobs,
        tables_only=tables_only,
        as_json=as_json,
    )
