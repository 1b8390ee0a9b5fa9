"""Many image files as one array of bytes, in memory or, where there are too many, on disk."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from aloof.exceptions import ImageError
from aloof.imagery import (
    Channels,
    Collection,
    Look,
    Reader,
    Skipped,
    decode_whole,
    look,
    open_images,
    page_of,
    paged,
    pillow,
    strict_pillow,
)
from aloof.models import Progress

__all__ = [
    "LARGEST_SIDE",
    "ImageSet",
    "Size",
    "Source",
    "allocated",
    "images_in_memory",
    "read_images",
    "take",
]

# Without a size, no image is made larger than this.
LARGEST_SIDE = 128

_LARGEST_STRETCHED, _LARGEST_WHOLE = 4096, 32_768  # what somebody may ask for
_BUDGET = 2 * 2**30
_BLOCK = 64  # images that a thread takes at once, and between two reports

Size = int | tuple[int, int]
_File = tuple[int, Reader, str]  # the number of its source, what opens it, its name


_Read = Callable[..., tuple[NDArray[np.uint8], Look]]

Source = Collection | str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of one size.

    Attributes
    ----------
    pixels
        ``(n, channels, height, width)``, bytes.
    names
        Of the files.
    folders
        The name of the folder that each one is in; "" where it is in none.
    origins
        Which source each one is from, where several were read.
    skipped
        Files that were left out, and why.
    paths
        The sources; empty where the images were in memory.
    looks
        What the header of each file says; empty where the images were in memory.
    """

    pixels: NDArray[np.uint8] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    folders: tuple[str, ...] = field(repr=False)
    origins: NDArray[np.int64] = field(repr=False)
    skipped: tuple[Skipped, ...]
    paths: tuple[Path, ...] = ()
    looks: tuple[Look, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def name(self) -> str | None:
        """Of the sources, as they were written; None: they were in memory."""
        return ", ".join(map(str, self.paths)) or None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one image: channels, height, width."""
        return self.pixels.shape[1:]


def read_images(
    source: Source | Sequence[Source],
    *,
    size: Size | None = None,
    channels: Channels | None = None,
    largest: int = LARGEST_SIDE,
    keeps_proportions: bool = False,
    fill: int | None = None,
    workers: int | None = None,
    memory_budget: int = _BUDGET,
    progress: Progress | None = None,
) -> ImageSet:
    """Read images and bring them to one size.

    A file that cannot be read is left out, with the reason. Every page of a TIFF file is an
    image, called as in ``scan.tif#2``.

    Parameters
    ----------
    source
        What `open_images` takes or returns, or several of them.
    size
        Height and width, or one number for both: images are resized to just that, whatever
        their proportions. None: the size that most of them have, made smaller where its
        longer side is above `largest`.
    channels
        1 for grey, 3 for red, green and blue. None: 1 if all are grey.
    largest
        See `size`.
    keeps_proportions
        Give images of other proportions margins, in place of stretching them. One number as
        the size is then the longer side of what most of them are.
    fill
        What margins are filled with; None: the mean colour of the image's border.
    workers
        How many threads decode. None: one for each processor, at most 8.
    memory_budget
        Bytes: where the pixels take more, they are kept in a temporary file that is mapped
        into memory and gone with the array.
    progress
        Called now and then with how many images were read, and how many there are.
    """
    _check_options(size, channels, _LARGEST_WHOLE if keeps_proportions else _LARGEST_STRETCHED)
    pillow()
    sources = [source] if isinstance(source, Collection | str | os.PathLike) else source
    collections = [
        each if isinstance(each, Collection) else open_images(each) for each in sources
    ]
    for collection in collections:
        if not len(collection):
            raise ImageError(_nothing(collection, collection.skipped))
    n_threads = min(8, os.cpu_count() or 1) if workers is None else workers
    with ExitStack() as stack:
        stack.enter_context(strict_pillow())
        readers = [stack.enter_context(collection.opened()) for collection in collections]
        pool = stack.enter_context(ThreadPoolExecutor(n_threads))
        files: list[_File] = []
        for number, reader in enumerate(readers):
            for names in pool.map(partial(paged, reader=reader), collections[number].names):
                files += [(number, reader, name) for name in names]
        if keeps_proportions and isinstance(size, int):
            largest, size = size, None
        if size is None or channels is None:
            looks = list(pool.map(_look, files))
            size, channels = _most_common(looks, size, channels, largest)
        shape = (channels, *((size, size) if isinstance(size, int) else size))
        pixels = allocated((len(files), *shape), memory_budget)
        reasons: list[Look | str] = []
        read = partial(decode_whole, keeps_proportions=keeps_proportions, fill=fill)
        store = partial(_store, pixels, files, read)
        for block in pool.map(store, range(0, len(files), _BLOCK)):
            reasons += block
            if progress is not None:
                progress(len(reasons), len(files))
    good = [place for place, found in enumerate(reasons) if isinstance(found, Look)]
    skipped = [
        Skipped(files[place][2], found)
        for place, found in enumerate(reasons)
        if isinstance(found, str)
    ]
    origins = np.array([files[place][0] for place in good], np.int64)
    for number, collection in enumerate(collections):
        if number not in origins:
            raise ImageError(_nothing(collection, (*collection.skipped, *skipped)))
        skipped += collection.skipped
    kept = tuple(files[place][2] for place in good)
    return ImageSet(
        _closed_up(pixels, good),
        kept,
        tuple(PurePosixPath(name).parent.name for name in kept),
        origins,
        tuple(sorted(skipped, key=lambda each: each.name)),
        tuple(collection.path for collection in collections),
        tuple(found for found in reasons if isinstance(found, Look)),
    )


def images_in_memory(*arrays: NDArray[Any]) -> ImageSet:
    """Return arrays of images ``(n, channels, height, width)`` as a set; they are numbered.

    Parameters
    ----------
    *arrays
        Bytes, or numbers in [0, 1]: one source each.
    """
    for array in arrays:
        if array.ndim != 4 or array.shape[1] not in (1, 3):
            raise ImageError(
                "An array of images has the shape (n, channels, height, width) with 1 or 3 "
                f"channels; got {array.shape}."
            )
        if not len(array):
            raise ImageError("The array of images is empty.")
        floats = array.dtype != np.uint8
        if floats and not (np.issubdtype(array.dtype, np.floating) and _in_range(array)):
            raise ImageError("An array of images must hold bytes, or numbers from 0 to 1.")
    if len({(array.shape[1:], array.dtype) for array in arrays}) > 1:
        raise ImageError("Arrays of images must have the same shape and type.")
    pixels = np.concatenate(arrays) if len(arrays) > 1 else arrays[0]
    origins = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
    names = tuple(map(str, range(len(pixels))))
    return ImageSet(pixels, names, ("",) * len(pixels), origins, ())


def _in_range(array: NDArray[Any]) -> bool:
    return bool(array.min() >= 0 and array.max() <= 1)


def take(pixels: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return some of the images, on disk where they are on disk."""
    if not isinstance(pixels, np.memmap):
        return pixels[rows]
    taken = allocated((len(rows), *pixels.shape[1:]), budget=0)
    for start in range(0, len(rows), _BLOCK):
        taken[start : start + _BLOCK] = pixels[rows[start : start + _BLOCK]]
    return taken


def _check_options(size: Size | None, channels: int | None, largest: int) -> None:
    sides = () if size is None else (size,) if isinstance(size, int) else tuple(size)
    if any(isinstance(side, bool) or not 1 <= side <= largest for side in sides) or (
        size is not None and len(sides) not in (1, 2)
    ):
        raise ImageError(
            f"The size must be from 1 to {largest:,} pixels per side; got {size!r}."
        )
    if channels not in (None, 1, 3):
        raise ImageError(f"Images have 1 channel (grey) or 3 (colour); got {channels!r}.")


def _nothing(collection: Collection, skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return f"{collection.path} holds no images."
    rest = f" (and {len(skipped) - 1:,} more files)" if len(skipped) > 1 else ""
    return f"{collection.path} holds no image that can be read: {skipped[0]}{rest}."


def _look(file: _File) -> Look | None:
    _, reader, name = file
    try:
        with reader(name) as opened:
            return look(opened, page_of(name))
    except ImageError:  # `decode` will say what is wrong
        return None


def _most_common(
    looks: Sequence[Look | None],
    size: Size | None,
    channels: Channels | None,
    largest: int,
) -> tuple[Size, Channels]:
    """Return the size that most images have, and whether any has colours."""
    known = [each for each in looks if each is not None]
    if size is None:
        sizes = Counter(each.size for each in known)
        # Of sizes that are equally common the largest, so that the order does not matter.
        height, width = max(sizes, key=lambda each: (sizes[each], each), default=(1, 1))
        shrink = min(1.0, largest / max(height, width))
        size = max(1, round(height * shrink)), max(1, round(width * shrink))
    if channels is None:
        channels = 1 if all(each.grey for each in known) else 3
    return size, channels


def allocated(shape: tuple[int, ...], budget: int, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
    """Return room for numbers: in memory, or on disk where they take more than a budget."""
    if prod(shape) * np.dtype(dtype).itemsize <= budget:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="aloof-") as file:  # has no name; gone with the map
        return np.memmap(file, dtype, "w+", shape=shape)


def _store(
    pixels: NDArray[np.uint8], files: Sequence[_File], read: _Read, start: int
) -> list[Look | str]:
    """Put a block of images in their places; return what each is, or why that is impossible."""
    found: list[Look | str] = []
    _, depth, height, width = pixels.shape
    for place, (_, reader, name) in enumerate(files[start : start + _BLOCK], start):
        try:
            with reader(name) as file:
                content = file.read()
            channels: Channels = 1 if depth == 1 else 3
            wanted = (height, width), channels
            pixels[place], seen = read(content, *wanted, page=page_of(name))
            found.append(seen)
        except ImageError as error:
            found.append(str(error))
    return found


def _closed_up(pixels: NDArray[np.uint8], good: Sequence[int]) -> NDArray[np.uint8]:
    """Move the good images to the front, in place, and leave out the rest."""
    if len(good) < len(pixels):
        for start in range(0, len(good), _BLOCK):
            block = good[start : start + _BLOCK]
            pixels[start : start + len(block)] = pixels[block]
    return pixels[: len(good)]
