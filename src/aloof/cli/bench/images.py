"""``aloof bench images``: the paper's image experiments."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof.bench.images import ImageSpecification, make_images
from aloof.cli.bench.command import carries_out

__all__ = ["images"]


@carries_out(
    ImageSpecification,
    make_images,
    jobs=2,
    cluster=False,
    fields={"epochs": "max_epochs"},
    folder=lambda spec: spec.dataset,
)
def images(
    dataset: Annotated[
        str | None,
        typer.Option(help="fashion-mnist, mnist, cifar10 or cats-vs-dogs."),
    ] = None,
    gamma_l: Annotated[
        str | None,
        typer.Option(
            help="Ratios of labelled anomalies, with commas. Default: 0,0.01,0.05,0.1,0.2."
        ),
    ] = None,
    gamma_p: Annotated[
        str | None,
        typer.Option(help="Ratios of hidden anomalies, with commas. Default: 0."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, separated by commas: vae, mml, dp, mml-dp; deep peers (cae, "
            "deep-svdd, deep-sad, deep-sad-ill, classifier, ss-dgm, dsebm, ...); oc-svm, "
            "iforest, kde, ssad, each also with -hybrid; oc-svm and ssad, plain or "
            "hybrid, and inclusive-nrf also with -unfair. Default: vae,mml,dp."
        ),
    ] = None,
    setting: Annotated[
        str | None,
        typer.Option(
            help="Which settings and networks to use: ours, paper, or both separated by a "
            "comma. Default: ours."
        ),
    ] = None,
    problems: Annotated[
        int | None,
        typer.Option(
            help="10 pairs each class with one other class; 90 takes all pairs. Default: 10."
        ),
    ] = None,
    members: Annotated[
        int | None, typer.Option(help="Members of an ensemble. Default: 5.")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of our methods. Default: taken from the setting.")
    ] = None,
    baseline_epochs: Annotated[
        int | None,
        typer.Option(
            help="Epochs of deep baselines that have no numbers of their own. Default: 150, "
            "twice."
        ),
    ] = None,
    stack: Annotated[
        int | None,
        typer.Option(
            help="Most members of one method to train at once. Default: 150 on a GPU, those "
            "with one normal class on a CPU."
        ),
    ] = None,
) -> None:
    """Detect images of other classes, given one normal class and a few labelled anomalies.

    Each class is normal in turn; the labelled anomalies come from one other class, and the
    test set has all classes. Problems, ratios, methods and members train together as stacks;
    whatever shares a normal class shares one warm-up. Meant for a GPU. Shallow systems and
    hybrids are fitted by --jobs processes beside it.

    Writes records.jsonl and table.csv (a line for each problem), summary.csv (means), table.md
    and curves.png. Stop it whenever you like: run the same command again to continue. Networks
    go on from their last checkpoint.

    Example: **aloof bench images --dataset fashion-mnist --gamma-l 0,0.05 --methods vae,dp**
    """
