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

__all__ = [
    "LARGEST_AT_ONCE",
    "feature_maps",
    "patch_features",
    "patch_grid",
    "patch_maps",
    "whole_features",
]

LARGEST_AT_ONCE = 1024  # pixels on the longer side; larger images are looked at tile by tile
_PIXELS_AT_ONCE = 4 * 512 * 512
_MARGIN = 64  # pixels around a tile that are looked at, too; a multiple of all strides
# Smaller images are enlarged: the networks learned from photographs of 224 pixels.
_SMALLEST_WHOLE, _SMALLEST_PATCHED = 192, 128


def whole_features(backbone: Backbone, pixels: NDArray[Any]) -> NDArray[np.float32]:
    """Return a vector for each image: the means of all its feature maps.

    Parameters
    ----------
    backbone
        What makes the maps.
    pixels
        Images ``(n, channels, height, width)``: bytes, or numbers in [0, 1].
    """
    found = [
        torch.cat([one.mean((2, 3)) for one in maps], 1)
        for maps in feature_maps(backbone, pixels)
    ]
    empty = torch.empty(0, sum(backbone.channels))
    return torch.cat([empty, *(one.cpu() for one in found)]).numpy()


def patch_grid(
    backbone: Backbone, size: tuple[int, int], *, tiled: bool = False
) -> tuple[int, int]:
    """Return how many rows and columns of patches an image of this height and width has."""
    stride = backbone.strides[0]
    height, width = size if tiled else _enlarged(size, _SMALLEST_PATCHED)
    return -(-height // stride), -(-width // stride)


def patch_features(
    backbone: Backbone,
    pixels: NDArray[Any],
    *,
    tiled: bool = False,
    then: Callable[[Tensor], Tensor] | None = None,
) -> Iterator[NDArray[np.float32]]:
    """Yield feature maps ``(k, rows, columns, size)`` of some images at a time, in order.

    Every map is averaged over neighbourhoods of three by three, and brought to the grid of
    the finest one.

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
    if not tiled:
        for maps in feature_maps(backbone, pixels, _SMALLEST_PATCHED):
            found = patch_maps(maps)
            yield (found if then is None else then(found)).cpu().numpy()
        return
    stride = backbone.strides[0]
    rows, columns = patch_grid(backbone, (pixels.shape[2], pixels.shape[3]), tiled=True)
    for image in pixels:
        whole = None
        for (top, left), part in _tiles(image, backbone.strides[-1]):
            (maps,) = feature_maps(backbone, part[None], 1)
            reach = _MARGIN // stride
            inner = patch_maps(maps)[:, reach:-reach, reach:-reach]
            y, x = top // stride, left // stride
            inner = inner[:, : rows - y, : columns - x]
            values = (inner if then is None else then(inner)).cpu().numpy()
            if whole is None:
                whole = np.empty((1, rows, columns, values.shape[-1]), np.float32)
            whole[:, y : y + values.shape[1], x : x + values.shape[2]] = values
        assert whole is not None
        yield whole


def patch_maps(maps: list[Tensor]) -> Tensor:
    """Return feature maps as one, ``(n, rows, columns, size)``; see `patch_features`."""
    grid = maps[0].shape[2:]
    smooth = [F.avg_pool2d(F.pad(one, (1, 1, 1, 1), "replicate"), 3, 1) for one in maps]
    larger = [
        F.interpolate(one, grid, mode="bilinear", align_corners=False) for one in smooth[1:]
    ]
    return torch.cat([smooth[0], *larger], 1).permute(0, 2, 3, 1)


def _tiles(image: NDArray[Any], stride: int) -> Iterator[tuple[tuple[int, int], NDArray[Any]]]:
    """Yield where tiles begin, and their pixels with margins; all tiles are of one size."""
    sides = image.shape[1:]
    inner = []
    for side in sides:
        n = -(-side // (LARGEST_AT_ONCE - 2 * _MARGIN))
        inner.append(-(-side // (n * stride)) * stride)
    for top in range(0, sides[0], inner[0]):
        for left in range(0, sides[1], inner[1]):
            places = [
                np.arange(begin - _MARGIN, begin + size + _MARGIN).clip(0, side - 1)
                for begin, size, side in zip((top, left), inner, sides, strict=True)
            ]
            yield (top, left), image[:, places[0][:, None], places[1]]


def _enlarged(size: tuple[int, int], smallest: int) -> tuple[int, int]:
    """Return the size that images are given to the network in."""
    grow = max(1.0, smallest / min(size))
    return round(size[0] * grow), round(size[1] * grow)


def feature_maps(
    backbone: Backbone, pixels: NDArray[Any], smallest: int = _SMALLEST_WHOLE
) -> Iterator[list[Tensor]]:
    """Yield the feature maps of some images at a time, one tensor for each stride."""
    size = pixels.shape[2:]
    wanted = _enlarged((size[0], size[1]), smallest)
    at_once = max(1, min(32, _PIXELS_AT_ONCE // (wanted[0] * wanted[1])))
    for start in range(0, len(pixels), at_once):
        block = torch.from_numpy(np.ascontiguousarray(pixels[start : start + at_once]))
        images = block.float() / 255 if block.dtype == torch.uint8 else block.float()
        if wanted != tuple(size):
            images = F.interpolate(images, wanted, mode="bicubic", align_corners=False)
        yield backbone(images.expand(-1, 3, -1, -1))
