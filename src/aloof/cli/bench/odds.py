"""``aloof bench odds``: the paper's tables of numbers, and the systems it compares with."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof.bench.odds import OddsSpecification, make_odds
from aloof.cli.bench.command import carries_out

__all__ = ["odds"]


@carries_out(OddsSpecification, make_odds, jobs=2)
def odds(
    datasets: Annotated[
        str | None,
        typer.Option(help="Data sets, separated by commas, or all. See aloof data list."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas: vae, mml, dp, mml-dp, any peer (deep-sad, "
            "oc-svm, ...), or ours, peers or all. Default: ours."
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Which settings our methods and deep peers use: ours (one configuration for "
            "all data), paper (what the authors published for each data set), or both "
            "separated by a comma. Default: ours."
        ),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(
            help="How to scale the columns: standard (mean 0, variance 1), unit (then to [0, "
            "1]), or both separated by a comma. Default: standard."
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of splits. Default: 10.")] = None,
    gamma_l: Annotated[
        str | None,
        typer.Option(help="Shares of labelled anomalies, separated by commas. Default: 0.01."),
    ] = None,
    gamma_p: Annotated[
        str | None,
        typer.Option(
            help="Shares of hidden anomalies (pollution), separated by commas. Default: 0."
        ),
    ] = None,
) -> None:
    """Compare anomaly detectors on the ODDS data sets.

    Every method sees the same rows: a random 60:40 split for each seed, in which a share
    gamma-l of the training rows are labelled anomalies. On one data set, all seeds of our
    methods train as one run with one warm-up, and all seeds of a deep peer as one stack. Other
    systems run one by one.

    Writes records.jsonl, splits.json, table.md, table.csv, plot.png and manifest.json. Stop
    it whenever you like: run the same command again to continue. It reruns only what failed,
    or what now has another configuration or other data.

    A quick first try: **aloof bench odds --datasets cardio --methods vae,dp --seeds 2**

    The paper's main table: **aloof bench odds --experiment experiments/odds-main.toml**

    Systems as their authors published them: **aloof bench odds --experiment
    experiments/odds-paper.toml**
    """
