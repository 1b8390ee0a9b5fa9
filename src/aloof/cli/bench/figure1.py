"""``aloof bench figure1``: the paper's first figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from aloof.bench.figure1 import latent_spaces
from aloof.bench.specification import SETTINGS, Setting, known
from aloof.bench.splits import SCALINGS, Scaling
from aloof.bench.workers import Event
from aloof.cli.bench.command import Device
from aloof.cli.bench.progress import running
from aloof.exceptions import ExperimentError
from aloof.io import write_file
from aloof.report import latent_map, save_figure
from aloof.training import EpochReport

__all__ = ["figure1"]


def figure1(
    out: Annotated[Path, typer.Option(help="Folder for the picture.", file_okay=False)] = Path(
        "results/figure1"
    ),
    dataset: Annotated[
        str, typer.Option(help="Name of an ODDS data set. The paper shows thyroid.")
    ] = "thyroid",
    setting: Annotated[
        str, typer.Option(help="Which settings to use: ours or paper.")
    ] = "paper",
    scaling: Annotated[
        str | None,
        typer.Option(
            help="How to scale the columns: standard or unit (see aloof bench odds). Default: "
            "unit in the paper's setting, standard in ours."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for the split and the networks.")] = 0,
    device: Device = "auto",
) -> None:
    """Draw the paper's first figure: the latent spaces of a VAE and of DP-VAE.

    Shows test rows, which neither has seen, mapped with t-SNE. Writes figure1.png, and
    figure1.json, which says how it was made.
    """
    try:
        known("setting", SETTINGS)(setting)
        if scaling is not None:
            known("scaling", SCALINGS)(scaling)
    except ValueError as error:
        raise ExperimentError(str(error)) from error
    with running() as report:

        def on_epoch(epoch: EpochReport) -> None:
            report(Event("step", dataset, 1, epoch.epoch, epoch.max_epochs))

        spaces = latent_spaces(
            dataset,
            setting=cast(Setting, setting),
            scaling=cast(Scaling | None, scaling),
            seed=seed,
            device=device,
            on_epoch=on_epoch,
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        save_figure(latent_map(spaces.codes, spaces.y_test, seed=seed), out / "figure1.png")
    except OSError as error:
        raise ExperimentError(f"Cannot write to {out}: {error.strerror or error}.") from error
    write_file(
        out / "figure1.json", json.dumps(spaces.record, indent=2) + "\n", ExperimentError
    )
    for title, auroc in spaces.record["auroc"].items():
        typer.echo(f"{title}: AUROC {100 * auroc:.1f} %")
    typer.echo(out / "figure1.png")
