"""PatchCore as it was published, with the backbone of everybody else; and anomalib's own.

Patches are vectors of the feature maps at strides 8 and 16 (layers 2 and 3 of a ResNet),
averaged over neighbourhoods of three by three. A tenth of them, chosen greedily, is kept. The
score of an image is the distance of its farthest patch from the nearest one that is kept,
weighed by how far that one's neighbours are.

References
----------
Roth et al., "Towards Total Recall in Industrial Anomaly Detection", CVPR 2022.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from aloof.exceptions import ExperimentError
from aloof.training.seeds import seeded
from aloof.vision import Backbone
from aloof.vision.features import feature_maps
from aloof.vision.memory import coreset

__all__ = ["anomalib_patchcore", "patchcore", "reweighted"]

_Scores = tuple[NDArray[np.float64], NDArray[np.float64]]
_MAPS = 2  # of the backbone, the finest
_KEPT = 0.1  # share of the patches
_NEIGHBOURS = 9
_BLUR = 4.0  # pixels, as published
_AT_ONCE = 1024
_SMALLEST = 128  # pixels across; smaller images are enlarged, as for our patches


def patchcore(
    network: Backbone, normal: NDArray[np.uint8], seed: int
) -> Callable[[NDArray[np.uint8]], _Scores]:
    """Return what scores images and their pixels.

    Parameters
    ----------
    network
        What makes features.
    normal
        Images ``(n, channels, height, width)`` to learn from.
    seed
        The same seed, the same patches are kept.
    """
    rows = torch.cat([_embedded(maps).flatten(0, 2) for maps in _maps(network, normal)])
    bank = rows[coreset(rows, max(1, int(_KEPT * len(rows))), seed)]

    def score(images: NDArray[np.uint8]) -> _Scores:
        scores, heat = [], []
        for maps in _maps(network, images):
            patches = _embedded(maps)
            far, nearest = _nearest(patches.flatten(0, 2), bank)
            shape = patches.shape[:3]
            scores.append(
                reweighted(
                    patches.flatten(1, 2),
                    far.reshape(shape[0], -1),
                    nearest.reshape(shape[0], -1),
                    bank,
                )
            )
            grown = F.interpolate(far.reshape(shape)[:, None], images.shape[2:])
            heat.append(_blurred(grown)[:, 0])
        return _numbers(scores), _numbers(heat)

    return score


def reweighted(patches: Tensor, far: Tensor, nearest: Tensor, bank: Tensor) -> Tensor:
    """Return the scores of images, ``(n,)``.

    The distance of the farthest patch counts the less, the nearer the neighbours of what is
    nearest to it are: equations 6 and 7.

    Parameters
    ----------
    patches
        ``(n, n_patches, size)``.
    far, nearest
        Of each patch, the distance to the nearest in the bank, and which that is,
        ``(n, n_patches)``.
    bank
        ``(n_bank, size)``.
    """
    every = torch.arange(len(patches), device=far.device)
    worst = far.argmax(1)
    known = bank[nearest[every, worst]]
    around = torch.cdist(known, bank).topk(min(_NEIGHBOURS, len(bank)), largest=False).indices
    distances = torch.cdist(patches[every, worst][:, None], bank[around])[:, 0]
    return (1 - distances.softmax(1)[:, 0]) * far[every, worst]


def anomalib_patchcore(
    network: Backbone, normal: NDArray[np.uint8], seed: int
) -> Callable[[NDArray[np.uint8]], _Scores]:
    """Return what `patchcore` does, by anomalib: its model, fed with our feature maps."""
    try:
        from anomalib.models.image.patchcore.torch_model import PatchcoreModel
    except ImportError as error:
        raise ExperimentError(
            f"The system anomalib-patchcore needs anomalib ({error}). Install it with: "
            "pip install 'anomalib[cpu]'. Without it, patchcore is the same algorithm."
        ) from error
    layers = ["layer2", "layer3"][: len(network.strides)]
    # Its own network is made for nothing, and has no weights to download.
    model = PatchcoreModel(
        layers, backbone="resnet18", pre_trained=False, num_neighbors=_NEIGHBOURS
    )
    model.feature_extractor = _Given(layers)
    device = next(iter(feature_maps(network, normal[:1], _SMALLEST)))[0].device
    model.to(device)
    with torch.inference_mode(), seeded(seed, device):
        model.train()
        for maps in _maps(network, normal):
            model.feature_extractor.maps = maps
            model(torch.zeros(len(maps[0]), 3, *normal.shape[2:], device=device))
        model.subsample_embedding(_KEPT)
        model.eval()

    def score(images: NDArray[np.uint8]) -> _Scores:
        scores, heat = [], []
        with torch.inference_mode():
            for maps in _maps(network, images):
                model.feature_extractor.maps = maps
                done = model(torch.zeros(len(maps[0]), 3, *images.shape[2:], device=device))
                scores.append(done.pred_score)
                heat.append(done.anomaly_map[:, 0])
        return _numbers(scores), _numbers(heat)

    return score


class _Given(nn.Module):
    """Feature maps that are known already."""

    def __init__(self, layers: list[str]) -> None:
        super().__init__()
        self.layers = layers
        self.maps: list[Tensor] = []

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return dict(zip(self.layers, self.maps, strict=True))


def _maps(network: Backbone, images: NDArray[np.uint8]) -> Any:
    return (maps[:_MAPS] for maps in feature_maps(network, images, _SMALLEST))


def _embedded(maps: list[Tensor]) -> Tensor:
    """Return the vectors of patches, ``(n, rows, columns, size)``."""
    pooled = [F.avg_pool2d(one, 3, 1, 1) for one in maps]
    grid = pooled[0].shape[2:]
    rest = (F.interpolate(one, grid, mode="bilinear") for one in pooled[1:])
    return torch.cat([pooled[0], *rest], 1).permute(0, 2, 3, 1)


def _nearest(rows: Tensor, bank: Tensor) -> tuple[Tensor, Tensor]:
    found = [torch.cdist(part, bank).min(1) for part in torch.split(rows, _AT_ONCE)]
    return torch.cat([one.values for one in found]), torch.cat([one.indices for one in found])


def _blurred(maps: Tensor) -> Tensor:
    reach = 2 * int(4.0 * _BLUR + 0.5) + 1
    steps = torch.arange(reach, device=maps.device) - reach // 2
    bell = torch.exp(-0.5 * (steps / _BLUR) ** 2)
    bell = bell / bell.sum()
    for kernel, sides in (
        (bell[None, None, :, None], (0, 0, reach // 2, reach // 2)),
        (bell[None, None, None], (reach // 2, reach // 2, 0, 0)),
    ):
        maps = F.conv2d(F.pad(maps, sides, "reflect"), kernel)
    return maps


def _numbers(parts: list[Tensor]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = torch.cat(parts).double().cpu().numpy()
    return found
