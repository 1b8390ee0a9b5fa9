"""Images that a set holds more than once: within its parts, and in training and test alike.

A test image that was trained on flatters a detector, so whoever reports a figure should know
how many there are. Two images are compared by their edges, the differences of neighbouring
pixels of their grey versions: those of a picture that was scaled, compressed, brightened or
coloured anew hardly change. As they are or mirrored, all pairs are compared as small copies,
block by block, and the pairs that are alike once more in full size.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.datasets.image_sets import ImageDataset
from aloof.models import Progress

__all__ = ["Duplicates", "Pair", "find_duplicates"]

_SIDE = 16  # of a small copy, at most
_BLOCK, _CHUNK = 512, 4096  # rows and columns of one product; pairs in full size at a time
_FLAT = np.float32(1e-6)  # edges of an image without any are nothing, and like nothing


@dataclass(frozen=True, order=True)
class Pair:
    """Two images that are alike.

    Attributes
    ----------
    similarity
        The correlation of their edges; 1 for the same pixels.
    first, second
        The part each is from, ``train`` or ``test``, and its index there.
    mirrored
        Whether one is alike to the mirror image of the other.
    same
        Whether all pixels are equal.
    """

    similarity: float
    first: tuple[str, int]
    second: tuple[str, int]
    mirrored: bool = False
    same: bool = False

    @property
    def parts(self) -> str:
        """Where the two are: ``train``, ``test``, or ``train-test`` for one in each."""
        return "-".join(dict.fromkeys((self.first[0], self.second[0])))


@dataclass(frozen=True, eq=False)
class Duplicates:
    """The pairs of a set that are alike.

    Attributes
    ----------
    dataset
        The set.
    similarity
        Pairs are at least so similar.
    pairs
        The most similar first.
    """

    dataset: ImageDataset = field(repr=False)
    similarity: float
    pairs: tuple[Pair, ...]

    def among(self, parts: str) -> tuple[Pair, ...]:
        """Return the pairs ``train``, ``test`` or ``train-test``."""
        return tuple(pair for pair in self.pairs if pair.parts == parts)

    def images(self, parts: str, *, same: bool = False) -> int:
        """Return how many images are in such pairs; of ``train-test``, those of the test.

        Parameters
        ----------
        parts
            As in `among`.
        same
            Count images with equal pixels only.
        """
        chosen = [pair for pair in self.among(parts) if pair.same or not same]
        if parts == "train-test":
            return len({pair.second for pair in chosen})
        return len({image for pair in chosen for image in (pair.first, pair.second)})

    @property
    def largest_change(self) -> float:
        """The most an AUROC can change without the test images that training images repeat.

        It is a mean over all pairs of a normal and an anomalous test image. With one class as
        normal, at most the share of pairs that are left out can make a difference; this is the
        largest share of all classes.
        """
        labels = self.dataset.test_labels
        repeated = np.zeros(len(labels), bool)
        repeated[[pair.second[1] for pair in self.among("train-test")]] = True
        shares = [0.0]
        for label in np.unique(labels):
            normal = labels == label
            if 0 < normal.sum() < len(labels):
                kept = (1 - repeated[normal].mean()) * (1 - repeated[~normal].mean())
                shares.append(1 - float(kept))
        return max(shares)

    def describe(self, top: int | None = None) -> dict[str, Any]:
        """Return what there is to say, as JSON can hold it.

        Parameters
        ----------
        top
            How many pairs of each kind are listed, the most similar; None: all.
        """
        kinds = ("train-test", "test", "train")
        return {
            "dataset": self.dataset.name,
            "sha256": self.dataset.sha256,
            "n_train": len(self.dataset.train),
            "n_test": len(self.dataset.test),
            "similarity": self.similarity,
            "same_pixels": {kind: self.images(kind, same=True) for kind in kinds},
            "alike": {kind: self.images(kind) for kind in kinds},
            "largest_auroc_change": self.largest_change,
            "pairs": [
                {
                    "similarity": round(pair.similarity, 4),
                    "first": list(pair.first),
                    "second": list(pair.second),
                    "mirrored": pair.mirrored,
                    "same": pair.same,
                }
                for kind in kinds
                for pair in self.among(kind)[:top]
            ],
        }


def find_duplicates(
    dataset: ImageDataset, *, similarity: float = 0.9, progress: Progress | None = None
) -> Duplicates:
    """Compare every image with every other, and with its mirror image.

    Parameters
    ----------
    dataset
        Images to train and to test with.
    similarity
        From which correlation of edges on two images are alike, above 0. Copies that were
        compressed again have 0.9 and more, shifted or cropped ones less; drawings, digits and
        clothes can be so alike without being copies: look at the pairs.
    progress
        Called with how many images were compared, and with how many there are.
    """
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity must be above 0 and at most 1; got {similarity!r}.")
    n_train = len(dataset.train)

    def place(index: int) -> tuple[str, int]:
        return ("train", index) if index < n_train else ("test", index - n_train)

    pixels = (dataset.train, dataset.test)
    found = {(a, b): Pair(1.0, place(a), place(b), same=True) for a, b in _same_pixels(*pixels)}
    for first, second, mirrored in _candidates(*pixels, similarity, progress):
        alike = _similarity(*pixels, first, second, mirrored)
        for index in np.flatnonzero(alike >= similarity):
            a, b = int(first[index]), int(second[index])
            pair = Pair(float(alike[index]), place(a), place(b), bool(mirrored[index]))
            found.setdefault((a, b), pair)
    ordered = sorted(found.values(), key=lambda p: (-p.similarity, p.first, p.second))
    return Duplicates(dataset, similarity, tuple(ordered))


def _same_pixels(*parts: NDArray[np.uint8]) -> Iterator[tuple[int, int]]:
    """Yield pairs of equal images; equal files are among them."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for index, image in enumerate(image for part in parts for image in part):
        places[hashlib.sha256(image.tobytes()).digest()].append(index)
    for group in places.values():
        yield from combinations(group, 2)


def _candidates(
    train: NDArray[np.uint8],
    test: NDArray[np.uint8],
    similarity: float,
    progress: Progress | None,
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]]:
    """Yield pairs of indices whose small copies are alike, and which of them are mirrored.

    An image is the sum of an even and an odd part, of which the mirror image changes the sign
    of the odd one, and edges of even and odd images are orthogonal. So two products give the
    similarity to an image and to its mirror image.
    """
    even, odd = (
        np.concatenate(parts) for parts in zip(_halves(train), _halves(test), strict=True)
    )
    n = len(even)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        for low in range(start, n, _CHUNK):
            columns = slice(low, low + _CHUNK)
            signed = odd[rows] @ odd[columns].T
            alike = np.abs(signed)
            alike += even[rows] @ even[columns].T
            row, column = np.nonzero(alike >= similarity)
            # Within the block on the diagonal each pair comes twice, and each image once.
            kept = row + start < column + low
            row, column = row[kept], column[kept]
            for part in range(0, len(row), _CHUNK):
                some = slice(part, part + _CHUNK)
                mirrored = signed[row[some], column[some]] < 0
                yield row[some] + start, column[some] + low, mirrored
        if progress is not None:
            progress(min(n, start + _BLOCK), n)


def _halves(pixels: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the edges of the even and of the odd parts of small copies, together of norm 1."""
    even: list[NDArray[np.float32]] = []
    odd: list[NDArray[np.float32]] = []
    half = np.float32(0.5)
    for start in range(0, len(pixels), _CHUNK):
        small = _shrink(_grey(pixels[start : start + _CHUNK]))
        flipped = small[..., ::-1]
        edges = [
            np.concatenate([_kept(difference) for difference in _edges(part)], 1)
            for part in (half * (small + flipped), half * (small - flipped))
        ]
        norm = np.sqrt(sum(np.square(part).sum(1) for part in edges))[:, None]
        for parts, part in zip((even, odd), edges, strict=True):
            parts.append(part / np.maximum(norm, _FLAT))
    return np.concatenate(even), np.concatenate(odd)


def _similarity(
    train: NDArray[np.uint8],
    test: NDArray[np.uint8],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    mirrored: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """Return the correlations of the edges of pairs, in full size."""

    def edges(indices: NDArray[np.intp], flip: NDArray[np.bool_] | None) -> Any:
        images = np.empty((len(indices), *train.shape[1:]), np.uint8)
        in_train = indices < len(train)
        images[in_train] = train[indices[in_train]]
        images[~in_train] = test[indices[~in_train] - len(train)]
        if flip is not None:
            images[flip] = images[flip][..., ::-1]
        flat = [part.reshape(len(images), -1) for part in _edges(_grey(images))]
        joined = np.concatenate(flat, 1)
        norm = np.linalg.norm(joined, axis=1, keepdims=True)
        return joined / np.maximum(norm, _FLAT)

    products: NDArray[np.float32] = (edges(first, mirrored) * edges(second, None)).sum(1)
    return products


def _grey(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    grey: NDArray[np.float32] = pixels.mean(1, dtype=np.float32)
    return grey


def _shrink(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return means over blocks of equal size, also where these cut through pixels."""
    rows, columns = (_means(size) for size in images.shape[1:])
    small: NDArray[np.float32] = np.matmul(rows @ images, columns.T)
    return small


def _means(size: int) -> NDArray[np.float32]:
    """Return which share each pixel of a line has in each block, ``(blocks, size)``."""
    borders = np.linspace(0, size, min(size, _SIDE) + 1)
    pixels = np.arange(size)
    ends = np.minimum(borders[1:, None], pixels + 1)
    covered = np.clip(ends - np.maximum(borders[:-1, None], pixels), 0, None)
    return np.asarray(covered / borders[1], np.float32)


def _edges(images: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the differences of neighbours, downwards and to the right."""
    return np.diff(images, axis=1), np.diff(images, axis=2)


def _kept(edges: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the left half of edges whose right half repeats it, as rows of the same norm."""
    width = edges.shape[2]
    weights = np.full((width + 1) // 2, np.sqrt(2), np.float32)
    if width % 2:
        weights[-1] = 1
    return (edges[..., : len(weights)] * weights).reshape(len(edges), -1)
