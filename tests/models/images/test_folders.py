"""Folders and archives: what is taken, what is passed over, what is refused."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pictures import disc, encoded, save

from aloof.exceptions import ImageError
from aloof.models.images import open_images, read_images

PICTURE = encoded(disc(np.random.default_rng(0)))


def archive(path: Path, members: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def reasons(collection) -> dict[str, str]:
    return {each.name: each.reason for each in collection.skipped}


def test_a_folder_is_searched_and_sorted(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.JPG", "a/deep/down/x.jpeg", "top.png"):
        save(tmp_path / name, disc(np.random.default_rng(0)))
    found = open_images(tmp_path)
    assert found.names == ("a/deep/down/x.jpeg", "b/10.JPG", "b/2.png", "top.png")
    assert found.skipped == ()
    read = read_images(found)
    assert read.folders == ("down", "b", "b", "")


def test_what_lies_beside_images_is_passed_over_and_the_rest_is_named(tmp_path: Path) -> None:
    save(tmp_path / "x.png", disc(np.random.default_rng(0)))
    for name in (".DS_Store", "Thumbs.db", "labels.csv", "notes.txt", ".hidden/y.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"?")
    for name in ("photo.heic", "README"):
        (tmp_path / name).write_bytes(b"?")
    found = open_images(tmp_path)
    assert found.names == ("x.png",)
    assert reasons(found) == {
        "README": "does not have the ending of an image file (no ending)",
        "photo.heic": "does not have the ending of an image file (.heic)",
    }


def test_links_to_folders_are_not_followed_and_pipes_not_waited_for(tmp_path: Path) -> None:
    save(tmp_path / "in" / "x.png", disc(np.random.default_rng(0)))
    save(tmp_path / "out" / "y.png", disc(np.random.default_rng(0)))
    (tmp_path / "in" / "loop").symlink_to(tmp_path)
    (tmp_path / "in" / "gone.png").symlink_to(tmp_path / "nowhere")
    (tmp_path / "in" / "y.png").symlink_to(tmp_path / "out" / "y.png")
    os.mkfifo(tmp_path / "in" / "pipe.png")
    found = open_images(tmp_path / "in")
    assert found.names == ("x.png", "y.png")  # a link to a file is the user's choice
    assert reasons(found) == {
        "gone.png": "is neither a file nor a link to one",
        "loop": "is a link to a folder",
        "pipe.png": "is neither a file nor a link to one",
    }


def test_an_archive_reads_as_the_folder_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    content = {f"train/{kind}/{i}.png": encoded(disc(rng)) for kind in "ab" for i in range(3)}
    for name, raw in content.items():
        (tmp_path / "folder" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(raw)
    path = archive(tmp_path / "x.zip", content | {"__MACOSX/train/a/._0.png": b"?"})
    folder, packed = read_images(tmp_path / "folder"), read_images(path)
    assert packed.names == folder.names
    assert packed.folders == folder.folders == ("a",) * 3 + ("b",) * 3
    assert np.array_equal(packed.pixels, folder.pixels)


def test_an_archive_cannot_reach_out(tmp_path: Path) -> None:
    """Names that lead out and links are skipped; nothing is written anywhere."""
    link = zipfile.ZipInfo("link.png")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = archive(
        tmp_path / "evil.zip",
        {
            "good.png": PICTURE,
            "../up.png": PICTURE,
            "a/../../up.png": PICTURE,
            "/abs.png": PICTURE,
            "..\\win.png": PICTURE,
            "C:\\x.png": PICTURE,
        },
    )
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(link, "/etc/passwd")
    before = sorted(tmp_path.rglob("*"))
    found = read_images(path)
    assert found.names == ("good.png",)
    refused = {each.name: each.reason for each in found.skipped}
    assert len(refused) == 6
    assert refused.pop("link.png") == "is a link"
    assert set(refused.values()) == {"has a name that leads outside the archive"}
    assert sorted(tmp_path.rglob("*")) == before


def test_members_that_are_encrypted_or_too_large_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "x.zip", {"a.png": PICTURE, "b.png": PICTURE + bytes(10_000)})
    monkeypatch.setattr("aloof.imagery.folders._MOST_BYTES", 5_000)
    assert "the limit is 5,000" in reasons(open_images(path))["b.png"]
    raw = bytearray(path.read_bytes())
    directory = raw.index(b"PK\1\2")
    raw[directory + 8] |= 1
    path.write_bytes(raw)
    assert reasons(open_images(path))["a.png"] == "is encrypted"


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_damaged_member_has_a_reason(kind: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "x.zip", {"a.png": PICTURE, "b.png": PICTURE}, kind)
    raw = bytearray(path.read_bytes())
    start = raw.index(b"a.png") + 5
    for place in range(start, start + 120):
        raw[place] ^= 255
    path.write_bytes(raw)
    found = read_images(path)
    assert found.names == ("b.png",)
    assert "cannot be read" in found.skipped[0].reason


@pytest.mark.parametrize("content", [b"", b"PK\3\4", b"no archive"])
def test_a_damaged_archive_is_said(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(ImageError, match="cannot be read as a zip archive"):
        open_images(tmp_path / "x.zip")


def test_a_place_that_does_not_exist_is_said(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="There is no folder or file"):
        open_images(tmp_path / "nothing")


def test_an_empty_folder_and_an_empty_archive_are_said(tmp_path: Path) -> None:
    for source in (tmp_path, archive(tmp_path / "x.zip", {})):
        with pytest.raises(ImageError, match="holds no image"):
            read_images(source if source != tmp_path else tmp_path / ".")
