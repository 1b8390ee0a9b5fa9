"""One image file as pixels, whatever its format and mode, or the reason why it has none."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import ImageError, MissingExtraError

__all__ = [
    "MOST_PIXELS",
    "Channels",
    "Look",
    "decode",
    "decode_whole",
    "look",
    "n_pages",
    "pillow",
    "strict_pillow",
]

Channels = Literal[1, 3]

# A file that says it has more pixels is not decoded: this is Pillow's own limit, a picture of
# 9,459 x 9,459. A few kilobytes can claim 30,000 x 30,000 and fill the memory.
MOST_PIXELS = 89_478_485

_MOST_PAGES = 10_000  # of one file
_SUBFILE, _REDUCED_OR_MASK = 254, 0b101  # a TIFF's pages that show another one again
_NEARLY = 0.03  # proportions that differ by less get no margins
_ORIENTATION = 0x0112
_SIDEWAYS = {5, 6, 7, 8}
_GREY = {"1", "L", "LA", "La", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"}
_WITH_ALPHA = {"LA": "LA", "La": "LA", "RGBA": "RGBA", "RGBa": "RGBA", "PA": "RGBA"}


@dataclass(frozen=True)
class Look:
    """What the header of a file says.

    Attributes
    ----------
    size
        Height and width, the right way up.
    grey
        Whether it has no colours.
    reach
        The brightest value of an image of 16 bits, as a share of what they can hold; 1 for
        all others, and where nothing but the header was read.
    """

    size: tuple[int, int]
    grey: bool
    reach: float = 1.0


def pillow() -> ModuleType:
    """Return ``PIL.Image``, or say how to install it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtraError("Pillow", "images", "Reading images") from error
    return Image


@contextmanager
def strict_pillow() -> Iterator[None]:
    """Make Pillow's warnings errors, in all threads: a doubtful image is not taken."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module=r"PIL\.")
        yield


def n_pages(content: bytes | BinaryIO) -> list[int]:
    """Return the numbers of the pages of a file, from 1: one, unless it is a TIFF.

    Pages that are thumbnails or masks of others are left out. Of other formats, such as a GIF
    that moves, the first frame counts.

    Raises
    ------
    ImageError
        Why it cannot be used, in words that follow the name of the file.
    """
    with _opened(content) as image:
        if image.format != "TIFF":
            return [1]
        found = [1]
        while True:
            page = image.tell() + 1
            if page >= _MOST_PAGES:
                raise ImageError(f"has more than {_MOST_PAGES:,} pages")
            try:
                image.seek(page)
            except EOFError:
                return found
            if not image.tag_v2.get(_SUBFILE, 0) & _REDUCED_OR_MASK:
                found.append(page + 1)


def look(content: bytes | BinaryIO, page: int = 1) -> Look:
    """Read the header of an image file, and nothing else.

    Parameters
    ----------
    content
        The file.
    page
        Of a file with several, from 1.

    Raises
    ------
    ImageError
        Why it cannot be used, in words that follow the name of the file.
    """
    with _opened(content, page) as image:
        return _look(image, _orientation(image))


def _look(image: Any, orientation: int) -> Look:
    width, height = image.size
    if orientation in _SIDEWAYS:
        width, height = height, width
    return Look((height, width), image.mode in _GREY)


def decode(
    content: bytes | BinaryIO, size: tuple[int, int] | None, channels: Channels
) -> NDArray[np.uint8]:
    """Return the pixels of an image file, ``(channels, height, width)``; see `decode_whole`."""
    return decode_whole(content, size, channels)[0]


def decode_whole(
    content: bytes | BinaryIO,
    size: tuple[int, int] | None,
    channels: Channels,
    *,
    keeps_proportions: bool = False,
    fill: int | None = None,
    page: int = 1,
) -> tuple[NDArray[np.uint8], Look]:
    """Return the pixels of an image file, ``(channels, height, width)``, and its header.

    It is turned the right way up as its EXIF data say. Transparent pixels lie on white. An
    image of another size is resized with a filter that averages over the pixels it merges.

    Parameters
    ----------
    content
        The file.
    size
        Height and width wanted; None: as they are.
    channels
        1 for grey, 3 for red, green and blue.
    keeps_proportions
        Make the image as large as fits, in the middle, with margins.
    fill
        What margins are filled with; None: the mean colour of the image's border.
    page
        Of a file with several, from 1.

    Raises
    ------
    ImageError
        Why it cannot be used, in words that follow the name of the file.
    """
    with _opened(content, page) as image:
        orientation = _orientation(image)
        seen = _look(image, orientation)
        if size is not None and 4 * max(size) <= min(image.size):
            # A JPEG can be decoded at half, a quarter or an eighth of its size.
            image.draft(image.mode, (2 * max(size), 2 * max(size)))
        upright = _upright(image, orientation)
        if upright.mode == "I" or upright.mode.startswith("I;16"):
            seen = replace(seen, reach=upright.getextrema()[1] / 65535)
        converted = _converted(upright, "L" if channels == 1 else "RGB")
        if size is not None and converted.size != size[::-1]:
            lanczos = pillow().Resampling.LANCZOS
            inner = _inner(converted.size, size[::-1]) if keeps_proportions else size[::-1]
            converted = converted.resize(inner, lanczos, reducing_gap=3.0)
        pixels = np.asarray(converted)
    if size is not None and pixels.shape[:2] != tuple(size):
        pixels = _with_margins(pixels, size, fill)
    return (pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)), seen


def _inner(size: tuple[int, int], room: tuple[int, int]) -> tuple[int, int]:
    """Return the width and height of an image in a room; nearly the same shape fills it."""
    shrink = min(wanted / side for side, wanted in zip(size, room, strict=True))
    inner = [max(1, min(r, round(side * shrink))) for side, r in zip(size, room, strict=True)]
    if all(side >= (1 - _NEARLY) * wanted for side, wanted in zip(inner, room, strict=True)):
        return room
    return inner[0], inner[1]


def _with_margins(
    pixels: NDArray[np.uint8], size: tuple[int, int], fill: int | None
) -> NDArray[np.uint8]:
    """Return an image in the middle of a larger one."""
    height, width = pixels.shape[:2]
    top, left = (size[0] - height) // 2, (size[1] - width) // 2
    whole = np.empty((*size, *pixels.shape[2:]), np.uint8)
    if fill is None:
        border = [pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]
        colour = np.concatenate(border).mean(0)
        whole[:] = np.rint(colour).astype(np.uint8)
    else:
        whole[:] = fill
    whole[top : top + height, left : left + width] = pixels
    return whole


@contextmanager
def _opened(content: bytes | BinaryIO, page: int = 1) -> Iterator[Any]:
    """Open an image; whatever goes wrong with it becomes an `ImageError`."""
    Image = pillow()
    if isinstance(content, bytes):
        if not content:
            raise ImageError("is empty")
        content = io.BytesIO(content)
    try:
        with Image.open(content) as image:
            if page > 1:
                image.seek(page - 1)
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise ImageError(_too_large(f"{width:,} x {height:,} pixels"))
            yield image
    except (ImageError, KeyboardInterrupt):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ImageError(_too_large("too many pixels")) from error
    except Image.UnidentifiedImageError as error:
        raise ImageError("is not an image in a format that can be read") from error
    except MemoryError as error:
        raise ImageError("needs more memory than this machine has") from error
    except Exception as error:  # a damaged file can make the reader fail in any way
        what = str(error).strip() or type(error).__name__
        raise ImageError(f"is cut off or damaged ({what})") from error


def _too_large(what: str) -> str:
    return f"claims to have {what}; the limit is {MOST_PIXELS:,}: cut it into pieces"


def _orientation(image: Any) -> int:
    if image.format == "JPEG" and "exif" not in image.info:
        return 1  # asking takes as long as decoding a small image
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # damaged EXIF data take nothing from the pixels
        return 1


def _upright(image: Any, orientation: int) -> Any:
    transpose = pillow().Transpose
    turns = {
        2: transpose.FLIP_LEFT_RIGHT,
        3: transpose.ROTATE_180,
        4: transpose.FLIP_TOP_BOTTOM,
        5: transpose.TRANSPOSE,
        6: transpose.ROTATE_270,
        7: transpose.TRANSVERSE,
        8: transpose.ROTATE_90,
    }
    return image.transpose(turns[orientation]) if orientation in turns else image


def _converted(image: Any, mode: str) -> Any:
    """Return the image in mode L or RGB: 8 bits, no palette, no transparency."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = _eight_bits(image)
    if "transparency" in image.info and image.mode not in _WITH_ALPHA:
        image = image.convert("RGBA")
    if image.mode in _WITH_ALPHA:
        layer = image.convert(_WITH_ALPHA[image.mode])
        alpha = layer.getchannel("A")
        opaque = layer.convert("L" if layer.mode == "LA" else "RGB")
        white = pillow().new(opaque.mode, opaque.size, "white")
        image = pillow().composite(opaque, white, alpha)
    return image if image.mode == mode else image.convert(mode)


def _eight_bits(image: Any) -> Any:
    """Return an image of 16-bit integers, or of floats in [0, 1], with 8 bits."""
    values = np.asarray(image)
    lowest, highest = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    top = 1.0 if image.mode == "F" else 65535.0
    if not 0.0 <= lowest <= highest <= top:
        raise ImageError(
            f"has pixels from {lowest:g} to {highest:g}; they must be in [0, {top:g}]"
        )
    return pillow().fromarray(np.rint(values * (255.0 / top)).astype(np.uint8))
