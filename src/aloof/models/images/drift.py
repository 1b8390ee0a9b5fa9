"""Whether images look like those that were learned from: their size, colours, brightness."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from aloof.io.sections import STRICT, from_json
from aloof.models.differences import FEWEST, Judge, NumberProfile, Share, in_percent
from aloof.models.images.reading import ImageSet
from aloof.models.results import Drift

__all__ = ["ImageProfile", "brightness", "find_image_drift"]

_SIZES = 20  # that are kept
_BLOCK = 4096  # images whose mean is taken at once
# What is large: differences of shares and of distribution functions.
_OTHER_SIZES, _SHIFT = 0.1, 0.25
_Side = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class ImageProfile:
    """What is kept of the normal training images.

    Attributes
    ----------
    n_images
        How many there were.
    sizes
        Height, width and share of the sizes that more than one file had, most common first.
    grey_share
        The share of files without colours; None: the images were in memory.
    brightness
        Of the means over their pixels, from 0 to 255; None: they were too few.
    """

    __pydantic_config__ = STRICT

    n_images: Annotated[int, Field(ge=1)]
    sizes: tuple[tuple[_Side, _Side, Share], ...]
    grey_share: Share | None
    brightness: NumberProfile | None

    @classmethod
    def of(cls, images: ImageSet, places: NDArray[np.int64]) -> ImageProfile:
        """Return the profile of some of the images."""
        looks = [images.looks[place] for place in places] if images.looks else []
        sizes = Counter(look.size for look in looks)
        common = [(size, n) for size, n in sizes.most_common(_SIZES) if n > 1]
        return cls(
            max(1, len(places)),
            tuple((*size, n / len(looks)) for size, n in common),
            sum(look.grey for look in looks) / len(looks) if looks else None,
            NumberProfile.of(brightness(images.pixels, places)),
        )

    def state(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ImageProfile:
        """Return the profile whose `state` this is; a ValueError says what is wrong."""
        found = from_json(cls, state)
        light = found.brightness
        if light is not None and list(light.quantiles) != sorted(light.quantiles):
            raise ValueError("the quantiles of the brightness must be in order")
        return found


def brightness(
    pixels: NDArray[Any], places: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Return the mean over the pixels of each image, from 0 (black) to 255 (white)."""
    chosen = np.arange(len(pixels)) if places is None else places
    scale = 1.0 if pixels.dtype == np.uint8 else 255.0
    means = [
        pixels[chosen[start : start + _BLOCK]].mean((1, 2, 3), dtype=np.float64)
        for start in range(0, len(chosen), _BLOCK)
    ]
    return np.concatenate([np.empty(0), *means]) * scale


def find_image_drift(profile: ImageProfile | None, images: ImageSet) -> list[Drift]:
    """Say where images differ from those that were learned from.

    A difference is said where it is large and chance is no explanation.

    Parameters
    ----------
    profile
        What was learned; None: the model is older.
    images
        Those to look at; of fewer than ten, nothing is said.
    """
    if profile is None or len(images) < FEWEST:
        return []
    judge = Judge(profile.n_images, 3)
    found = _sizes(profile, images, judge) if images.looks and profile.sizes else []
    if images.looks and profile.grey_share is not None:
        found += _colours(profile.grey_share, images, judge)
    if profile.brightness is not None:
        found += _light(profile.brightness, images, judge)
    return found


def _sizes(profile: ImageProfile, images: ImageSet, judge: Judge) -> list[Drift]:
    known = {(height, width): share for height, width, share in profile.sizes}
    others = Counter(look.size for look in images.looks if look.size not in known)
    now = others.total() / len(images)
    then = max(0.0, 1 - sum(known.values()))
    if now - then <= _OTHER_SIZES or not judge.is_real(now, then, len(images)):
        return []
    (example, _), usual = others.most_common(1)[0], next(iter(known))
    words = (
        f"{in_percent(now)} of the images are of another size than in training, such as "
        f"{_pixels(example)}; most were {_pixels(usual)}"
    )
    return [Drift(None, "size", words)]


def _colours(learned: float, images: ImageSet, judge: Judge) -> list[Drift]:
    now = sum(look.grey for look in images.looks) / len(images)
    if abs(now - learned) <= _SHIFT or not judge.is_real(now, learned, len(images)):
        return []
    words = f"{in_percent(now)} of the images are grey; in training, {in_percent(learned)} were"
    return [Drift(None, "colours", words)]


def _light(learned: NumberProfile, images: ImageSet, judge: Judge) -> list[Drift]:
    now = brightness(images.pixels)
    far = learned.distance(now)
    if far <= _SHIFT or not judge.is_far(far, len(now)):
        return []
    light = float(np.median(now))
    word = "darker" if light < learned.median else "brighter"
    if round(light) == round(learned.median):
        word = "of other brightness"
    words = (
        f"the images are {word} than in training: {light:.0f} where {learned.median:.0f} was "
        "learned (0 is black, 255 white)"
    )
    return [Drift(None, "brightness", words)]


def _pixels(size: Sequence[int]) -> str:
    return f"{size[1]:,} x {size[0]:,} pixels"
