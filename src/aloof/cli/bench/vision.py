"""``aloof bench vision``: images people have."""

from __future__ import annotations

from typing import Annotated

import typer

from aloof.bench.vision import VisionSpecification, make_vision
from aloof.cli.bench.command import carries_out

__all__ = ["vision"]


@carries_out(VisionSpecification, make_vision, fields={"epochs": "max_epochs"})
def vision(
    problems: Annotated[
        str | None,
        typer.Option(
            help="Names with commas between: surfaces, classes such as cifar10:0, categories "
            "such as mvtec:bottle. Default: seven surfaces."
        ),
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(
            help="With commas between: patches, patches-dp, memory, patchcore, pixels, "
            "pixels-256, whole-knn, whole-dp, whole-mml, whole-committee, and "
            "anomalib-patchcore, which needs anomalib. Default: all but pixels-256 and that."
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Labelled anomalies, with commas between.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Default: 1.")] = None,
    normal: Annotated[int | None, typer.Option(help="Images to learn from.")] = None,
    test: Annotated[int | None, typer.Option(help="Normal images to score.")] = None,
    side: Annotated[int | None, typer.Option(help="In pixels. Default: 256.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="A name, or a file, as for aloof fit.")
    ] = None,
    members: Annotated[int | None, typer.Option(help="Of an ensemble. Default: 5.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Of a fit.")] = None,
    root: Annotated[
        str | None, typer.Option(help="The folder of MVTec AD, VisA or BTAD.")
    ] = None,
) -> None:
    """Look for defects and strange photographs with few labels, by pixels and by features.

    Defects of six kinds and three sizes are put on surfaces, drawn or photographed; two kinds
    are labelled, four never are. Classes of photographs follow the paper's protocol. MVTec AD,
    VisA and BTAD are read from a folder that you have.

    Writes table.md, table.csv and records.jsonl. Stop it whenever you like: the same command
    continues.

    Try first: **aloof bench vision --problems tiles --normal 20 --systems memory,patches**
    """
