"""Masks: where in an image the defect is, in a folder beside the images."""

from __future__ import annotations

import os
import warnings
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import ImageError, ImageWarning
from aloof.imagery import open_images, without_page
from aloof.models.images.reading import ImageSet, read_images
from aloof.phrases import count

__all__ = ["read_masks"]

_ENDINGS = ("", "_mask", "-mask", "_gt", "_label")
_ALIKE = 0.02  # proportions that differ by less are the same


def read_masks(
    path: str | os.PathLike[str],
    images: ImageSet,
    wanted: NDArray[np.bool_],
    *,
    otherwise: str,
) -> dict[int, NDArray[np.bool_]]:
    """Return masks by the place of their image, ``(height, width)``: true where it is bad.

    A mask is called as its image is, with any ending of a file, and perhaps with ``_mask``
    behind the name, as in MVTec AD. It lies in the same folder below `path` as the image does
    below its own, where names alone are not enough. Warns of anomalies without a mask, and of
    masks that are not as large as their image; those are resized.

    Parameters
    ----------
    path
        A folder or a zip archive.
    images
        The images, as they were read.
    wanted
        Which of them are anomalies. A mask of another image must be black, and says nothing.
    otherwise
        What is done with anomalies without a mask, in words that follow "they".

    Raises
    ------
    ImageError
        For a mask without an image, of other proportions than its image, or without a bad
        pixel.
    """
    height, width = images.shape[1:]
    found = read_images(
        open_images(path), size=(height, width), channels=1, keeps_proportions=True, fill=0
    )
    if found.skipped:
        raise ImageError(f"A mask cannot be used: {found.skipped[0]}.")
    by_name: dict[str, list[int]] = {}
    for row, name in enumerate(images.names):
        parts = PurePosixPath(_stem(name)).parts
        for depth in range(len(parts)):
            by_name.setdefault("/".join(parts[depth:]), []).append(row)
    masks: dict[int, NDArray[np.bool_]] = {}
    resized = []
    for number, name in enumerate(found.names):
        place = _image_of(name, by_name, wanted)
        mask = found.pixels[number, 0] > 0
        if place is None or (mask.any() and not wanted[place]):
            raise ImageError(
                f"There is no anomaly that the mask {name!r} is for. A mask is called as its "
                "image is, or with _mask behind the name."
            )
        if not wanted[place]:
            continue
        if images.looks:
            sizes = found.looks[number].size, images.looks[place].size
            words = f"{_pixels(sizes[0])}, and its image {_pixels(sizes[1])}"
            if not _fits(*sizes):
                raise ImageError(f"The mask {name!r} has {words}.")
            if sizes[0] != sizes[1]:
                resized.append(f"{name} has {words}")
        if not mask.any():
            raise ImageError(f"The mask {name!r} is black: it marks no defect.")
        masks[place] = mask
    if resized:
        n = count(len(resized), "mask")
        _warn(f"{n} resized to the size of the image, such as: {resized[0]}.")
    if lacking := [int(row) for row in np.flatnonzero(wanted) if int(row) not in masks]:
        _warn(
            f"{len(lacking):,} of {count(int(wanted.sum()), 'anomaly', 'anomalies')} without a "
            f"mask, such as {images.names[lacking[0]]!r}; they {otherwise}."
        )
    return masks


def _warn(words: str) -> None:
    warnings.warn(words, ImageWarning, stacklevel=4)


def _pixels(size: tuple[int, int]) -> str:
    return f"{size[1]:,} x {size[0]:,} pixels"


def _stem(name: str) -> str:
    """Return a name without the ending of the file, with its page if it has several."""
    file = without_page(name)
    return f"{PurePosixPath(file).with_suffix('')}{name.removeprefix(file)}"


def _image_of(
    name: str, by_name: dict[str, list[int]], wanted: NDArray[np.bool_]
) -> int | None:
    page = name.removeprefix(without_page(name))
    parts = PurePosixPath(_stem(without_page(name))).parts
    for depth in range(len(parts)):
        known = "/".join(parts[depth:])
        for ending in _ENDINGS:
            if ending and not known.endswith(ending):
                continue
            places = by_name.get(known.removesuffix(ending) + page, [])
            # Normal images are often called as anomalies are.
            places = [place for place in places if wanted[place]] or places
            if len(places) == 1:
                return places[0]
            if len(places) > 1:
                raise ImageError(
                    f"The mask {name!r} can be for several images. Put masks into the same "
                    "folders as the images are in."
                )
    return None


def _fits(mask: tuple[int, int], image: tuple[int, int]) -> bool:
    """Say whether a mask has the proportions of its image; it may be smaller."""
    one, two = (width / height for height, width in (mask, image))
    return abs(one / two - 1) <= _ALIKE
