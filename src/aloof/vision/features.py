"""Features of images: a vector for the whole, or one for every patch of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from aloof.vision.backbones import Backbone
from aloof.vision.residual import OWN

__all__ = [
    "SMALLEST_OWN",
    "enlarge",
    "enlarged",
    "feature_maps",
    "joined_maps",
    "patch_features",
    "patch_grid",
    "whole_features",
]

_PIXELS_AT_ONCE = 4 * 512 * 512
# Smaller images are enlarged: the networks learned from photographs of 224 pixels.
_SMALLEST_WHOLE, _SMALLEST_PATCHED = 192, 128
# A network that learned from images like these takes them nearly as they are.
SMALLEST_OWN = 64


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


def patch_grid(backbone: Backbone, size: tuple[int, int]) -> tuple[int, int]:
    """Return how many rows and columns of patches an image of this height and width has."""
    stride = backbone.strides[0]
    height, width = enlarged(size, _smallest(backbone, _SMALLEST_PATCHED))
    return -(-height // stride), -(-width // stride)


def patch_features(backbone: Backbone, pixels: NDArray[Any]) -> Iterator[NDArray[np.float16]]:
    """Yield feature maps ``(k, rows, columns, size)`` of some images at a time, in order.

    Every map is averaged over neighbourhoods of three by three, and brought to the grid of
    the finest one.

    Parameters
    ----------
    backbone
        What makes the maps.
    pixels
        Images ``(n, channels, height, width)``: bytes, or numbers in [0, 1].
    """
    for maps in feature_maps(backbone, pixels, _SMALLEST_PATCHED):
        joined = joined_maps(maps)
        limit = torch.finfo(torch.float16).max
        halves = joined.clamp(-limit, limit).permute(0, 2, 3, 1).half()
        yield halves.cpu().numpy()


def joined_maps(maps: list[Tensor]) -> Tensor:
    """Return all maps as one, ``(n, size, rows, columns)``, smoothed, on the finest grid."""
    grid = maps[0].shape[2:]
    smooth = [F.avg_pool2d(F.pad(one, (1, 1, 1, 1), "replicate"), 3, 1) for one in maps]
    rest = (
        F.interpolate(one, grid, mode="bilinear", align_corners=False) for one in smooth[1:]
    )
    return torch.cat([smooth[0], *rest], 1)


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
    smallest = _smallest(backbone, smallest)
    height, width = enlarged((pixels.shape[2], pixels.shape[3]), smallest)
    at_once = max(1, min(32, _PIXELS_AT_ONCE // (height * width)))
    for start in range(0, len(pixels), at_once):
        block = torch.from_numpy(np.ascontiguousarray(pixels[start : start + at_once]))
        images = block.float() / 255 if block.dtype == torch.uint8 else block.float()
        yield backbone(enlarge(images, smallest).expand(-1, 3, -1, -1))


def _smallest(backbone: Backbone, known: int) -> int:
    return SMALLEST_OWN if backbone.facts.architecture == OWN else known
