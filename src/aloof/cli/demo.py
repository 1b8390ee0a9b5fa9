"""``aloof demo``: five labelled anomalies improve a detector, in a minute."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from aloof.report import (
    check_drawing,
    latent_map,
    plot_roc,
    save_figure,
    score_histograms,
)
from aloof.training import EpochReport

if TYPE_CHECKING:
    from aloof.bench.demo import Demo

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the pictures.", file_okay=False)] = Path(
        "demo"
    ),
    splits: Annotated[
        int, typer.Option(min=2, help="Number of random splits of the data.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what five labelled anomalies are worth.

    Trains all four methods on scikit-learn's breast-cancer data (benign tumours are normal)
    with zero and with five labelled malignant tumours, on several random splits. Prints a
    table and writes pictures. Takes about a minute on two cores and needs no download.
    """
    from aloof.bench.demo import N_LABELLED, run_demo  # others need not wait for it

    check_drawing()  # before a minute of training, not after it
    out.mkdir(parents=True, exist_ok=True)
    errors = Console(stderr=True)
    started = time.monotonic()
    with Progress(console=errors, transient=True) as bar:
        tasks: dict[str, int] = {}

        def report(method: str, epoch: EpochReport) -> None:
            if method not in tasks:
                label = f"{method}, {epoch.n_members} members at once"
                tasks[method] = bar.add_task(label, total=epoch.max_epochs)
            bar.update(tasks[method], completed=epoch.epoch)  # type: ignore[arg-type]

        outcome = run_demo(splits, on_progress=report)
    seconds = time.monotonic() - started
    pictures = _pictures(outcome, out)
    if as_json:
        typer.echo(json.dumps(outcome.records(), indent=2))
        return
    console = Console()
    console.print(_table(outcome))
    n_members = sum(len(d.member_seeds_) for ds in outcome.detectors.values() for d in ds)
    gain = 100 * (outcome.auroc["DP-VAE"].mean() - outcome.auroc["VAE"].mean())
    console.print(
        f"{N_LABELLED} labelled anomalies are worth {gain:+.1f} AUROC points to DP-VAE. "
        f"Trained {n_members} networks in {seconds:.0f} s."
    )
    for path in pictures:
        console.print(f"  {path}", highlight=False)


def _table(outcome: Demo) -> Table:
    from aloof.bench.demo import N_LABELLED
    from aloof.bench.statistics import moments

    table = Table(title=f"Breast cancer, {len(outcome.splits)} splits: mean ± std (%)")
    table.add_column("method")
    for column in ("labelled anomalies", "AUROC", "average precision", "AUROC gain"):
        table.add_column(column, justify="right")
    plain = outcome.auroc["VAE"]
    for name, auroc in outcome.auroc.items():
        precision = outcome.average_precision[name]
        gain = moments(100 * (auroc - plain))
        table.add_row(
            name,
            "0" if name == "VAE" else str(N_LABELLED),
            moments(100 * auroc).text,
            moments(100 * precision).text,
            "" if name == "VAE" else f"{'+' if gain.mean >= 0 else ''}{gain.text}",
        )
    return table


def _pictures(outcome: Demo, out: Path) -> list[Path]:
    shown = ("VAE", "DP-VAE")
    first = outcome.splits[0]
    detectors = {name: outcome.detectors[name][0] for name in shown}
    codes = {
        f"{name}: latent space": detector.latent(first.X_test)[0]
        for name, detector in detectors.items()
    }
    scores = {
        name: detector.anomaly_score(first.X_test) for name, detector in detectors.items()
    }
    thresholds = {name: -detector.offset_ for name, detector in detectors.items()}
    runs = {
        name: [
            (split.y_test, detector.anomaly_score(split.X_test))
            for split, detector in zip(outcome.splits, fitted, strict=True)
        ]
        for name, fitted in outcome.detectors.items()
    }
    figures = {
        "latent.png": latent_map(codes, first.y_test),
        "scores.png": score_histograms(scores, first.y_test, thresholds=thresholds),
        "roc.png": plot_roc(runs),
    }
    for name, figure in figures.items():
        save_figure(figure, out / name)
    return [out / name for name in figures]
