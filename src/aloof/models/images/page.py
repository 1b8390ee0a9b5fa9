"""The page about images: the strangest of them, and what is strange about them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.models import made_by
from aloof.models.images.labels import ImageLabels
from aloof.models.images.model import ImageModel, ImageScores
from aloof.models.images.panels import data_uri, explained_small, reduced, shown
from aloof.models.images.reading import ImageSet
from aloof.models.page import check_report, write_page
from aloof.models.page_facts import tile
from aloof.phrases import count, number, percent
from aloof.report.findings import Tally

__all__ = ["write_image_page"]

_SHEET = 60  # images on the contact sheet
_LISTED = 100  # skipped files
_FOLDERS = 30
_THUMBNAIL, _DRAWN = 512, 1024  # pixels on the longer side; larger pictures are made smaller
_SMOOTH = 96  # images with a longer side are not drawn as squares


def write_image_page(
    model: ImageModel,
    data: Any,
    path: str | os.PathLike[str],
    labels: ImageLabels,
    *,
    top: int,
    force: bool,
    title: str,
) -> None:
    """Write the page; see `ImageModel.report`."""
    check_report(path, force=force, top=top)
    images = model.read(data)
    scores = model.scored(images)
    given, remarks = labels.of(images)
    tally = Tally(model.detector.decision_)
    tally.add(scores.anomaly_score, given)
    order = np.argsort(-scores.anomaly_score, kind="stable")
    n_skipped = len(scores.skipped)
    notes = [("These images", words) for words in remarks]
    notes += [("These images", f"{each.words}.") for each in scores.drift]
    if n_skipped:
        words = f"{count(n_skipped, 'file')} could not be used; see the end of the page."
        notes.append(("These images", words))
    write_page(
        path,
        model,
        tally.findings("images", has_labels=labels.given),
        title=title,
        call=made_by(model.report, images.name, {**vars(labels), "top": top, "title": title}),
        template="images.html",
        styles=["images.css"],
        tiles=[
            tile("Skipped", f"{n_skipped:,}", "files not used" if n_skipped else "all read"),
        ],
        notes=notes,
        sheet=_sheet(images, scores, order[:_SHEET]),
        strangest=_strangest(model, images, scores, order[:top]),
        folders=_folders(images, scores),
        skipped=_skipped(scores),
        pixelated=max(model.shape[1:]) < _SMOOTH,
    )


def _sheet(
    found: ImageSet, scores: ImageScores, order: NDArray[np.int64]
) -> list[dict[str, Any]]:
    return [
        {
            "rank": rank,
            "name": found.names[place],
            "score": number(scores.anomaly_score[place]),
            "flagged": bool(scores.is_anomaly[place]),
            "picture": data_uri(shown(_thumbnail(found.pixels[place]))),
        }
        for rank, place in enumerate(order, 1)
    ]


def _thumbnail(image: NDArray[Any]) -> NDArray[Any]:
    return reduced(image, -(-max(image.shape[1:]) // _THUMBNAIL))


def _strangest(
    model: ImageModel, found: ImageSet, scores: ImageScores, order: NDArray[np.int64]
) -> dict[str, Any]:
    panels = explained_small(model, np.ascontiguousarray(found.pixels[order]), _DRAWN)
    p = scores.p_value
    words = (
        "For each image: the original, and what is strange about it. Brightness means the same "
        "in all of them."
        if model.view is not None
        else "For each image: the original, what it would look like if it were normal, and "
        "where the two differ. Brightness means the same in all of them. A score also "
        "counts how far the image as a whole is from normal ones, which no picture can show."
    )
    return {
        "words": words,
        "cards": [
            {
                "rank": rank + 1,
                "name": found.names[place],
                "score": number(scores.anomaly_score[place]),
                "p": None if p is None else number(p[place], 2),
                "flagged": bool(scores.is_anomaly[place]),
                **_pictures([data_uri(panel) for panel in panels[rank]]),
            }
            for rank, place in enumerate(order)
        ],
    }


def _pictures(panels: list[str]) -> dict[str, str | None]:
    """Return the panels of an image by their names; what should be there may not be known."""
    first, *middle, last = panels
    return {"input": first, "expected": middle[0] if middle else None, "heat": last}


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
