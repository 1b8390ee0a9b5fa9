"""Features of images: a vector for the whole, or one for every patch of a grid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from aloof.vision.backbones import Backbone
from aloof.vision.residual import OWN

__all__ = [
    "LARGEST_AT_ONCE",
    "SMALLEST_OWN",
    "enlarge",
    "enlarged",
    "feature_maps",
    "joined_maps",
    "patch_features",
    "patch_grid",
    "patch_tensor",
    "whole_features",
    "whole_tensor",
]

LARGEST_AT_ONCE = 1024  # pixels on the longer side; larger images are looked at tile by tile
_IMAGES_AT_ONCE, _PIXELS_AT_ONCE = 32, 4 * 512 * 512
_MARGIN = 64  # pixels around a tile that are looked at, too, at least
# Smaller images are enlarged: the networks learned from photographs of 224 pixels.
_SMALLEST_WHOLE, _SMALLEST_PATCHED = 224, 128
_SHORTEST = 1e-6  # what is shorter has no direction
# A network that learned from images like these takes them nearly as they are.
SMALLEST_OWN = 64


def whole_features(backbone: Backbone, pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return a vector for each image: the means of all its feature maps.

    The means of each map have unit length: how strongly an image excites a network says more
    about its contrast than about what it shows.

    Parameters
    ----------
    backbone
        What makes the maps.
    pixels
        Images ``(n, channels, height, width)``: bytes, or numbers in [0, 1].
    """
    found = [whole_tensor(backbone, part) for part in _parts(pixels, _SMALLEST_WHOLE)]
    empty = torch.empty(0, sum(backbone.channels))
    return torch.cat([empty, *(one.cpu() for one in found)]).numpy()


def whole_tensor(backbone: Backbone, images: Tensor) -> Tensor:
    """Return what `whole_features` does, of a few images."""
    means = [one.mean((2, 3)) for one in _maps(backbone, images)]
    lengths = [one.square().sum(1, keepdim=True).sqrt().clamp_min(_SHORTEST) for one in means]
    return torch.cat([one / length for one, length in zip(means, lengths, strict=True)], 1)


def patch_grid(
    backbone: Backbone, size: tuple[int, int], *, tiled: bool = False
) -> tuple[int, int]:
    """Return how many rows and columns of patches an image of this height and width has."""
    stride = backbone.patch
    height, width = size if tiled else enlarged(size, _smallest(backbone, _SMALLEST_PATCHED))
    return -(-height // stride), -(-width // stride)


def patch_features(
    backbone: Backbone,
    pixels: NDArray[Any],
    *,
    tiled: bool = False,
    then: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield feature maps ``(k, rows, columns, size)`` of some images at a time, in order.

    Every map is averaged over neighbourhoods of three by three, and brought to the grid of
    patches.

    Parameters
    ----------
    backbone
        What makes the maps.
    pixels
        Images ``(n, channels, height, width)``: bytes, or numbers in [0, 1].
    tiled
        Look at one image at a time, and at a part of it at a time, with what surrounds it.
        What is seen is nearly the same, and takes no more memory if images are large.
    then
        What is made of the features of each part; None: nothing else.
    """
    for part in _parts(pixels, _SMALLEST_PATCHED, at_most=1 if tiled else _IMAGES_AT_ONCE):
        yield patch_tensor(backbone, part, tiled=tiled, then=then).cpu().numpy()


def patch_tensor(
    backbone: Backbone,
    images: Tensor,
    *,
    tiled: bool = False,
    then: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return what `patch_features` yields, of a few images."""
    if not tiled:
        found = _joined(backbone, _maps(backbone, images, _SMALLEST_PATCHED))
        return found if then is None else then(found)
    stride, coarsest = backbone.patch, backbone.strides[-1]
    margin = -(-_MARGIN // coarsest) * coarsest
    sides = images.shape[2], images.shape[3]
    grid = patch_grid(backbone, sides, tiled=True)
    downwards, across = (_tiles(side, margin, coarsest) for side in sides)
    strips = []
    for top, ys in downwards:
        strip = []
        for left, xs in across:
            part = images.index_select(2, ys).index_select(3, xs)
            maps = _joined(backbone, _maps(backbone, part, 1))
            reach = margin // stride
            inner = maps[:, reach:-reach, reach:-reach]
            inner = inner[:, : grid[0] - top // stride, : grid[1] - left // stride]
            strip.append(inner if then is None else then(inner))
        strips.append(torch.cat(strip, 2))
    return torch.cat(strips, 1)


def _tiles(side: int, margin: int, stride: int) -> list[tuple[int, Tensor]]:
    """Return where tiles begin along a side, and the places of their pixels with margins."""
    n = -(-side // (LARGEST_AT_ONCE - 2 * margin))
    size = -(-side // (n * stride)) * stride
    return [
        (begin, torch.arange(begin - margin, begin + size + margin).clamp(0, side - 1))
        for begin in range(0, side, size)
    ]


def joined_maps(maps: list[Tensor], place: int = 0) -> Tensor:
    """Return all maps as one, ``(n, size, rows, columns)``, smoothed, on the grid of one.

    Beyond the border there is nothing: means of the border repeated would be means of fewer
    values, which differ more, so that normal images would be odd at their borders.

    Parameters
    ----------
    maps
        From fine to coarse, each half as fine as the one before.
    place
        Of the map that the others are brought to the grid of.
    """
    grid = maps[place].shape[2:]
    smooth = [F.avg_pool2d(F.pad(one, (1, 1, 1, 1)), 3, 1) for one in maps]
    finer = [_shrunk(one, grid, 2 ** (place - k)) for k, one in enumerate(smooth[:place])]
    coarser = [
        F.interpolate(one, grid, mode="bilinear", align_corners=False)
        for one in smooth[place + 1 :]
    ]
    return torch.cat([*finer, smooth[place], *coarser], 1)


def _shrunk(one: Tensor, grid: torch.Size, times: int) -> Tensor:
    """Return means of squares of a map that is so many times as fine as a grid."""
    rows, columns = (times * side for side in grid)
    return F.avg_pool2d(F.pad(one, (0, columns - one.shape[3], 0, rows - one.shape[2])), times)


def _joined(backbone: Backbone, maps: list[Tensor]) -> Tensor:
    """Return the features of patches, ``(n, rows, columns, size)``."""
    place = backbone.strides.index(backbone.patch)
    return joined_maps(maps, place).permute(0, 2, 3, 1)


def enlarged(size: tuple[int, int], smallest: int) -> tuple[int, int]:
    """Return the size that images are given to the network in."""
    grow = max(1.0, smallest / min(size))
    return round(size[0] * grow), round(size[1] * grow)


def enlarge(images: Tensor, smallest: int) -> Tensor:
    """Return images ``(n, channels, height, width)`` in that size."""
    size = (images.shape[2], images.shape[3])
    if (wanted := enlarged(size, smallest)) == size:
        return images
    return F.interpolate(images, wanted, mode="bicubic", align_corners=False)


def feature_maps(
    backbone: Backbone, pixels: NDArray[Any], smallest: int = _SMALLEST_WHOLE
) -> Iterator[list[Tensor]]:
    """Yield the feature maps of some images at a time, one tensor for each stride."""
    for part in _parts(pixels, smallest):
        yield _maps(backbone, part, smallest)


def _parts(
    pixels: NDArray[Any], smallest: int, *, at_most: int = _IMAGES_AT_ONCE
) -> Iterator[Tensor]:
    height, width = enlarged((pixels.shape[2], pixels.shape[3]), smallest)
    at_once = max(1, min(at_most, _PIXELS_AT_ONCE // (height * width)))
    for start in range(0, len(pixels), at_once):
        yield torch.from_numpy(np.ascontiguousarray(pixels[start : start + at_once]))


def _maps(backbone: Backbone, images: Tensor, smallest: int = _SMALLEST_WHOLE) -> list[Tensor]:
    """Return feature maps of images: bytes, or numbers in [0, 1]."""
    ready = images.float() / 255 if images.dtype == torch.uint8 else images.float()
    grown = enlarge(ready, _smallest(backbone, smallest))
    return backbone(grown.expand(-1, 3, -1, -1))


def _smallest(backbone: Backbone, known: int) -> int:
    return min(known, SMALLEST_OWN) if backbone.facts.architecture == OWN else known
