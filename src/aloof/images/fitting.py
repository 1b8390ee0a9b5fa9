"""From folders of images to a model, in one call."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.estimators import DETECTORS, Detector
from aloof.exceptions import ImageError, ImageWarning, LabelError
from aloof.images.decoding import Channels
from aloof.images.defaults import DEFAULTS, default_epochs, default_filters
from aloof.images.folders import Collection, open_images
from aloof.images.model import ImageModel
from aloof.images.reading import ImageSet, Progress, Size, Source, read_images, take
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.modelling import check_choices, fit_detector, hold_out
from aloof.vae import Method

__all__ = ["fit_images"]

_REFUSED = {"standardize": "pixels stay in [0, 1]"}


def fit_images(
    images: Source | None = None,
    *,
    normal: str | os.PathLike[str] | None = None,
    anomaly: str | os.PathLike[str] | None = None,
    labels: Mapping[str, int] | None = None,
    size: Size | None = None,
    channels: Channels | None = None,
    method: Method = "dp",
    members: int = 5,
    calibration: float = 0.2,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **parameters: Any,
) -> ImageModel:
    """Learn what normal images look like.

    Either give two folders (``normal="good", anomaly="bad"``), or one folder and the names of
    two folders inside it, or one folder and labels. Folders may also be zip archives. Images
    without a label count as normal.

    Parameters
    ----------
    images
        A folder, a zip archive or a `Collection`.
    normal, anomaly
        Folders of normal images and of anomalies; inside `images` where that is given.
    labels
        1 anomaly, 0 normal, -1 unlabelled for names of files in `images`, with their folders
        or without.
    size, channels
        What images are resized to, and whether they are grey; see `read_images`.
    method
        "dp" (`DualPriorVAE`), "mml" (`MaxMinVAE`), "mml-dp" (`MaxMinDualPriorVAE`) or "vae".
    members
        Size of the ensemble.
    calibration
        Share of the images not labelled as anomalies that are held out to calibrate with, at
        most 10,000; 0: none.
    seed
        One seed, one model.
    checkpoint
        File to keep the state of the fit in; the same call continues a killed one.
    verbose
        Show a progress bar of the training.
    progress
        Called with how many images were read, and how many there are.
    **parameters
        Parameters of the detector, such as ``max_epochs``; see `aloof.VAE`. What images need
        and rows of numbers do not is in `aloof.images.defaults`.
    """
    check_choices(method, calibration, parameters, refused=_REFUSED, error=ImageError)
    sources = _sources(images, normal, anomaly, labels)
    found = read_images(sources, size=size, channels=channels, progress=progress)
    y, remarks = _labelled(found, images, normal, anomaly, labels)
    if found.skipped:
        remarks.append(
            f"{len(found.skipped):,} files were skipped; the first is {found.skipped[0]}."
        )
    for words in remarks:
        warnings.warn(words, ImageWarning, stacklevel=2)
    if (n_usual := int((y != ANOMALY).sum())) < 2:
        raise ImageError(
            f"There {'is 1 image' if n_usual == 1 else 'are 0 images'} not labelled as an "
            "anomaly, and it takes at least 2, better 200, to learn what is normal. Add normal "
            "images."
        )
    train, held_out = hold_out(y, calibration, seed)
    detector = _detector(method, found.shape, int((y[train] != ANOMALY).sum()), parameters)
    detector.set_params(n_members=members, random_state=seed, verbose=verbose)
    counts, more = fit_detector(
        detector,
        lambda places: take(found.pixels, places),
        y,
        train,
        held_out,
        things="images",
        calibrates=calibration > 0,
        checkpoint=checkpoint,
    )
    training = {
        "source": ", ".join(str(each.path) for each in sources),
        "n_images": len(found),
        "n_skipped": len(found.skipped),
        **counts,
        "seed": seed,
        "warnings": [*remarks, *more],
    }
    return ImageModel(detector, training)


def _sources(
    images: Source | None,
    normal: str | os.PathLike[str] | None,
    anomaly: str | os.PathLike[str] | None,
    labels: Mapping[str, int] | None,
) -> list[Collection]:
    if images is not None:
        if labels is not None and (normal is not None or anomaly is not None):
            raise ImageError("Give labels, or the folders of normal images and anomalies.")
        return [images if isinstance(images, Collection) else open_images(images)]
    if labels is not None:
        raise ImageError("Labels need the folder with the images that they are of.")
    if normal is None:
        raise ImageError("There are no images. Give a folder, or a folder of normal ones.")
    return [open_images(path) for path in (normal, anomaly) if path is not None]


def _labelled(
    found: ImageSet,
    images: Source | None,
    normal: str | os.PathLike[str] | None,
    anomaly: str | os.PathLike[str] | None,
    labels: Mapping[str, int] | None,
) -> tuple[NDArray[np.int64], list[str]]:
    """Return a label for each image, and what is odd about the labels."""
    if images is None:
        return np.where(found.origins == 0, NORMAL, ANOMALY), []
    if labels is not None:
        return _by_name(found, labels)
    y = np.full(len(found), UNLABELLED)
    root = images.path if isinstance(images, Collection) else Path(images)
    for folder, label in ((normal, NORMAL), (anomaly, ANOMALY)):
        if folder is not None:
            y[_inside(found.names, root, folder)] = label
    return y, []


def _inside(
    names: Sequence[str], root: Path, folder: str | os.PathLike[str]
) -> NDArray[np.bool_]:
    """Return which files are in a folder, given as it is called inside `root` or outside."""
    given = PurePosixPath(Path(folder).as_posix())
    outside = PurePosixPath(os.path.relpath(folder, root).replace(os.sep, "/"))
    for inside in (given, outside):
        chosen = np.array([PurePosixPath(name).is_relative_to(inside) for name in names])
        if chosen.any() and inside != PurePosixPath("."):
            return chosen
    known = sorted({PurePosixPath(name).parts[0] for name in names if "/" in name})
    there = f" It has {', '.join(known[:10])}." if known else " It has no folders."
    raise ImageError(f"There is no image in a folder {os.fspath(folder)!r} in {root}.{there}")


def _by_name(found: ImageSet, labels: Mapping[str, int]) -> tuple[NDArray[np.int64], list[str]]:
    if unknown := sorted({*labels.values()} - {ANOMALY, NORMAL, UNLABELLED}):
        raise LabelError(
            f"Labels are 1 (anomaly), 0 (normal) and -1 (unlabelled); got {unknown[0]!r}."
        )
    bases = Counter(PurePosixPath(name).name for name in found.names)
    y = np.full(len(found), UNLABELLED)
    used = set()
    for place, name in enumerate(found.names):
        base = PurePosixPath(name).name
        key = name if name in labels else base
        if key not in labels:
            continue
        if key == base != name and bases[base] > 1:
            raise ImageError(
                f"Several images are called {base!r}. Write their labels with the folders, as "
                f"{name!r}."
            )
        y[place] = labels[key]
        used.add(key)
    if not used:
        first = next(iter(labels), None)
        raise ImageError(
            f"No label is that of an image: labels are for names such as {first!r}, images "
            f"have names such as {found.names[0]!r}."
        )
    skipped = {each.name for each in found.skipped}
    lost = [name for name in labels if name not in used | skipped]
    if not lost:
        return y, []
    return y, [f"{len(lost):,} labels are for files that are not there, such as {lost[0]!r}."]


def _detector(
    method: str, shape: tuple[int, ...], n_normal: int, parameters: Mapping[str, Any]
) -> Detector:
    kind = DETECTORS[method]
    known = kind().get_params(deep=False)
    defaults = {name: value for name, value in DEFAULTS.items() if name in known}
    defaults |= {"max_epochs": default_epochs(n_normal), "filters": default_filters(shape)}
    if parameters.get("max_epochs", ...) is None:
        parameters = {k: v for k, v in parameters.items() if k != "max_epochs"}
    if unknown := sorted(set(parameters) - set(known)):
        raise ImageError(f"{kind.__name__} has no parameter {unknown[0]!r}.")
    return kind(**(defaults | dict(parameters)))
