"""What the manifest says of images."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from aloof.io.sections import Count, Section, Text
from aloof.models.manifest import Training

__all__ = ["ImageManifest", "ImageTraining", "ViewState"]

_Side = Annotated[int, Field(ge=1, le=32_768)]


class ImageTraining(Training):
    """What the model of images was made from."""

    source: Text | None  # None: arrays
    n_images: Count
    n_skipped: Count
    chosen: Text | None = None  # why patches or whole images were; older models have none


class ViewState(Section):
    """What a detector sees of images, and with which backbone."""

    kind: Text
    shape: Annotated[list[_Side], Field(min_length=3, max_length=3)]
    tiled: bool = False  # older models have none
    name: Text
    architecture: Text
    sha256: Text
    licence: Text
    strides: Annotated[list[_Side], Field(min_length=1, max_length=8)]
    lessons: dict[str, Any] | None = None  # of a detector that learned from labelled patches


class ImageManifest(Section):
    """What an `ImageModel` has beside its detector."""

    training: ImageTraining
    profile: dict[str, Any] | None = None  # checks its own state; older models have none
    view: ViewState | None = None  # None: the detector takes pixels
