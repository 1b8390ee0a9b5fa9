"""A report about images: one HTML file with the strangest of them."""

from __future__ import annotations

import datetime
import os
import shlex
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof._version import __version__
from aloof.images import ImageModel, ImageScores, ImageSet
from aloof.images.reading import Progress, Source
from aloof.persistence import versions
from aloof.report.facts import METHODS
from aloof.report.html import check_report, template, write_page
from aloof.report.inline import ANOMALOUS, LEVEL, USUAL, picture
from aloof.report.panels import data_uri, heat_colours, heat_scale, shown
from aloof.report.phrases import count, number, percent

__all__ = ["write_image_report"]

_SHEET = 60  # images on the contact sheet
_LISTED = 100  # skipped files
_FOLDERS = 30
_WIDE = 30  # scores that differ by such a factor are drawn on a logarithmic scale
_SMOOTH = 96  # images with a longer side are not drawn as squares


def write_image_report(
    model: ImageModel,
    source: Source,
    path: str | os.PathLike[str],
    *,
    top: int = 20,
    force: bool = False,
    title: str = "Anomaly report",
    progress: Progress | None = None,
) -> None:
    """Write what a model finds among images into one HTML file.

    The file holds its pictures and loads nothing from elsewhere.

    Parameters
    ----------
    model
        The model.
    source
        A folder, a zip archive or a file; see `aloof.images.open_images`.
    path
        The file to be.
    top
        How many of the most anomalous images to explain.
    force
        Whether a file that is there may be replaced.
    title
        The heading.
    progress
        Called with how many images were read, and how many there are.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1; got {top}.")
    check_report(path, force=force)
    found = model.read(source, progress=progress)
    scores = model.score(found)
    order = np.argsort(-scores.anomaly_score, kind="stable")
    name = str(getattr(source, "path", source))
    method = METHODS[model.detector.method]
    members = count(len(model.detector.member_seeds_), "member")
    today = datetime.datetime.now(datetime.UTC).date()
    page = template("images.html", "images.css").render(
        title=title,
        subtitle=f"{name}, scored by a {method} with {members}, {today}",
        version=__version__,
        tiles=_tiles(model, scores),
        warnings=_cautions(model, scores, name),
        scores=_spread(model, scores),
        sheet=_sheet(found, scores, order[:_SHEET]),
        top=_top(model, found, scores, order[:top]),
        folders=_folders(found, scores),
        skipped=_skipped(scores),
        facts=_facts(model),
        reproduce=_reproduce(model, name, top),
        pixelated=max(model.shape[1:]) < _SMOOTH,
    )
    write_page(Path(path), page)


def _tiles(model: ImageModel, scores: ImageScores) -> list[dict[str, str]]:
    n, n_flagged = len(scores.names), int(scores.is_anomaly.sum())
    rule = model.threshold
    skipped = len(scores.skipped)
    tiles = [
        ("Images scored", f"{n:,}", _size_in_words(model)),
        ("Flagged", f"{n_flagged:,}", f"{percent(n_flagged / n)} of the images"),
        (
            "Threshold",
            number(-model.detector.offset_),
            "a score set by hand" if rule.value is not None else f"a score set for {rule}",
        ),
        ("Skipped", f"{skipped:,}", "files that could not be used" if skipped else "all read"),
    ]
    return [{"name": a, "number": b, "note": c} for a, b, c in tiles]


def _cautions(model: ImageModel, scores: ImageScores, name: str) -> list[tuple[str, str]]:
    notes = [("Training", words) for words in model.training["warnings"]]
    if model.detector.calibration_scores_ is None:
        words = (
            "the model is not calibrated, so there are no p-values, and the threshold comes "
            "from training images, which look a little more normal than new ones do."
        )
        notes.append(("Decisions", words))
    if name in model.training["source"].split(", "):
        words = (
            "the images are those that the model was trained on. It knows them: expect it to "
            "do worse on new ones."
        )
        notes.append(("These images", words))
    if scores.skipped:
        words = f"{count(len(scores.skipped), 'file')} could not be used; see the end."
        notes.append(("These images", words))
    return notes


def _spread(model: ImageModel, scores: ImageScores) -> dict[str, str]:
    """Draw how the scores are spread."""
    values, level = scores.anomaly_score, -float(model.detector.offset_)
    known = model.detector.calibration_scores_
    every = values if known is None else np.concatenate([values, known])
    low, high = float(every.min()), float(every.max())
    if low < level < 3 * high - 2 * low:
        high = max(high, level)
    n_bins = int(np.clip(len(values) // 4, 12, 60))
    wide = low > 0 and high > _WIDE * low
    spaced = np.geomspace if wide else np.linspace
    edges = spaced(low, max(high, low + 1e-9), n_bins + 1)
    edges[[0, -1]] = low, max(high, low + 1e-9)  # not a rounding error less
    with picture("scores", 8.6, 3.1) as drawn:
        axis = drawn.axis
        usual, flagged = values[~scores.is_anomaly], values[scores.is_anomaly]
        heights = np.histogram(usual, edges)[0]
        axis.stairs(heights, edges, fill=True, color=USUAL, alpha=0.75, label="images")
        if len(flagged):
            tops = heights + np.histogram(flagged, edges)[0]
            axis.stairs(
                tops, edges, baseline=heights, fill=True, color=ANOMALOUS, label="flagged"
            )
        if low <= level <= high:
            axis.axvline(level, color=LEVEL, lw=1.8, ls="--", label="threshold")
        if wide:
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlabel("anomaly score" + (" (logarithmic scale)" if wide else ""))
        axis.set_ylabel("images")
        axis.grid(axis="x", visible=False)
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.margins(x=0.01)
        axis.legend(loc="upper right")
    n_flagged = int(scores.is_anomaly.sum())
    return {
        "svg": drawn.svg,
        "alt": f"Histogram of the anomaly scores of {count(len(values), 'image')}.",
        "words": f"{count(len(values), 'image')} by anomaly score; {n_flagged:,} flagged. A "
        "good detector leaves a gap, or a thin tail, where the threshold is.",
    }


def _sheet(
    found: ImageSet, scores: ImageScores, order: NDArray[np.int64]
) -> list[dict[str, Any]]:
    return [
        {
            "rank": rank,
            "name": found.names[place],
            "score": number(scores.anomaly_score[place]),
            "flagged": bool(scores.is_anomaly[place]),
            "picture": data_uri(shown(found.pixels[place])),
        }
        for rank, place in enumerate(order, 1)
    ]


def _top(
    model: ImageModel, found: ImageSet, scores: ImageScores, order: NDArray[np.int64]
) -> dict[str, Any]:
    pixels = np.ascontiguousarray(found.pixels[order])
    reasons = model.explain(pixels)
    scale = heat_scale(reasons.difference)
    cards = []
    for rank, place in enumerate(order):
        image = pixels[rank]
        p = None if scores.p_value is None else number(scores.p_value[place], 2)
        cards.append(
            {
                "rank": rank + 1,
                "name": found.names[place],
                "score": number(scores.anomaly_score[place]),
                "p": p,
                "flagged": bool(scores.is_anomaly[place]),
                "input": data_uri(shown(image)),
                "expected": data_uri(shown(reasons.expected[rank])),
                "heat": data_uri(heat_colours(image, reasons.difference[rank], scale)),
            }
        )
    words = (
        "Of each image: as it came in, as it would look if it were normal, and where the two "
        "differ. Brightness means the same in all of them. A score also counts how far the "
        "image as a whole lies from normal ones, which cannot be pointed at."
    )
    return {"cards": cards, "words": words}


def _folders(found: ImageSet, scores: ImageScores) -> list[tuple[str, ...]] | None:
    names = np.array(found.folders)
    known = np.unique(names)
    if not 2 <= len(known) <= _FOLDERS:
        return None
    rows: list[tuple[str, ...]] = []
    for name in known:
        own = names == name
        values, flagged = scores.anomaly_score[own], int(scores.is_anomaly[own].sum())
        rows.append(
            (
                str(name) or "(top)",
                f"{own.sum():,}",
                f"{flagged:,}",
                percent(flagged / own.sum()),
                number(float(np.median(values))),
                number(float(values.max())),
            )
        )
    return rows


def _skipped(scores: ImageScores) -> dict[str, Any] | None:
    n = len(scores.skipped)
    if not n:
        return None
    rest = f" The first {_LISTED} are listed." if n > _LISTED else ""
    return {
        "words": f"{count(n, 'file')} could not be used and got no score.{rest}",
        "rows": [(each.name, each.reason) for each in scores.skipped[:_LISTED]],
    }


def _facts(model: ImageModel) -> list[tuple[str, str]]:
    detector, training = model.detector, model.training
    known = detector.calibration_scores_
    return [
        (
            "Method",
            f"{METHODS[detector.method]}, {count(len(detector.member_seeds_), 'member')}",
        ),
        ("Trained on", f"{training['source']}: {count(training['n_images'], 'image')}"),
        (
            "Labels",
            f"{count(training['n_anomalies'], 'anomaly', 'anomalies')}, "
            f"{training['n_labelled_normal']:,} normal, "
            f"{training['n_unlabelled']:,} without a label (taken as normal)",
        ),
        (
            "Calibrated with",
            "nothing: there are no p-values"
            if known is None
            else f"{count(len(known), 'image')} held out of the training",
        ),
        ("Images", f"{_size_in_words(model)}; others are resized to that"),
        ("Threshold", f"{model.threshold}; change it without training: aloof threshold"),
        (
            "Training",
            f"{count(detector.n_iter_, 'epoch')}, seed {training['seed']}, filters "
            f"{' - '.join(map(str, detector.filters or ()))}, {detector.latent_dim} latent "
            "dimensions",
        ),
        ("Versions", ", ".join(f"{name} {text}" for name, text in versions().items())),
    ]


def _reproduce(model: ImageModel, name: str, top: int) -> str:
    ((rule, value),) = model.threshold.as_dict().items()
    lines = [
        ["aloof", "threshold", "MODEL", f"--{rule}", str(value)],
        ["aloof", "report", "MODEL", name, "--top", str(top), "--out", "report.html"],
    ]
    return "\n".join(map(shlex.join, lines))


def _size_in_words(model: ImageModel) -> str:
    channels, height, width = model.shape
    return f"{width} x {height} pixels, {'grey' if channels == 1 else 'in colour'}"
