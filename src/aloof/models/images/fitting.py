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

from aloof.estimators import Committee
from aloof.exceptions import ImageError, ImageWarning
from aloof.imagery import Channels, Collection, open_images
from aloof.labels import ANOMALY, NORMAL
from aloof.models import (
    Progress,
    check_choices,
    fit_detector,
    hold_out,
    made_by,
)
from aloof.models.images.choosing import (
    LARGEST_SEEN,
    check_alike,
    choose_backbone,
    choose_patches,
    make_backbone,
    refuse_options,
    worth_features,
)
from aloof.models.images.defaults import DEFAULTS, default_epochs, default_filters
from aloof.models.images.drift import ImageProfile
from aloof.models.images.labels import ImageLabels, check_share
from aloof.models.images.learning import fit_patches, fit_whole, make_detector
from aloof.models.images.masks import read_masks
from aloof.models.images.model import ImageModel
from aloof.models.images.reading import (
    LARGEST_SIDE,
    ImageSet,
    Size,
    Source,
    images_in_memory,
    read_images,
    take,
)
from aloof.models.images.views import View
from aloof.phrases import count
from aloof.training import resolve_device
from aloof.vision import NONE
from aloof.vision.features import LARGEST_AT_ONCE

__all__ = ["are_images", "fit_images", "read_labelled"]

_DIM = 1 / 8  # of the range of 16 bits, as the brightest value of most images
_REFUSED = {"standardize": "pixels stay in [0, 1]"}
_ABOUT_IMAGES = frozenset(
    ("normal", "anomaly", "labels", "size", "channels", "masks", "backbone", "patches")
)


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
    masks: str | os.PathLike[str] | None = None,
    backbone: str | os.PathLike[str] | None = None,
    patches: bool | None = None,
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
    masks
        A folder of masks that say where the defects of some anomalies are; see `read_masks`.
        Only for patches.
    backbone
        The network whose features are learned from: the name of packaged weights, such as
        "efficientnet-lite0"; a file with weights (see `aloof.vision.load_backbone`);
        "geometric" or "cut-paste": a small network that learns from these images (see
        `aloof.vision.learn_backbone`); or "none": learn from pixels. None: the packaged
        weights that are installed, unless images are too small.
    patches
        Whether to look at every patch of an image (for defects), or at the whole (for images
        that are something else). None: what the images suggest; see
        `aloof.models.images.choosing`.
    size, channels
        What images are resized to, and whether they are grey; see `read_images`. With a
        backbone, images keep their proportions, and one number is the longer side.
    method
        "dp" (`DualPriorVAE`), "mml" (`MaxMinVAE`), "mml-dp" (`MaxMinDualPriorVAE`) or "vae";
        for whole images with a backbone also "committee". None: "dp" for pixels, "committee"
        for whole images with labels, "vae" for patches, where labelled defects are compared
        with; if one of the first three is asked for, it learns from them as well, see
        `aloof.models.images.lessons`.
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
    asked, method = method, method or "dp"
    check_choices(
        method,
        calibration,
        parameters,
        refused=_REFUSED,
        error=ImageError,
        without=[Committee.method] if backbone == NONE or patches else [],
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
    name = choose_backbone(backbone, parameters)
    found, y, remarks = read_labelled(
        images, source, size, channels, progress, keeps_proportions=name is not None
    )
    check_share(y)
    check_alike(found, y)
    if backbone is None and name is not None and not worth_features(found.shape):
        name = None
    if name is None:
        refuse_options(method, masks=masks, patches=patches)
    chosen = {
        **vars(source),
        "masks": masks,
        "backbone": backbone,
        "patches": patches,
        "size": size,
        "channels": channels,
        "method": asked,
        "members": members,
        "calibration": calibration,
        "seed": seed,
    }
    path = images.path if isinstance(images, Collection) else images
    written = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    made = made_by(fit_images, written, chosen, parameters)
    if (reach := [look.reach for look in found.looks if look.reach < 1]) and (
        float(np.median(reach)) < _DIM
    ):
        remarks.append(
            f"Images of 16 bits have values up to {round(65535 * max(reach)):,} of 65,535, so "
            "that little is left of them in 8 bits. Multiply them first: cameras often give 10 "
            "or 12 bits."
        )
    if found.skipped:
        remarks.append(
            f"{count(len(found.skipped), 'file')} skipped; the first is {found.skipped[0]}."
        )
    for words in remarks:
        warnings.warn(words, ImageWarning, stacklevel=2)
    train, held_out = hold_out(
        y, calibration, seed, things="images", better=200, error=ImageError
    )
    common = {"n_members": members, "random_state": seed, "verbose": verbose}
    view: View | None = None
    chosen_because = ""
    if name is not None:
        if masks is not None and patches is None:
            patches = True
        device = resolve_device(str(parameters.get("device", "auto")))
        network = make_backbone(
            name, found.pixels, y, train, seed, device=device, verbose=verbose
        )
        if patches is None:
            patches, chosen_because = choose_patches(network, found, y, train, method)
        if not patches and max(found.shape[1:]) > LARGEST_AT_ONCE:
            raise ImageError(
                f"Whole images have at most {LARGEST_AT_ONCE:,} pixels on the longer side: "
                f"size={LARGEST_AT_ONCE} (--size {LARGEST_AT_ONCE}). Patches may have more."
            )
        if patches and method == Committee.method:
            raise ImageError(
                "The method committee is for whole images (patches=False, --whole)."
            )
    if name is None:
        n_normal = int((y[train] != ANOMALY).sum())
        sizes = {
            "max_epochs": default_epochs(n_normal),
            "filters": default_filters(found.shape),
        }
        detector = make_detector(method, {**DEFAULTS, **sizes}, parameters, common)
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
    elif patches:
        marked = _masks(masks, found, y)
        detector, view, counts, more = fit_patches(
            network,
            found,
            y,
            train,
            held_out,
            marked,
            asked or "vae",
            parameters,
            common,
            checkpoint,
        )
    else:
        if masks is not None:
            raise ImageError("Masks are for patches. Leave out patches=False (--whole).")
        if asked is None and (y[train] == ANOMALY).any():
            method = Committee.method  # labels add there, too, and never take away
        detector, view, counts, more = fit_whole(
            network, found, y, train, held_out, method, parameters, common, checkpoint
        )
    if not calibration:
        more = []
    training = {
        "source": found.name,
        "n_images": len(found),
        "n_skipped": len(found.skipped),
        **counts,
        "seed": seed,
        "warnings": [*remarks, *more],
        "made": made,
    }
    if view is not None:
        training["chosen"] = chosen_because or "as asked for"
    profile = ImageProfile.of(found, train[y[train] != ANOMALY])
    return ImageModel(detector=detector, training=training, profile=profile, view=view)


def _masks(
    path: str | os.PathLike[str] | None, found: ImageSet, y: NDArray[np.int64]
) -> dict[int, NDArray[np.bool_]]:
    if path is None:
        return {}
    return read_masks(
        path, found, y == ANOMALY, otherwise="are learned from where they look strangest"
    )


def are_images(data: Any, options: Names[str]) -> bool:
    """Say whether data for `aloof.fit` are images.

    Parameters
    ----------
    data
        As given; None: nothing was.
    options
        The names of those that were given.
    """
    asked = bool(_ABOUT_IMAGES & set(options))
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
    *,
    keeps_proportions: bool = False,
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
        found = read_images(
            sources,
            size=size,
            channels=channels,
            largest=LARGEST_SEEN if keeps_proportions else LARGEST_SIDE,
            keeps_proportions=keeps_proportions,
            progress=progress,
        )
        size = channels = None
    if size is not None or channels is not None:
        raise ImageError(
            "Images in memory keep their size and channels. Leave out size and channels."
        )
    if images is None:
        return found, np.where(found.origins == 0, NORMAL, ANOMALY), []
    return found, *folders.of(found)
