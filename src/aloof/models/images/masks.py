"""Masks: where in an image the defect is, in a folder beside the images."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import ImageError
from aloof.models.images.decoding import Look
from aloof.models.images.folders import open_images
from aloof.models.images.reading import ImageSet, read_images

__all__ = ["read_masks"]

_ENDINGS = ("", "_mask", "-mask", "_gt", "_label")
_ALIKE = 0.02  # proportions that differ by less are the same


def read_masks(
    path: str | os.PathLike[str], images: ImageSet, wanted: NDArray[np.bool_]
) -> dict[int, NDArray[np.bool_]]:
    """Return masks by the place of their image, ``(height, width)``: true where it is bad.

    A mask is called as its image is, with any ending of a file, and perhaps with ``_mask``
    behind the name, as in MVTec AD. It lies in the same folder below `path` as the image does
    below its own, where names alone are not enough.

    Parameters
    ----------
    path
        A folder or a zip archive.
    images
        The images, as they were read.
    wanted
        Which of them may have a mask.

    Raises
    ------
    ImageError
        For a mask without an image, of another size than its image, or without a bad pixel.
    """
    height, width = images.shape[1:]
    found = read_images(
        open_images(path), size=(height, width), channels=1, keeps_proportions=True, fill=0
    )
    if found.skipped:
        raise ImageError(f"A mask cannot be used: {found.skipped[0]}.")
    by_name: dict[str, list[int]] = {}
    for row in np.flatnonzero(wanted):
        parts = PurePosixPath(images.names[row]).with_suffix("").parts
        for depth in range(len(parts)):
            by_name.setdefault("/".join(parts[depth:]), []).append(int(row))
    masks: dict[int, NDArray[np.bool_]] = {}
    for number, name in enumerate(found.names):
        place = _image_of(name, by_name)
        if place is None:
            raise ImageError(
                f"There is no anomaly that the mask {name!r} is for. A mask is called as its "
                "image is, or with _mask behind the name."
            )
        look = found.looks[number]
        if images.looks and not _fits(look, images.looks[place]):
            raise ImageError(
                f"The mask {name!r} has {look.size[1]:,} x {look.size[0]:,} pixels, and its "
                f"image {images.looks[place].size[1]:,} x {images.looks[place].size[0]:,}."
            )
        mask = found.pixels[number, 0] > 0
        if not mask.any():
            raise ImageError(f"The mask {name!r} is black: it marks no defect.")
        masks[place] = mask
    return masks


def _image_of(name: str, by_name: dict[str, list[int]]) -> int | None:
    path = PurePosixPath(name).with_suffix("")
    for depth in range(len(path.parts)):
        known = "/".join(path.parts[depth:])
        for ending in _ENDINGS:
            if ending and not known.endswith(ending):
                continue
            places = by_name.get(known.removesuffix(ending), ())
            if len(places) == 1:
                return places[0]
            if len(places) > 1:
                raise ImageError(
                    f"The mask {name!r} can be for several images. Put masks into the same "
                    "folders as the images are in."
                )
    return None


def _fits(mask: Look, image: Look) -> bool:
    """Say whether a mask has the proportions of its image; it may be smaller."""
    one, two = (look.size[1] / look.size[0] for look in (mask, image))
    return abs(one / two - 1) <= _ALIKE
