"""Pages of TIFF files: each is an image of its own."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from aloof.exceptions import ImageError
from aloof.imagery import decode_whole, look, n_pages, page_of, without_page
from aloof.models.images import ImageLabels, read_images


def written(path: Path, *pages: Image.Image) -> None:
    pages[0].save(path, save_all=True, append_images=list(pages[1:]))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a file of three pages, one of one page, and a GIF that moves."""
    greys = [Image.new("L", (8, 6), grey) for grey in (10, 20, 30)]
    written(tmp_path / "scan.tif", *greys)
    written(tmp_path / "one.tiff", Image.new("L", (8, 6), 40))
    written(tmp_path / "moves.gif", *greys)
    return tmp_path


def test_every_page_is_an_image_and_a_film_is_one(folder: Path) -> None:
    found = read_images(folder)
    assert found.names == ("moves.gif", "one.tiff", "scan.tif#1", "scan.tif#2", "scan.tif#3")
    assert found.pixels[:, 0, 0, 0].tolist() == [10, 40, 10, 20, 30]


def test_names_know_their_file_and_their_page() -> None:
    assert [page_of(name) for name in ("a.tif", "a.TIFF#12", "a#2.png", "a.png#2")] == [
        1, 12, 1, 1,
    ]  # fmt: skip
    assert without_page("a/b.tif#3") == "a/b.tif"
    assert without_page("a/b#3.tif") == "a/b#3.tif"


def test_pages_have_their_own_size_and_colours(tmp_path: Path) -> None:
    written(tmp_path / "mix.tif", Image.new("L", (4, 2)), Image.new("RGB", (6, 3), (0, 200, 0)))
    content = (tmp_path / "mix.tif").read_bytes()
    assert (look(content).size, look(content).grey) == ((2, 4), True)
    assert (look(content, 2).size, look(content, 2).grey) == ((3, 6), False)
    pixels, _ = decode_whole(content, (3, 6), 3, page=2)
    assert pixels[:, 0, 0].tolist() == [0, 200, 0]
    with pytest.raises(ImageError, match="cut off or damaged"):
        look(content, 3)


def test_thumbnails_of_pages_are_left_out(tmp_path: Path) -> None:
    small = Image.new("L", (4, 3))
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[254] = 1  # an image of reduced resolution
    small.encoderinfo = {"tiffinfo": tags}
    written(tmp_path / "a.tif", Image.new("L", (40, 30), 9), small, Image.new("L", (40, 30), 7))
    assert n_pages((tmp_path / "a.tif").read_bytes()) == [1, 3]
    assert read_images(tmp_path).names == ("a.tif#1", "a.tif#3")


def test_a_cut_off_file_of_pages_is_named_once(folder: Path) -> None:
    content = (folder / "scan.tif").read_bytes()
    (folder / "scan.tif").write_bytes(content[:60])
    found = read_images(folder)
    assert found.names == ("moves.gif", "one.tiff")
    assert [each.name for each in found.skipped] == ["scan.tif"]


def test_too_many_pages_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aloof.imagery.decoding._MOST_PAGES", 2)
    with pytest.raises(ImageError, match="has more than 2 pages"):
        n_pages((folder / "scan.tif").read_bytes())


def test_labels_name_a_page_or_all_of_a_file(folder: Path) -> None:
    found = read_images(folder)
    of_file, _ = ImageLabels(labels={"scan.tif": 1}).of(found)
    assert of_file.tolist() == [-1, -1, 1, 1, 1]
    of_page, _ = ImageLabels(labels={"scan.tif": 0, "scan.tif#2": 1}).of(found)
    assert of_page.tolist() == [-1, -1, 0, 1, 0]
    (folder / "labels.csv").write_text("file,label\nscan.tif#3,1\none.tiff,0\n")
    of_table, _ = ImageLabels(labels=folder / "labels.csv").of(found)
    assert of_table.tolist() == [-1, 0, -1, -1, 1]


def test_ten_bits_in_sixteen_say_how_far_they_reach() -> None:
    content = io.BytesIO()
    Image.fromarray(np.full((4, 4), 1023, np.uint16)).save(content, "PNG")
    _, seen = decode_whole(content.getvalue(), None, 1)
    assert seen.reach == pytest.approx(1023 / 65535)
