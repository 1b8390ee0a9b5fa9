"""The image sets of the paper, as arrays."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import numpy as np
from numpy.typing import NDArray

from aloof.datasets import PublicImages, find_image_dataset
from aloof.datasets.files import place, read_bytes
from aloof.exceptions import DatasetError, ImageError
from aloof.images.decoding import Channels
from aloof.images.folders import open_images
from aloof.images.idx import parse_idx
from aloof.images.reading import read_images

__all__ = ["ImageDataset", "load_image_dataset"]


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Images with the classes that they belong to.

    Attributes
    ----------
    name
        Of the data set.
    train, test
        Images ``(n, channels, height, width)``, bytes.
    train_labels, test_labels
        Their classes, as places in `classes`, int64.
    classes
        The names of the classes.
    sha256
        Of the files, one after the other.
    """

    name: str
    train: NDArray[np.uint8] = field(repr=False)
    train_labels: NDArray[np.int64] = field(repr=False)
    test: NDArray[np.uint8] = field(repr=False)
    test_labels: NDArray[np.int64] = field(repr=False)
    classes: tuple[str, ...]
    sha256: str


def load_image_dataset(name: str) -> ImageDataset:
    """Load a public set of images; download it if need be and if it can be had.

    Parameters
    ----------
    name
        "fashion-mnist", "mnist", "cifar10" or "cats-vs-dogs".

    Raises
    ------
    DatasetError
        A name that does not exist, a file that cannot be had, or one that does not hold
        what it should.
    """
    entry = find_image_dataset(name)
    parts = _of_archive(entry) if len(entry.files) == 1 else _of_idx(entry)
    train, train_labels, test, test_labels, digest = parts
    for pixels, labels in ((train, train_labels), (test, test_labels)):
        if pixels.shape != (len(labels), *entry.shape):
            raise DatasetError(
                f"The files of {name} hold {len(labels)} labels and images of shape "
                f"{pixels.shape}; they should be of shape (n, {str(entry.shape)[1:]}."
            )
        if len(labels) == 0 or labels.max() >= len(entry.classes):
            raise DatasetError(f"The files of {name} do not hold its classes.")
    return ImageDataset(name, train, train_labels, test, test_labels, entry.classes, digest)


_Parts = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], str]


def _of_idx(entry: PublicImages) -> _Parts:
    digest, arrays = hashlib.sha256(), []
    for file in entry.files:
        content = read_bytes(file)
        digest.update(content)
        try:
            arrays.append(parse_idx(content, str(place(file))))
        except ImageError as error:
            raise DatasetError(str(error)) from error
    train, train_labels, test, test_labels = arrays
    return (
        # A copy: what was read cannot be written to, and torch warns of that.
        train[:, None].copy(),
        train_labels.astype(np.int64),
        test[:, None].copy(),
        test_labels.astype(np.int64),
        digest.hexdigest(),
    )


def _of_archive(entry: PublicImages) -> _Parts:
    digest = hashlib.sha256(read_bytes(entry.files[0])).hexdigest()
    channels: Channels = 1 if entry.shape[0] == 1 else 3
    try:
        collection = open_images(entry.path)
        found = read_images(collection, size=entry.shape[1:], channels=channels)
    except ImageError as error:
        raise DatasetError(str(error)) from error
    if found.skipped:
        raise DatasetError(
            f"{entry.path} holds {len(found.skipped)} files that are no images; the first is "
            f"{found.skipped[0]}."
        )
    parts = [PurePosixPath(name).parts[0] for name in found.names]
    known = {name: place for place, name in enumerate(entry.classes)}
    if unknown := sorted({*found.folders} - {*known} | {*parts} - {"train", "test"}):
        raise DatasetError(
            f"{entry.path} holds a folder {unknown[0]!r}; images must be in train/<class>/ and "
            f"test/<class>/, with classes {', '.join(entry.classes)}."
        )
    labels = np.array([known[folder] for folder in found.folders], np.int64)
    train, test = (np.flatnonzero(np.array(parts) == part) for part in ("train", "test"))
    return found.pixels[train], labels[train], found.pixels[test], labels[test], digest
