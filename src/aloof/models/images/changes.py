"""Tests of whether images are drawn as those of the training were.

Their brightness, the codes and the score; see `aloof.models.changes`. Sizes and colours are
properties of the files, which `aloof.models.images.drift` has words for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aloof.models.changes import (
    FEWEST,
    Change,
    adjusted,
    code_changes,
    in_classes,
    kolmogorov,
    score_changes,
)
from aloof.models.images.drift import ImageProfile, brightness
from aloof.models.images.model import ImageModel
from aloof.models.images.reading import ImageSet

__all__ = ["find_image_changes"]

_MOST = 2000  # images that are looked at


def find_image_changes(model: ImageModel, data: Any) -> list[Change]:
    """Compare images with those that a model learned from.

    Parameters
    ----------
    model
        Of images.
    data
        A folder, an archive, an `ImageSet` or an array; a few thousand images are looked at,
        drawn at random.

    Returns
    -------
    Those of the brightness, of the codes and of the score, as far as there is something to
    compare with.
    """
    found = model.read(data)
    drawn = np.sort(np.random.default_rng(0).permutation(len(found))[:_MOST])
    pixels = found.pixels[drawn]
    light = [] if model.profile is None else _light(model.profile, found, drawn)
    scores = model.anomaly_score(pixels)
    detector = model.detector
    of_codes = (
        []  # codes are those of patches
        if model.learns_patches
        else code_changes(detector, model.features(pixels))
    )
    return adjusted([*light, *of_codes, *score_changes(detector, scores)])


def _light(profile: ImageProfile, found: ImageSet, drawn: Any) -> list[Change]:
    learned, now = profile.brightness, brightness(found.pixels, drawn)
    if learned is None or len(now) < FEWEST:
        return []
    distance = learned.distance(now)
    return [
        Change(
            "(brightness)",
            "Kolmogorov-Smirnov",
            distance,
            kolmogorov(distance, len(now), profile.n_images),
            *in_classes(learned.quantiles, now, ".0f"),
        )
    ]
