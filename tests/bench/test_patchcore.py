"""PatchCore, against a slow and simple one."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy import ndimage

from aloof.bench.vision import patchcore as module
from aloof.bench.vision.patchcore import anomalib_patchcore, patchcore, reweighted
from aloof.exceptions import ExperimentError
from aloof.vision import Backbone, BackboneFacts
from aloof.vision.architectures import make_network
from aloof.vision.residual import OWN


@pytest.fixture(scope="module")
def network() -> Backbone:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = make_network(OWN)
    return Backbone(BackboneFacts("random", OWN, "", ""), made.state_dict())


def drawn(n: int, seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (n, 3, 64, 64), np.uint8)


def embedded(network: Backbone, images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the vectors of patches, one neighbourhood at a time."""
    fine, coarse, _ = network(torch.from_numpy(images).float() / 255)
    found = []
    for maps in (fine, coarse):
        padded = np.pad(maps.double().numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)))
        means = np.zeros(maps.shape)
        for y in range(maps.shape[2]):
            for x in range(maps.shape[3]):
                means[:, :, y, x] = padded[:, :, y : y + 3, x : x + 3].mean((2, 3))
        found.append(torch.from_numpy(means))
    grown = F.interpolate(found[1], found[0].shape[2:], mode="bilinear", align_corners=False)
    return torch.cat([found[0], grown], 1).permute(0, 2, 3, 1).numpy()


def test_scores_and_maps_are_those_of_a_slow_one(
    network: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    normal, test = drawn(4, 1), drawn(3, 2)
    chosen: list[NDArray[np.int64]] = []

    def spied(rows: torch.Tensor, n: int, seed: int) -> NDArray[np.int64]:
        chosen.append(coreset(rows, n, seed))
        return chosen[-1]

    coreset = module.coreset
    monkeypatch.setattr(module, "coreset", spied)
    scores, maps = patchcore(network, normal, 0)(test)
    rows = embedded(network, normal).reshape(-1, 32 + 64)
    (kept,) = chosen
    assert len(kept) == len(rows) // 10 == len(set(kept.tolist()))
    bank = rows[kept]
    assert maps.shape == (3, 64, 64)
    for image, score, heat in zip(embedded(network, test), scores, maps, strict=True):
        far = np.linalg.norm(image[:, :, None] - bank, axis=-1)
        grown = np.kron(far.min(2), np.ones((64 // far.shape[0],) * 2))
        blurred = ndimage.gaussian_filter(grown, 4.0, mode="mirror", truncate=4.0)
        np.testing.assert_allclose(heat, blurred, rtol=1e-3)
        y, x = np.unravel_index(far.min(2).argmax(), far.shape[:2])
        known = far[y, x].argmin()
        around = np.argsort(np.linalg.norm(bank - bank[known], axis=1))[:9]
        parts = np.exp(far[y, x, around])
        weight = 1 - np.exp(far[y, x, known]) / parts.sum()
        assert score == pytest.approx(weight * far[y, x, known], rel=1e-3)


def test_a_patch_far_from_a_lonely_one_counts_more_than_one_near_a_crowd() -> None:
    crowd = 0.01 * torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    bank = torch.cat([torch.full((1, 4), 10.0), crowd])
    patches = torch.tensor([[[10.0, 10, 10, 11]], [[0.0, 0, 0, 1]]])
    far, nearest = torch.cdist(patches, bank).min(2)
    lonely, near = reweighted(patches, far, nearest, bank)
    assert float(lonely) == pytest.approx(1, abs=0.01)
    assert float(near) == pytest.approx(8 / 9, abs=0.05)


def test_anomalib_is_named_where_it_is_missing(
    network: Backbone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anomalib", None)
    with pytest.raises(ExperimentError, match=r"needs anomalib.*pip install 'anomalib\[cpu\]'"):
        anomalib_patchcore(network, drawn(2, 1), 0)
