"""Large images, tile by tile: a few pixels in thousands are not shrunk away."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import aloof
from aloof.exceptions import ImageError
from aloof.models.images import ImageModel
from aloof.models.images.panels import reduced
from aloof.models.images.patches import PatchView
from aloof.vision import load_backbone
from aloof.vision.features import LARGEST_AT_ONCE, patch_features, patch_grid

HEIGHT, WIDTH = 70, LARGEST_AT_ONCE + 46
FAST: dict[str, Any] = {"members": 1, "max_epochs": 2, "seed": 0}
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.CalibrationWarning")


def band(n: int, seed: int, *, bad: bool = False) -> NDArray[np.uint8]:
    """Return long images with noise; bad ones with a spot of a few pixels."""
    found = np.random.default_rng(seed).normal(120, 8, (n, 1, HEIGHT, WIDTH))
    found = found.clip(0, 255).astype(np.uint8)
    if bad:
        found[:, :, 28:40, 900:912] = 10
    return found


def write(folder: Path, images: NDArray[np.uint8]) -> Path:
    folder.mkdir(parents=True)
    for number, image in enumerate(images):
        Image.fromarray(image[0]).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large")
    write(root / "good", band(6, 0))
    write(root / "test" / "good", band(3, 1))
    write(root / "test" / "bad", band(2, 2, bad=True))
    write(root / "masks", np.where(band(2, 2, bad=True) == 10, 255, 0).astype(np.uint8))
    return root


@pytest.fixture(scope="module")
def model(tree: Path, weights: Path) -> ImageModel:
    return aloof.fit(tree / "good", backbone=weights, size=WIDTH, **FAST)


def test_tiles_see_what_one_look_sees(weights: Path) -> None:
    backbone = load_backbone(weights, (8, 16))
    pixels = np.random.default_rng(0).integers(0, 256, (1, 3, 160, WIDTH), np.uint8)
    pixels[..., 40:80, 500:540] = 0
    (whole,) = patch_features(backbone, pixels)
    (tiled,) = patch_features(backbone, pixels, tiled=True)
    grid = patch_grid(backbone, (160, WIDTH), tiled=True)
    assert tiled.shape == whole.shape == (1, *grid, 32 + 96)
    inner = np.s_[0, 4:-4, 4:-4, :32]
    alike = np.corrcoef(whole[inner].ravel(), tiled[inner].ravel())[0, 1]
    assert alike > 0.9
    again = patch_features(backbone, np.repeat(pixels, 2, 0), tiled=True)
    np.testing.assert_allclose(next(again), tiled, rtol=1e-4, atol=1e-4)
    (some,) = patch_features(backbone, pixels, tiled=True, then=lambda x: x[..., :2])
    np.testing.assert_array_equal(some, tiled[..., :2])


def test_a_spot_of_a_few_pixels_is_found_and_shown(model: ImageModel, tree: Path) -> None:
    assert isinstance(model.view, PatchView)
    assert model.view.tiled
    assert model.shape == (1, HEIGHT, WIDTH)
    assert model.view.grid == (9, 134)
    assert "134 x 9 patches of each image, by tiles" in model.understood[0]
    found = model.evaluate(tree / "test", normal="good", anomaly="bad", masks=tree / "masks")
    assert found.auroc > 0.6  # by a network with random weights
    assert found.pixel_auroc is not None
    assert found.pixel_auroc > 0.9
    heat = model.explain(tree / "test" / "bad").heat
    assert heat.shape == (2, HEIGHT, WIDTH)
    _, _, left = np.unravel_index(heat.argmax(), heat.shape)
    assert 880 < left < 930


def test_a_model_keeps_its_tiles(model: ImageModel, tree: Path, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    again = aloof.load(tmp_path / "model")
    assert again.describe()["view"]["tiled"] is True
    np.testing.assert_array_equal(
        again.anomaly_score(tree / "test"), model.anomaly_score(tree / "test")
    )


def test_pages_show_large_images_small(model: ImageModel, tree: Path, tmp_path: Path) -> None:
    model.report(tree / "test", tmp_path / "page.html", top=1)
    assert "what is strange" in (tmp_path / "page.html").read_text()
    model.most_anomalous(tree / "test", 2, out=tmp_path / "small.png")
    with Image.open(tmp_path / "small.png") as picture:
        assert picture.size[0] < 2 * WIDTH
    model.most_anomalous(tree / "test", 1, out=f"{tmp_path}/whole/")
    (path,) = (tmp_path / "whole").iterdir()
    with Image.open(path) as picture:
        assert picture.size[0] > 2 * WIDTH


def test_images_that_are_shrunk_much_say_so(tree: Path, weights: Path) -> None:
    model = aloof.fit(tree / "good", backbone=weights, patches=True, **FAST)
    assert not model.describe()["view"]["tiled"]
    words = rf"images of {WIDTH:,} x 70 pixels as 256 x 17: .*--size {WIDTH}\)"
    assert re.search(words, model.understood[1])


def test_whole_images_have_a_limit(tree: Path, weights: Path) -> None:
    with pytest.raises(ImageError, match="at most 1,024 pixels on the longer side"):
        aloof.fit(tree / "good", backbone=weights, patches=False, size=WIDTH, **FAST)
    with pytest.raises(ImageError, match="from 1 to 32,768 pixels"):
        aloof.fit(tree / "good", backbone=weights, size=40_000, **FAST)


def test_peaks_survive_where_means_do_not() -> None:
    heat = np.zeros((1, 5, 7))
    heat[0, 4, 6] = 8
    assert reduced(heat, 4, keeps_peaks=True).tolist() == [[[0, 0], [0, 8]]]
    assert reduced(np.full((1, 5, 7), 9, np.uint8), 4).tolist() == [[[9, 9], [9, 9]]]
    assert reduced(heat, 1) is heat
