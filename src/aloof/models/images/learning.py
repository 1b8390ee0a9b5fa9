"""Detectors that learn from features of a backbone: of whole images, or of patches."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloof.estimators import DETECTORS, VAE, Detector, fit_many
from aloof.exceptions import CalibrationWarning, ImageError, ImageWarning
from aloof.labels import ANOMALY, NORMAL, UNLABELLED
from aloof.models import fit_detector
from aloof.models.images.patches import (
    PATCH_DEFAULTS,
    PatchRows,
    PatchView,
    learn_patches,
    patch_epochs,
)
from aloof.models.images.reading import ImageSet, images_in_memory, take
from aloof.models.images.views import Shape, WholeView
from aloof.vision import Backbone

if TYPE_CHECKING:
    from aloof.models.images.model import ImageModel

__all__ = [
    "WHOLE_DEFAULTS",
    "fit_patches",
    "fit_whole",
    "make_detector",
    "patch_detectors",
    "patch_tasks",
    "refit_patches",
    "whole_detector",
]

WHOLE_DEFAULTS: dict[str, Any] = {"hidden": (256, 64), "latent_dim": 32}
_USELESS = (
    "The labelled anomalies do not help to recognise one another by their patches, so they "
    "count nothing. With masks of the defects (--masks), they may."
)
_Fitted = tuple[Detector, Any, dict[str, int], list[str]]


def fit_whole(
    backbone: Backbone,
    images: ImageSet,
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    method: str,
    parameters: Mapping[str, Any],
    common: Mapping[str, Any],
    checkpoint: str | os.PathLike[str] | None,
) -> _Fitted:
    """Learn from features of whole images.

    Labelled anomalies are few, so their mirror images are learned from as well.

    Parameters
    ----------
    backbone
        What makes features.
    images, labels
        All of them; 1 is an anomaly, 0 normal, -1 unlabelled.
    train, held_out
        The places to learn from, and those to calibrate with.
    method, parameters, common
        Of the detector: its name, what the user chose, and what all methods have.
    checkpoint
        File to keep the state of the fit in.

    Returns
    -------
    The detector, the view, how many there were of what, and what to say of the calibration.
    """
    view = WholeView(backbone, _shape(images))
    bad = np.flatnonzero(labels == ANOMALY)
    rows = np.concatenate(
        [view.features(images.pixels), view.features(take(images.pixels, bad)[..., ::-1])]
    )
    y = np.concatenate([labels, np.full(len(bad), ANOMALY)])
    more = len(labels) + np.arange(len(bad))
    detector = whole_detector(method, parameters, common)
    counts, remarks = fit_detector(
        detector,
        lambda places: rows[places],
        y,
        np.concatenate([train, more]),
        held_out,
        things="images",
        calibrates=True,
        checkpoint=checkpoint,
    )
    return detector, view, {**counts, "n_anomalies": len(bad)}, remarks


def fit_patches(
    backbone: Backbone,
    images: ImageSet,
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    held_out: NDArray[np.int64],
    masks: Mapping[int, NDArray[np.bool_]],
    method: str,
    parameters: Mapping[str, Any],
    common: Mapping[str, Any],
    checkpoint: str | os.PathLike[str] | None,
) -> _Fitted:
    """Learn from features of patches.

    As `fit_whole`; masks go by the place of their image. The detector is a VAE that knows no
    labels. A detector of `method` learns what labelled defects add.
    """
    normal = train[labels[train] != ANOMALY]
    bad = train[labels[train] == ANOMALY]
    good = take(images.pixels, normal)
    seed = int(common["random_state"])
    places = {int(place): number for number, place in enumerate(bad)}
    found = learn_patches(backbone, good, seed).labelled(
        take(images.pixels, bad),
        {places[place]: mask for place, mask in masks.items() if place in places},
        seed,
    )
    detector, taught = patch_detectors(found, method, parameters, common)
    tasks = patch_tasks(found, taught=taught is not None)
    kept = None if checkpoint is None else str(checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        fit_many([each for each in (detector, taught) if each], tasks, checkpoint=kept)
    view = found.scaled(detector, taught)
    scores = found.training_scores(view, detector)
    detector._take_scores(scores, np.arange(len(scores)))
    remarks: list[str] = []
    if len(bad) and view.lessons is None:
        remarks.append(_USELESS)
        warnings.warn(_USELESS, ImageWarning, stacklevel=3)
    if len(held_out):
        scores = view.scores(detector, take(images.pixels, held_out))
        detector._calibrate(scores, np.full(len(scores), UNLABELLED))
        remarks += filter(None, [detector.threshold_.shortage(len(held_out))])
    counts = {
        "n_anomalies": int((labels == ANOMALY).sum()),
        "n_labelled_normal": int((labels == NORMAL).sum()),
        "n_unlabelled": int((labels == UNLABELLED).sum()),
        "n_training": len(normal),
        "n_calibration": len(held_out),
    }
    return detector, view, counts, remarks


def refit_patches(
    model: ImageModel,
    pixels: NDArray[Any],
    labels: NDArray[np.int64],
    held_out: NDArray[Any],
    masks: Mapping[int, NDArray[np.bool_]],
    max_epochs: int | None,
    *,
    verbose: bool = False,
) -> tuple[Detector, PatchView]:
    """Learn from patches again, with other labels and the backbone of a model.

    Parameters
    ----------
    model
        Of patches; it is left as it is.
    pixels, labels
        Images to learn from; 1 is an anomaly, 0 normal, -1 unlabelled.
    held_out
        Images to calibrate with.
    masks
        Where the defects of some are, by the place of the image.
    max_epochs
        Passes over the patches; None: as many as the model had.
    verbose
        Show a progress bar.
    """
    made = model.training.get("made") or {}
    options = made.get("options", {})
    parameters = dict(made.get("parameters", {}))
    if max_epochs is not None:
        parameters["max_epochs"] = max_epochs
    common = {
        "n_members": model.detector.n_members,
        "random_state": int(model.training["seed"]),
        "verbose": verbose,
    }
    assert isinstance(model.view, PatchView)
    images = images_in_memory(np.concatenate([pixels, held_out]))
    n = len(pixels)
    detector, view, _, _ = fit_patches(
        model.view.backbone,
        images,
        np.concatenate([labels, np.full(len(held_out), UNLABELLED)]),
        np.arange(n),
        np.arange(n, len(images)),
        masks,
        options.get("method", "dp"),
        parameters,
        common,
        None,
    )
    return detector, view


def make_detector(
    method: str,
    defaults: Mapping[str, Any],
    parameters: Mapping[str, Any],
    common: Mapping[str, Any],
) -> Detector:
    """Return an unfitted detector, or say which parameter it does not have.

    Parameters
    ----------
    method, parameters, common
        As in `fit_whole`.
    defaults
        What the user may change; those that the method does not have are left out.
    """
    kind = DETECTORS[method]
    known = kind().get_params(deep=False)
    if unknown := sorted(set(parameters) - set(known)):
        raise ImageError(f"{kind.__name__} has no parameter {unknown[0]!r}.")
    own = {name: value for name, value in defaults.items() if name in known}
    return kind(**{**own, **parameters, **common})


def whole_detector(
    method: str, parameters: Mapping[str, Any], common: Mapping[str, Any]
) -> Detector:
    """Return a detector for features of whole images; parameters as in `fit_whole`."""
    return make_detector(method, WHOLE_DEFAULTS, parameters, common)


def _shape(images: ImageSet) -> Shape:
    channels, height, width = images.shape
    return channels, height, width


def patch_detectors(
    found: PatchRows, method: str, parameters: Mapping[str, Any], common: Mapping[str, Any]
) -> tuple[Detector, Detector | None]:
    """Return the detectors that are to learn from patches.

    Parameters
    ----------
    found
        What they learn from.
    method, parameters, common
        As in `fit_whole`.

    Returns
    -------
    A VAE that knows no labels; and a detector of the method that does, with half as many
    members, or None where labels teach nothing.
    """
    defaults = dict(PATCH_DEFAULTS)
    batch_size = int(parameters.get("batch_size", defaults["batch_size"]))
    defaults["max_epochs"] = patch_epochs(len(found.rows), batch_size)
    n_members = max(1, int(common["n_members"]) // 2)
    taught = make_detector(method, defaults, parameters, {**common, "n_members": n_members})
    known = VAE().get_params(deep=False)
    shared = {name: value for name, value in parameters.items() if name in known}
    plain = make_detector(VAE.method, defaults, shared, common)
    teaches = found.view.lessons is not None and method != VAE.method
    return plain, taught if teaches else None


def patch_tasks(
    found: PatchRows, *, taught: bool
) -> list[tuple[NDArray[np.float32], NDArray[np.float64]]]:
    """Return rows and labels for the detectors of `patch_detectors`."""
    tasks = [(found.rows, np.full(len(found.rows), np.nan))]
    if taught:
        y = np.repeat([np.nan, float(ANOMALY)], [len(found.rows), len(found.bad)])
        tasks.append((np.concatenate([found.rows, found.bad]), y))
    return tasks
