"""``aloof bench images``: the paper's image experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.images import ImageSpecification, make_images
from aloof.cli.bench.command import (
    Device,
    Experiment,
    Json,
    Out,
    TablesOnly,
    carry_out,
    names,
    naming,
    numbers,
    specified,
)

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
            help="Names with commas between: vae, mml, dp, mml-dp; deep peers (cae, deep-svdd, "
            "deep-sad, deep-sad-ill, classifier, ss-dgm, dsebm, ...); oc-svm, iforest, kde, "
            "ssad, and these with -hybrid; oc-svm and ssad, hybrids too, with -unfair. "
            "Default: vae,mml,dp."
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="ours, paper or both with a comma between: whose numbers and networks. "
            "Default: ours."
        ),
    ] = None,
    problems: Annotated[
        int | None,
        typer.Option(help="10: each class with one other; 90: all pairs. Default: 10."),
    ] = None,
    members: Annotated[int | None, typer.Option(help="Of an ensemble. Default: 5.")] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Of our methods. Default: those of the setting.")
    ] = None,
    baseline_epochs: Annotated[
        int | None, typer.Option(help="Of deep baselines. Default: 150, twice.")
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(help="Most members of a method to train at once. Default: 150."),
    ] = None,
    experiment: Experiment = None,
    device: Device = "auto",
    out: Out = None,
    tables_only: TablesOnly = False,
    as_json: Json = False,
) -> None:
    """Take each class as normal, a few images of one other class as labelled anomalies.

    Trains all problems, ratios, methods and members as stacks, with one warm-up for everything
    with the same normal class, and tests on all classes. Meant for a GPU.

    Writes records.jsonl and table.csv (a line for each problem), summary.csv (means), table.md
    and curves.png. Stop it whenever you like: the same command continues, and loses at most
    one chunk.

    Example: **aloof bench images --dataset fashion-mnist --gamma-l 0,0.05 --methods vae,dp**
    """
    given = {
        "dataset": dataset,
        "gamma_l": numbers("gamma-l", gamma_l),
        "gamma_p": numbers("gamma-p", gamma_p),
        "methods": names("methods", methods),
        "setting": names("setting", setting),
        "problems": problems,
        "members": members,
        "max_epochs": epochs,
        "baseline_epochs": baseline_epochs,
        "stack": stack,
    }
    spec = specified(ImageSpecification, experiment, given)
    with naming(experiment):
        study = make_images(spec)
    carry_out(
        study,
        out or Path("results") / (spec.name or spec.dataset),
        device=device,
        tables_only=tables_only,
        as_json=as_json,
    )
