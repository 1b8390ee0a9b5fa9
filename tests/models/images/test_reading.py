"""Many files become one array, whatever they are."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from pictures import disc, encoded, parts, save
from PIL import Image

from aloof.exceptions import ImageError, MissingExtraError
from aloof.imagery import pillow
from aloof.models.images import read_images
from aloof.models.images.reading import take


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Sizes, modes and formats of all kinds, and what is no image."""
    rng = np.random.default_rng(0)
    for i in range(3):
        save(tmp_path / f"common{i}.png", disc(rng, 24))
    save(tmp_path / "wide.jpg", disc(rng, 64)[:40])
    save(tmp_path / "grey.png", disc(rng, 24)[..., 0])
    Image.fromarray(disc(rng, 24)).convert("RGBA").save(tmp_path / "clear.png")
    Image.fromarray(disc(rng, 24)).convert("P").save(tmp_path / "palette.gif")
    (tmp_path / "text.png").write_text("this is text")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "cut.jpg").write_bytes(encoded(disc(rng, 64), "JPEG")[:-200])
    return tmp_path


def test_mixed_files_become_one_size_and_bad_ones_are_named(mixed: Path) -> None:
    found = read_images(mixed)
    assert found.shape == (3, 24, 24)  # what most of them are
    assert len(found) == len(found.pixels) == 7
    assert {each.name for each in found.skipped} == {"cut.jpg", "empty.png", "text.png"}
    grey = found.pixels[found.names.index("grey.png")]
    assert (grey == grey[:1]).all()


def test_pixels_are_those_of_each_file_in_order(mixed: Path) -> None:
    """Closing the gaps that bad files leave moves no image to another's name."""
    found = read_images(mixed, size=24, channels=3)
    for name, pixels in zip(found.names, found.pixels, strict=True):
        (alone,) = read_images(mixed / name, size=24, channels=3).pixels
        assert np.array_equal(alone, pixels), name


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_change_nothing(mixed: Path, workers: int) -> None:
    found = read_images(mixed, size=(10, 12), channels=1, workers=workers)
    assert found.shape == (1, 10, 12)
    assert np.array_equal(found.pixels, read_images(mixed, size=(10, 12), channels=1).pixels)


def test_grey_images_stay_grey_and_large_ones_are_made_smaller(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(2):
        save(tmp_path / f"{i}.png", disc(rng, 300)[:150, :, 0])
    assert read_images(tmp_path).shape == (1, 64, 128)


def test_several_sources_are_told_apart(tmp_path: Path) -> None:
    parts(tmp_path, good=3, bad=2)
    found = read_images([tmp_path / "good", tmp_path / "bad"])
    assert found.origins.tolist() == [0, 0, 0, 1, 1]
    assert found.names == ("000.png", "001.png", "002.png", "000.png", "001.png")


def test_more_than_the_budget_stays_on_disk(mixed: Path) -> None:
    found = read_images(mixed, size=24, memory_budget=1000)
    assert isinstance(found.pixels, np.memmap)
    within = read_images(mixed, size=24)
    assert not isinstance(within.pixels, np.memmap)
    assert np.array_equal(found.pixels, within.pixels)
    rows = np.array([5, 0, 3])
    taken = take(found.pixels, rows)
    assert isinstance(taken, np.memmap)
    assert np.array_equal(taken, within.pixels[rows])


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_the_file_on_disk_has_no_name_and_goes_with_the_array(mixed: Path) -> None:
    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("deleted")

    gc.collect()  # what other tests have left
    before = mapped()
    n_open = len(os.listdir("/proc/self/fd"))
    found = read_images(mixed, size=24, memory_budget=0)
    assert mapped() == before + 1
    del found
    gc.collect()
    assert mapped() == before
    assert len(os.listdir("/proc/self/fd")) == n_open


def test_progress_ends_with_all(mixed: Path) -> None:
    said: list[tuple[int, int]] = []
    read_images(mixed, progress=lambda done, total: said.append((done, total)))
    assert said[-1] == (10, 10)


def test_a_folder_without_one_good_image_says_why(tmp_path: Path) -> None:
    (tmp_path / "text.png").write_text("text")
    (tmp_path / "empty.png").write_bytes(b"")
    with pytest.raises(ImageError, match=r"can be read: empty.png is empty \(and 1 more"):
        read_images(tmp_path)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"size": 0}, "from 1 to 4,096"),
        ({"size": (3, 5000)}, "from 1 to 4,096"),
        ({"channels": 4}, "1 channel"),
    ],
)
def test_options_out_of_bounds_are_said(mixed: Path, options: dict, words: str) -> None:
    with pytest.raises(ImageError, match=words):
        read_images(mixed, **options)


def test_without_pillow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aloof\[images\]'"):
        pillow()
