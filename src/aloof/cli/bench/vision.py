"""``aloof bench vision``: images people have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aloof.bench.vision import VisionSpecification, make_vision
from aloof.cli.bench.command import (
    Device,
    Experiment,
    Jobs,
    Json,
    Minutes,
    Out,
    Ray,
    TablesOnly,
    carry_out,
    names,
    naming,
    numbers,
    specified,
)

__all__ = ["vision"]


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
    experiment: Experiment = None,
    minutes: Minutes = None,
    device: Device = "auto",
    jobs: Jobs = 1,
    ray: Ray = False,
    out: Out = None,
    tables_only: TablesOnly = False,
    as_json: Json = False,
) -> None:
    """Look for defects and strange photographs with few labels, by pixels and by features.

    Defects of six kinds and three sizes are put on surfaces, drawn or photographed; two kinds
    are labelled, four never are. Classes of photographs follow the paper's protocol. MVTec AD,
    VisA and BTAD are read from a folder that you have.

    Writes table.md, table.csv and records.jsonl. Stop it whenever you like, or say when it has
    to stop (--minutes): the same command continues. On a GPU, one system after the other learns
    from all images at once, and --jobs are the processes that draw surfaces.

    Try first: **aloof bench vision --problems tiles --normal 20 --systems memory,patches**
    """
    counts = numbers("labels", labels)
    given = {
        "problems": names("problems", problems),
        "systems": names("systems", systems),
        "labels": None if counts is None else [int(n) for n in counts],
        "seeds": seeds,
        "normal": normal,
        "test": test,
        "side": side,
        "backbone": backbone,
        "members": members,
        "max_epochs": epochs,
        "root": root,
    }
    spec = specified(VisionSpecification, experiment, given)
    with naming(experiment):
        carry_out(
            make_vision(spec),
            out or Path("results") / (spec.name or "vision"),
            device=device,
            jobs=jobs,
            minutes=minutes,
            ray=ray,
            tables_only=tables_only,
            as_json=as_json,
        )
