"""What the commands do when they are given images in place of a table."""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import typer

from aloof.cli.group import fail
from aloof.cli.image_labels import read_image_labels
from aloof.cli.progress import counting_rows
from aloof.exceptions import ImageError, ImageWarning, StaleCheckpointError
from aloof.images import Collection, ImageModel, ImageScores, Skipped, fit_images, open_images
from aloof.report import write_image_report
from aloof.report.panels import heat_colours, heat_scale, joined, png, shown
from aloof.tabular import write_table
from aloof.training import discard_checkpoints

__all__ = [
    "are_images",
    "describe_images",
    "explain_images_command",
    "fit_images_command",
    "is_image_model",
    "refuse",
    "report_images_command",
    "score_images_command",
]

_TOLD = 5  # skipped files that are named


def are_images(data: str | None, options: Mapping[str, object]) -> bool:
    """Whether images are meant: by an option of theirs, or by what `data` is."""
    asked = any(value is not None for value in options.values())
    if data is None or data == "-":
        return asked
    path = Path(data)
    if path.is_dir():
        return asked or len(open_images(path)) > 0
    return path.suffix.lower() == ".zip"


def is_image_model(path: Path) -> bool:
    """Whether the model in a folder is one of images; whatever is wrong is told later."""
    try:
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and "images" in manifest


def refuse(what: str, options: Mapping[str, object]) -> None:
    """End the command where an option was given that says nothing about `what`."""
    for name, value in options.items():
        if value is not None and value != []:
            fail(f"{name} cannot be used with {what}.")


def fit_images_command(
    data: str | None,
    out: Path,
    *,
    folders: tuple[str | None, str | None],
    labels: tuple[str | None, str | None, str | None, str | None, str | None, str],
    settings: dict[str, Any],
    as_json: bool,
) -> None:
    """Fit a model of images; `labels` is the table, its columns, and how to read it."""
    started = time.monotonic()
    normal, anomaly = folders
    table, id, label, anomaly_value, delimiter, encoding = labels
    collection = None if data is None else open_images(data)
    if table is None:
        refuse("images without --labels", {"--id": id, "--label": label})
        refuse("images without --labels", {"--anomaly-value": anomaly_value})
        refuse("images without --labels", {"--delimiter": delimiter})
        refuse(
            "images without --labels", {"--encoding": None if encoding == "utf8" else encoding}
        )
    elif collection is None:
        fail("--labels needs the folder with the images: aloof fit images/ --labels FILE ...")
    else:
        settings["labels"] = read_image_labels(
            table, collection, id, label, anomaly_value, delimiter, encoding
        )
    checkpoint = out.with_name(f".{out.name}.checkpoint")
    settings |= {"normal": normal, "anomaly": anomaly, "checkpoint": checkpoint}
    settings["verbose"] = sys.stderr.isatty()
    model = _fitted(collection, checkpoint, settings)
    model.save(out)
    _report_fit(model, out, time.monotonic() - started, as_json)


def score_images_command(
    model: Path, data: str, out: str, *, force: bool, device: str, as_json: bool
) -> None:
    """Write the score of every image."""
    started = time.monotonic()
    fitted = ImageModel.load(model, device=device)
    with _reading() as progress:
        scores = fitted.score(data, progress=progress)
    write_table(out, pa.table(scores.columns()), force=force)
    _tell_skipped(scores.skipped)
    n_flagged, seconds = int(scores.is_anomaly.sum()), time.monotonic() - started
    if as_json:
        found = {
            "out": out,
            "n_images": len(scores.names),
            "n_anomalies": n_flagged,
            "skipped": _skipped(scores.skipped),
            "threshold": fitted.threshold.as_dict(),
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
    elif out != "-":
        typer.echo(
            f"Scored {len(scores.names):,} images in {seconds:.1f} s: {n_flagged:,} flagged "
            f"({fitted.threshold}), {len(scores.skipped):,} files skipped. The scores are in "
            f"{out}."
        )


def report_images_command(
    model: Path, data: str, out: Path, top: int, title: str, *, device: str, as_json: bool
) -> None:
    """Write the page about images."""
    fitted = ImageModel.load(model, device=device)
    with _reading() as progress:
        write_image_report(
            fitted, data, out, top=top, force=True, title=title, progress=progress
        )
    typer.echo(json.dumps({"report": str(out)}) if as_json else out)


def explain_images_command(
    model: Path, data: str, top: int, out: Path | None, *, device: str, as_json: bool
) -> None:
    """Show the strangest images, and draw what is strange about them."""
    fitted = ImageModel.load(model, device=device)
    with _reading() as progress:
        found = fitted.read(data, progress=progress)
    scores = fitted.score(found)
    order = np.argsort(-scores.anomaly_score, kind="stable")[:top]
    if out is not None:
        _draw(fitted, found.pixels[order], out)
    _tell_skipped(scores.skipped)
    rows = [_row(scores, int(place)) for place in order]
    if as_json:
        typer.echo(json.dumps({"n_images": len(found), "images": rows}))
        return
    typer.echo(f"The {len(rows)} most anomalous of {len(found):,} images:")
    for rank, row in enumerate(rows, 1):
        p = "" if row["p_value"] is None else f"  p-value {row['p_value']:.2g}"
        flag = "  flagged" if row["is_anomaly"] else ""
        typer.echo(
            f"{rank:>4}  {row['file']}  anomaly score {row['anomaly_score']:.4g}{p}{flag}"
        )
    typer.echo(
        "To see where: aloof report MODEL DATA --out report.html"
        if out is None
        else f"From left to right in {out}: the image, as it would be if it were normal, and "
        "where they differ."
    )


def describe_images(path: Path, content: Any, *, as_json: bool) -> None:
    """Show what a model of images was made from."""
    model = ImageModel.from_model(path, content, device="cpu")
    versions, training = content[0]["versions"], model.training
    channels, height, width = model.shape
    if as_json:
        found = {
            "estimator": type(model.detector).__name__,
            "method": model.detector.method,
            "members": len(model.detector.member_seeds_),
            "shape": list(model.shape),
            "threshold": {
                "rule": model.threshold.as_dict(),
                "anomaly_score": -float(model.detector.offset_),
            },
            "training": training,
            "versions": versions,
        }
        typer.echo(json.dumps(found))
        return
    members = len(model.detector.member_seeds_)
    typer.echo(f"{type(model.detector).__name__}, {members} members, aloof {versions['aloof']}")
    typer.echo(
        f"trained on     {training['source']}: {training['n_images']:,} images, "
        f"{training['n_anomalies']:,} labelled anomalies, {training['n_calibration']:,} held "
        f"out to calibrate, {training['n_skipped']:,} files skipped"
    )
    kind = "grey" if channels == 1 else "in colour"
    typer.echo(f"images         {width} x {height} pixels, {kind}; others are resized to that")
    typer.echo(f"flags          {model.threshold}")
    for words in training["warnings"]:
        typer.echo(f"warning: {words}", err=True)


def _fitted(
    collection: Collection | None, checkpoint: Path, settings: dict[str, Any]
) -> ImageModel:
    """Fit, or go on with a fit that was killed."""
    try:
        with _reading() as progress:
            return fit_images(collection, progress=progress, **settings)
    except StaleCheckpointError:
        typer.echo("A killed fit had other images or settings; starting over.", err=True)
        discard_checkpoints(checkpoint)
        return fit_images(collection, **settings)
    except KeyboardInterrupt:
        typer.echo("The same command continues.", err=True)
        raise


def _report_fit(model: ImageModel, out: Path, seconds: float, as_json: bool) -> None:
    training = model.training
    if as_json:
        found = {
            "model": str(out),
            "shape": list(model.shape),
            "threshold": model.threshold.as_dict(),
            "training": training,
            "seconds": round(seconds, 3),
        }
        typer.echo(json.dumps(found))
        return
    channels, height, width = model.shape
    typer.echo(
        f"Learned from {training['n_training']:,} images and {training['n_anomalies']:,} "
        f"labelled anomalies, {width} x {height} pixels"
        f"{', grey' if channels == 1 else ''}; {training['n_calibration']:,} images held out "
        f"to calibrate, {training['n_skipped']:,} files skipped. {seconds:.1f} s."
    )
    typer.echo(f"It flags {model.threshold}. To change that: aloof threshold {out} --help")
    typer.echo(f"The model is in {out}. Next: aloof report {out} IMAGES --out report.html")


@contextmanager
def _reading() -> Iterator[Callable[[int, int], None]]:
    """Show how many images were read, for as long as they are being read."""
    before, advance = 0, None
    with ExitStack() as bar:

        def progress(done: int, total: int) -> None:
            nonlocal before, advance
            if advance is None:
                advance = bar.enter_context(counting_rows("Reading", total))
            advance(done - before)
            before = done
            if done == total:
                bar.close()

        yield progress


def _tell_skipped(skipped: Sequence[Skipped]) -> None:
    for each in skipped[:_TOLD]:
        warnings.warn(f"skipped: {each}", ImageWarning, stacklevel=2)
    if len(skipped) > _TOLD:
        words = f"skipped: {len(skipped) - _TOLD:,} more files; --json names them all"
        warnings.warn(words, ImageWarning, stacklevel=2)


def _skipped(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    return [{"file": each.name, "reason": each.reason} for each in skipped]


def _row(scores: ImageScores, place: int) -> dict[str, Any]:
    p = scores.p_value
    return {
        "file": scores.names[place],
        "anomaly_score": float(scores.anomaly_score[place]),
        "p_value": None if p is None else float(p[place]),
        "is_anomaly": bool(scores.is_anomaly[place]),
    }


def _draw(model: ImageModel, pixels: Any, out: Path) -> None:
    if out.suffix.lower() != ".png":
        fail(f"The picture is a PNG file; call it {out.with_suffix('.png').name}.")
    reasons = model.explain(pixels)
    scale = heat_scale(reasons.difference)
    rows = [
        [shown(image), shown(expected), heat_colours(image, difference, scale)]
        for image, expected, difference in zip(
            pixels, reasons.expected, reasons.difference, strict=True
        )
    ]
    try:
        out.write_bytes(png(joined(rows, max(1, 192 // max(model.shape[1:])))))
    except OSError as error:
        raise ImageError(
            f"{os.fspath(out)} cannot be written: {error.strerror or error}."
        ) from error
