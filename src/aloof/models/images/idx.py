"""The idx format of MNIST and Fashion-MNIST: a magic number, sizes, and then the values."""

from __future__ import annotations

import gzip
import os
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import ImageError

__all__ = ["parse_idx", "read_idx"]

_GZIP = b"\x1f\x8b"
_DTYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read an idx file, compressed with gzip or not.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Its values, in the shape that the file gives them.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ImageError(
            f"Cannot read {os.fspath(path)}: {error.strerror or error}."
        ) from error
    return parse_idx(content, os.fspath(path))


def parse_idx(content: bytes, name: str) -> NDArray[Any]:
    """Return the values of an idx file; `name` is what errors call it."""
    if content[:2] == _GZIP:
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ImageError(
                f"{name} is cut off or damaged: {error}. Download it again."
            ) from error
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _DTYPES:
        raise ImageError(
            f"{name} is not an idx file: it does not begin with two zeros and a known type."
        )
    start = 4 + 4 * content[3]
    sizes = content[4:start]
    shape = tuple(np.frombuffer(sizes[: len(sizes) // 4 * 4], ">u4").tolist())
    dtype = np.dtype(_DTYPES[content[2]])
    expected = start + prod(shape) * dtype.itemsize
    if len(shape) != content[3] or len(content) != expected:
        raise ImageError(
            f"{name} is cut off or damaged: an array of shape {shape} takes {expected:,} "
            f"bytes, and the file has {len(content):,}. Download it again."
        )
    return np.frombuffer(content, dtype, offset=start).reshape(shape)
