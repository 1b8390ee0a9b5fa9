"""The public sets, from files made here."""

from __future__ import annotations

import gzip
import hashlib
import logging
import zipfile
from pathlib import Path

import numpy as np
import pytest
from pictures import encoded

from aloof.datasets import PublicImages, find_dataset, list_datasets, load_dataset
from aloof.exceptions import DatasetError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALOOF_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def idx(values: np.ndarray) -> bytes:
    sizes = b"".join(int(n).to_bytes(4, "big") for n in values.shape)
    return gzip.compress(bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes(), mtime=0)


def write_mnist(folder: Path, side: int = 28) -> None:
    rng = np.random.default_rng(0)
    (folder / "mnist").mkdir()
    for part, n in (("train", 20), ("t10k", 10)):
        images = rng.integers(0, 256, (n, side, side), np.uint8)
        (folder / "mnist" / f"{part}-images-idx3-ubyte.gz").write_bytes(idx(images))
        labels = np.arange(n, dtype=np.uint8) % 10
        (folder / "mnist" / f"{part}-labels-idx1-ubyte.gz").write_bytes(idx(labels))


def write_cats(folder: Path, names: list[str], side: int = 64) -> None:
    (folder / "cats-vs-dogs").mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(folder / "cats-vs-dogs" / "cats-vs-dogs-64.zip", "w") as file:
        for name in names:
            file.writestr(name, encoded(rng.integers(0, 256, (side, side, 3), np.uint8)))


CATS = [
    f"{part}/{kind}/{i}.png"
    for part in ("train", "test")
    for kind in ("cats", "dogs")
    for i in "01"
]


def test_idx_files_become_images_with_labels(folder: Path) -> None:
    write_mnist(folder)
    found = load_dataset("mnist")
    assert found.train.shape == (20, 1, 28, 28)
    assert found.test.shape == (10, 1, 28, 28)
    assert found.train.dtype == np.uint8
    assert found.train.flags.writeable
    assert found.test_labels.tolist() == list(range(10))
    assert found.classes == tuple("0123456789")
    files = [folder / file.path for file in find_dataset("mnist").files]
    joined = b"".join(path.read_bytes() for path in files)
    assert found.sha256 == hashlib.sha256(joined).hexdigest()


def test_an_archive_becomes_images_with_labels(folder: Path) -> None:
    write_cats(folder, CATS)
    found = load_dataset("cats-vs-dogs")
    assert found.train.shape == found.test.shape == (4, 3, 64, 64)
    assert found.train_labels.tolist() == [0, 0, 1, 1]
    path = folder / "cats-vs-dogs" / "cats-vs-dogs-64.zip"
    assert find_dataset("cats-vs-dogs").path == path


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([*CATS, "train/birds/0.png"], "folder 'birds'"),
        ([*CATS, "valid/cats/0.png"], "folder 'valid'"),
        ([*CATS, "train/cats/x.heic"], "1 file that cannot be used"),
        (CATS[:4], "do not hold its classes"),
    ],
)
def test_another_archive_is_refused(folder: Path, names: list[str], words: str) -> None:
    write_cats(folder, names)
    with pytest.raises(DatasetError, match=words):
        load_dataset("cats-vs-dogs")


def test_images_of_another_size_are_refused(folder: Path) -> None:
    write_mnist(folder, side=27)
    with pytest.raises(DatasetError, match="the shape should be"):
        load_dataset("mnist")


def test_a_damaged_file_is_refused(folder: Path) -> None:
    write_mnist(folder)
    path = folder / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DatasetError, match="cut off or damaged"):
        load_dataset("mnist")


def test_how_to_make_what_has_no_public_home_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DatasetError, match=r"Put the file there \(take the images of"):
        load_dataset("cifar10")
    monkeypatch.delenv("ALOOF_DATA")
    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(DatasetError, match=r"cannot be downloaded(.|\n)*train/<class>/\*\.png"),
    ):
        load_dataset("cifar10")


def test_a_wrong_name_gets_the_nearest() -> None:
    with pytest.raises(DatasetError, match="did you mean 'fashion-mnist'"):
        load_dataset("fashion_mnist")


def test_an_entry_says_where_its_files_are() -> None:
    entries = list_datasets(PublicImages)
    assert [entry.name for entry in entries] == [
        "cats-vs-dogs",
        "cifar10",
        "fashion-mnist",
        "mnist",
    ]
    hashes = [digest for e in entries for file in e.files for digest in file.sha256]
    assert len(hashes) == len(set(hashes))
    for entry in entries:
        assert entry.making or all(file.urls for file in entry.files)
        assert not entry.present
