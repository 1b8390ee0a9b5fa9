"""A model of images: what scores them, and the size that it takes them in."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from aloof.calibration import p_values
from aloof.estimators import Detector, describe, from_model
from aloof.exceptions import ImageError, ModelError
from aloof.images.decoding import Channels
from aloof.images.expectation import expected_images
from aloof.images.folders import Collection, Skipped
from aloof.images.reading import ImageSet, Progress, Source, read_images
from aloof.modelling import Model
from aloof.persistence import section_of, write_model

__all__ = ["ImageExplanation", "ImageModel", "ImageScores"]


@dataclass(frozen=True, eq=False)
class ImageScores:
    """What there is to say about some images.

    Attributes
    ----------
    names
        Of the files.
    anomaly_score
        Higher is worse.
    p_value
        How likely a normal image is to look at least as anomalous; None: not calibrated.
    is_anomaly
        By the threshold of the model.
    skipped
        Files that were left out, and why.
    """

    names: tuple[str, ...] = field(repr=False)
    anomaly_score: NDArray[np.float64]
    p_value: NDArray[np.float64] | None
    is_anomaly: NDArray[np.bool_]
    skipped: tuple[Skipped, ...]

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table: ``file``, ``anomaly_score``, ..."""
        table: dict[str, Any] = {
            "file": list(self.names),
            "anomaly_score": self.anomaly_score,
        }
        if self.p_value is not None:
            table["p_value"] = self.p_value
        return table | {"is_anomaly": self.is_anomaly}


@dataclass(frozen=True, eq=False)
class ImageExplanation:
    """Where some images have their anomaly scores from.

    Attributes
    ----------
    heat
        What every pixel contributes to the score, ``(n, height, width)``; adds up to it.
    expected
        The image as it would be if it were normal, ``(n, channels, height, width)``, in
        [0, 1]; see `aloof.images.expectation`.
    difference
        How far every pixel is from that, ``(n, height, width)``: the mean square over the
        channels.
    score
        The anomaly scores.
    """

    heat: NDArray[np.float64]
    expected: NDArray[np.float64]
    difference: NDArray[np.float64]
    score: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ImageModel(Model):
    """A detector for images; `aloof.images.fit_images` makes one, `aloof.load` reads one.

    Images are a folder, a zip archive or a file (see `open_images`), an `ImageSet`, or an
    array ``(n, channels, height, width)`` of bytes, or of numbers in [0, 1], in the size of
    the model.

    Attributes
    ----------
    detector
        What scores arrays of pixels. It was calibrated with images that were held out, if
        there were enough.
    training
        What it was made from, as JSON can hold it: ``source``, ``n_images`` read,
        ``n_skipped`` files, ``n_anomalies``, ``n_labelled_normal``, ``n_unlabelled``,
        ``n_training`` and ``n_calibration`` images (the latter two without anomalies);
        ``seed``; ``warnings``, a list of words.
    """

    detector: Detector
    training: dict[str, Any]

    _things, _error = "images", ImageError

    def __repr__(self) -> str:
        channels, height, width = self.shape
        kind = "grey" if channels == 1 else "colour"
        detector = type(self.detector).__name__
        return f"ImageModel({detector} of {kind} images, {height} x {width})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the images: channels, height, width."""
        return cast(tuple[int, int, int], self.detector.shape_)

    def read(self, source: Source, *, progress: Progress | None = None) -> ImageSet:
        """Read images in the size and colours of the model; see `read_images`."""
        channels, height, width = self.shape
        depth: Channels = 1 if channels == 1 else 3
        return read_images(source, size=(height, width), channels=depth, progress=progress)

    def anomaly_score(self, data: Any) -> NDArray[np.float64]:
        """Return how anomalous each image is; higher is worse."""
        return self.detector.anomaly_score(self._pixels(data))

    def score(self, images: Any, *, progress: Progress | None = None) -> ImageScores:
        """Return what there is to say about each image.

        Parameters
        ----------
        images
            A folder, a zip archive, a file, or an `ImageSet`.
        progress
            Called with how many images were read, and how many there are.
        """
        found = images if isinstance(images, ImageSet) else self.read(images, progress=progress)
        scores = self.anomaly_score(found)
        known = self.detector.calibration_scores_
        return ImageScores(
            found.names,
            scores,
            None if known is None else p_values(known, scores),
            self.decide(scores),
            found.skipped,
        )

    def explain(self, images: Any) -> ImageExplanation:
        """Return where in each image its anomaly score comes from.

        Takes about ten times as long as the scores do.
        """
        pixels = self._pixels(images)
        found = self.detector.explain(pixels)
        expected, difference = expected_images(self.detector, pixels)
        return ImageExplanation(found.contributions.sum(1), expected, difference, found.score)

    def reconstruct(self, images: Any) -> NDArray[np.float64]:
        """Return the mean of the members' reconstructions, with pixels in [0, 1]."""
        return self.detector.reconstruct(self._pixels(images))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a folder, which `aloof.load` and the commands read.

        It is the folder of a detector with ``images`` in its manifest. The ``threshold`` may
        be edited, as there.
        """
        manifest, tensors = describe(self.detector)
        write_model(path, {**manifest, "images": {"training": self.training}}, tensors)

    @classmethod
    def from_model(
        cls,
        path: str | os.PathLike[str],
        model: tuple[dict[str, Any], dict[str, Tensor]],
        *,
        device: str = "auto",
    ) -> ImageModel:
        """Return the model of what was read from a folder."""
        manifest, _ = model
        folder = os.fspath(path)
        if "images" not in manifest:
            raise ModelError(
                f"{folder} does not hold a model of images. Open it with aloof.load, or make a "
                "model of images with fit_images or aloof fit."
            )
        from aloof.images.manifest import ImageManifest

        section_of(ImageManifest, manifest, folder, "images")
        detector = from_model(path, model, device=device)
        if len(detector.shape_) != 3 or detector.shape_[0] not in (1, 3):
            raise ModelError(f"{folder} has a detector of rows, not of images.")
        return cls(detector, manifest["images"]["training"])

    def _pixels(self, images: Any) -> NDArray[Any]:
        if isinstance(images, str | os.PathLike | Collection):
            images = self.read(images)
        pixels = np.asarray(images.pixels if isinstance(images, ImageSet) else images)
        if pixels.ndim != 4 or pixels.shape[1:] != self.shape:
            raise ImageError(
                f"The model takes images of shape (n, {str(self.shape)[1:]}; these are of "
                f"shape {pixels.shape}. Read them with the model's own read."
            )
        return pixels
