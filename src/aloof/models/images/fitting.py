"""From folders of images to a model, in one call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection as Names
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.estimators import DETECTORS, Committee, Detector
from aloof.exceptions import ImageError, ImageWarning
from aloof.labels import ANOMALY, NORMAL
from aloof.models import (
    Progress,
    check_choices,
    fit_detector,
    hold_out,
    made_by,
)
from aloof.models.images.decoding import Channels
from aloof.models.images.defaults import DEFAULTS, default_epochs, default_filters
from aloof.models.images.drift import ImageProfile
from aloof.models.images.folders import Collection, open_images
from aloof.models.images.labels import ImageLabels, check_share
from aloof.models.images.model import ImageModel
from aloof.models.images.reading import (
    ImageSet,
    Size,
    Source,
    images_in_memory,
    read_images,
    take,
)
from aloof.phrases import count

__all__ = ["are_images", "fit_images", "read_labelled"]

_REFUSED = {"standardize": "pixels stay in [0, 1]"}


def fit_images(
    images: Source | ImageSet | NDArray[Any] | None = None,
    *,
    normal: str | os.PathLike[str] | NDArray[Any] | None = None,
    anomaly: str | os.PathLike[str] | NDArray[Any] | None = None,
    labels: str | os.PathLike[str] | Mapping[str, int] | ArrayLike | None = None,
    id: str | None = None,
    label: str | None = None,
    anomaly_value: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    size: Size | None = None,
    channels: Channels | None = None,
    method: str | None = None,
    members: int = 5,
    max_epochs: int | None = None,
    calibration: float = 0.2,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    progress: Progress | None = None,
    **parameters: Any,
) -> ImageModel:
    """Learn what normal images look like.

    Either give two folders (``normal="good", anomaly="bad"``), or one folder and the names of
    two folders inside it, or one folder and labels. Folders may also be zip archives, or arrays
    of images ``(n, channels, height, width)``: bytes, or numbers in [0, 1]. Images without a
    label count as normal.

    Parameters
    ----------
    images
        A folder, a zip archive, a `Collection`, an `ImageSet` or an array.
    normal, anomaly
        Folders of normal images and of anomalies; inside `images` where that is given.
    labels
        A table of file names and labels; or 1 anomaly, 0 normal, -1 unlabelled for names of
        files in `images`, with their folders or without; or such a label for each image.
    id, label, anomaly_value, delimiter, encoding
        About the table: its columns of names and of labels, the label of anomalies, how to
        read it. See `aloof.models.images.ImageLabels`.
    size, channels
        What images are resized to, and whether they are grey; see `read_images`.
    method
        "dp" (`DualPriorVAE`), "mml" (`MaxMinVAE`), "mml-dp" (`MaxMinDualPriorVAE`) or "vae".
    members
        Size of the ensemble.
    max_epochs
        Passes over the data; None: as many as its size asks for.
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
        Parameters of the detector, such as ``beta_kl``; see `aloof.VAE`. What images need
        and rows of numbers do not is in `aloof.models.images.defaults`.
    """
    if max_epochs is not None:
        parameters["max_epochs"] = max_epochs
    method = method or "dp"
    check_choices(
        method,
        calibration,
        parameters,
        refused=_REFUSED,
        error=ImageError,
        without=[Committee.method],
    )
    source = ImageLabels(
        normal=normal,
        anomaly=anomaly,
        labels=labels,
        id=id,
        label=label,
        anomaly_value=anomaly_value,
        delimiter=delimiter,
        encoding=encoding,
    )
    source.check_folders()
    found, y, remarks = read_labelled(images, source, size, channels, progress)
    check_share(y)
    chosen = {
        **vars(source),
        "size": size,
        "channels": channels,
        "method": method,
        "members": members,
        "calibration": calibration,
        "seed": seed,
    }
    path = images.path if isinstance(images, Collection) else images
    written = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    made = made_by(fit_images, written, chosen, parameters)
    if found.skipped:
        remarks.append(
            f"{count(len(found.skipped), 'file')} skipped; the first is {found.skipped[0]}."
        )
    for words in remarks:
        warnings.warn(words, ImageWarning, stacklevel=2)
    train, held_out = hold_out(
        y, calibration, seed, things="images", better=200, error=ImageError
    )
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
        "source": found.name,
        "n_images": len(found),
        "n_skipped": len(found.skipped),
        **counts,
        "seed": seed,
        "warnings": [*remarks, *more],
        "made": made,
    }
    profile = ImageProfile.of(found, train[y[train] != ANOMALY])
    return ImageModel(detector=detector, training=training, profile=profile)


def are_images(data: Any, options: Names[str]) -> bool:
    """Say whether data for `aloof.fit` are images.

    Parameters
    ----------
    data
        As given; None: nothing was.
    options
        The names of those that were given.
    """
    asked = bool({"normal", "anomaly", "labels", "size", "channels"} & set(options))
    if data is None:
        return asked
    if isinstance(data, np.ndarray):
        return data.ndim > 2
    if not isinstance(data, str | os.PathLike):
        return isinstance(data, Collection | ImageSet)
    path = Path(data)
    if path.is_dir():
        return asked or len(open_images(path)) > 0
    if path.suffix.lower() == ".zip":
        from aloof.models.table.formats import holds_table

        return asked or not holds_table(path)
    return os.fspath(data) == "-" and asked


def read_labelled(
    images: Any,
    folders: ImageLabels,
    size: Size | None,
    channels: Channels | None,
    progress: Progress | None = None,
) -> tuple[ImageSet, NDArray[np.int64], list[str]]:
    """Return the images, a label for each, and what is odd about the labels."""
    normal, anomaly, labels = folders.normal, folders.anomaly, folders.labels
    if images is None:
        if labels is not None:
            raise ImageError("Name the folder that holds the images the labels are for.")
        if normal is None:
            raise ImageError(
                "There are no images. Name a folder of images, or a folder of normal ones."
            )
    if isinstance(images, str | os.PathLike):
        images = open_images(images)
    if isinstance(images, Collection) and len(images):
        folders = folders.opened(images.names)
    given = [images] if images is not None else [normal, anomaly]
    sources = [source for source in given if source is not None]
    if isinstance(images, ImageSet):
        found = images
    elif arrays := [source for source in sources if isinstance(source, np.ndarray)]:
        if len(arrays) < len(sources):
            raise ImageError("Give arrays for both kinds of images, or folders for both.")
        found = images_in_memory(*arrays)
    else:
        found = read_images(sources, size=size, channels=channels, progress=progress)
        size = channels = None
    if size is not None or channels is not None:
        raise ImageError(
            "Images in memory keep their size and channels. Leave out size and channels."
        )
    if images is None:
        return found, np.where(found.origins == 0, NORMAL, ANOMALY), []
    return found, *folders.of(found)


def _detector(
    method: str, shape: tuple[int, ...], n_normal: int, parameters: Mapping[str, Any]
) -> Detector:
    kind = DETECTORS[method]
    known = kind().get_params(deep=False)
    defaults = {name: value for name, value in DEFAULTS.items() if name in known}
    defaults |= {"max_epochs": default_epochs(n_normal), "filters": default_filters(shape)}
    if unknown := sorted(set(parameters) - set(known)):
        raise ImageError(f"{kind.__name__} has no parameter {unknown[0]!r}.")
    return kind(**(defaults | dict(parameters)))
