"""What the manifest says of images."""

from __future__ import annotations

from typing import Any

from aloof.io.sections import Count, Section, Text
from aloof.models.manifest import Training

__all__ = ["ImageManifest", "ImageTraining"]


class ImageTraining(Training):
    """What the model of images was made from."""

    source: Text | None  # None: arrays
    n_images: Count
    n_skipped: Count


class ImageManifest(Section):
    """What an `ImageModel` has beside its detector."""

    training: ImageTraining
    profile: dict[str, Any] | None = None  # checks its own state; older models have none
