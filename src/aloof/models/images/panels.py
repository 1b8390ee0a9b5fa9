"""Images as people look at them: what came in, what was expected, and where they differ."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloof.imagery import pillow
from aloof.models.images.model import ImageExplanation

if TYPE_CHECKING:
    from aloof.models.images.model import ImageModel

__all__ = [
    "data_uri",
    "explained",
    "explained_small",
    "heat_colours",
    "heat_scale",
    "joined",
    "png",
    "reduced",
    "shown",
]

_GAP = 4  # pixels between panels


def shown(pixels: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Return an image ``(channels, height, width)`` as ``(height, width, 3)``, bytes."""
    values = np.asarray(pixels)
    if values.dtype != np.uint8:
        values = np.rint(255.0 * np.clip(values.astype(np.float64), 0.0, 1.0)).astype(np.uint8)
    colours = np.broadcast_to(values, (3, *values.shape[1:]))
    return np.ascontiguousarray(colours.transpose(1, 2, 0))


def heat_scale(differences: NDArray[np.float64]) -> float:
    """Return the difference that is drawn brightest: the same for all images of a page.

    It is the peak of the image in the middle, so that one very bad pixel of one image does
    not leave the others dark.
    """
    peaks = np.quantile(differences.reshape(len(differences), -1), 0.998, axis=1)
    return max(float(np.median(peaks)), np.finfo(np.float64).tiny)


def heat_colours(
    pixels: NDArray[np.generic], difference: NDArray[np.float64], scale: float
) -> NDArray[np.uint8]:
    """Return where an image was not as expected, over its faint outlines.

    Parameters
    ----------
    pixels
        The image, ``(channels, height, width)``.
    difference
        How far every pixel is from what was expected, ``(height, width)``.
    scale
        The difference that is drawn brightest.
    """
    from matplotlib import colormaps

    strength = np.sqrt(np.clip(difference / scale, 0.0, 1.0))[..., None]
    grey = shown(pixels).mean(-1, keepdims=True) / 255.0
    glow = colormaps["inferno"](strength[..., 0])[..., :3]
    blend = glow + (1.0 - strength) * 0.3 * grey
    colours: NDArray[np.uint8] = np.rint(255.0 * blend.clip(0.0, 1.0)).astype(np.uint8)
    return colours


def explained(
    pixels: NDArray[np.generic], why: ImageExplanation
) -> list[list[NDArray[np.uint8]]]:
    """Return panels for each image: as it is, as it should be if known, what is strange."""
    scale = max(heat_scale(why.difference), why.least) if len(pixels) else 1.0
    rows = [
        [shown(image), heat_colours(image, difference, scale)]
        for image, difference in zip(pixels, why.difference, strict=True)
    ]
    if why.expected is not None:
        for row, expected in zip(rows, why.expected, strict=True):
            row.insert(1, shown(expected))
    return rows


def explained_small(
    model: ImageModel, pixels: NDArray[np.generic], most: int
) -> list[list[NDArray[np.uint8]]]:
    """Return the panels of `explained`, of at most so many pixels on the longer side."""
    factor = -(-max(pixels.shape[2:]) // most)
    if factor == 1:
        return explained(pixels, model.explain(pixels))
    heat = np.stack(
        [
            reduced(model.explain(pixels[i : i + 1]).difference[0], factor, keeps_peaks=True)
            for i in range(len(pixels))
        ]
    )
    small = np.stack([reduced(image, factor) for image in pixels])
    return explained(small, ImageExplanation(heat, None, heat, np.empty(0)))


def reduced(values: NDArray[Any], factor: int, *, keeps_peaks: bool = False) -> NDArray[Any]:
    """Return pictures ``(..., height, width)`` made smaller by a whole number.

    Parameters
    ----------
    values
        Pixels, heat or masks.
    factor
        How much smaller.
    keeps_peaks
        Take the highest of each block, so that nothing small is lost, and not the mean.
    """
    if factor == 1:
        return values
    *others, height, width = values.shape
    edges = [(0, 0)] * len(others) + [(0, -height % factor), (0, -width % factor)]
    rows, columns = -(-height // factor), -(-width // factor)
    blocks = np.pad(values, edges, "edge").reshape(*others, rows, factor, columns, factor)
    if keeps_peaks:
        return np.asarray(blocks.max((-3, -1)))
    means = blocks.mean((-3, -1))
    return np.asarray(np.rint(means) if values.dtype == np.uint8 else means, values.dtype)


def joined(rows: Sequence[Sequence[NDArray[np.uint8]]], enlarge: int) -> NDArray[np.uint8]:
    """Return panels of one size as one picture, on white."""
    height, width, _ = rows[0][0].shape
    h, w = enlarge * height + _GAP, enlarge * width + _GAP
    sheet = np.full((h * len(rows) - _GAP, w * len(rows[0]) - _GAP, 3), 255, np.uint8)
    for i, row in enumerate(rows):
        for j, panel in enumerate(row):
            large = panel.repeat(enlarge, 0).repeat(enlarge, 1)
            sheet[i * h : i * h + len(large), j * w : j * w + large.shape[1]] = large
    return sheet


def png(picture: NDArray[np.uint8]) -> bytes:
    """Return a picture ``(height, width, 3)`` as a PNG file."""
    content = io.BytesIO()
    pillow().fromarray(picture).save(content, "PNG", optimize=True)
    return content.getvalue()


def data_uri(picture: NDArray[np.uint8]) -> str:
    """Return a picture as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png(picture)).decode("ascii")
