"""How many rows there are about, for those who wait."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from aloof.io.remote import FilePath
from aloof.models.table.delimited import Delimited
from aloof.models.table.files import Source

__all__ = ["about_rows"]

# How much of a text file is looked at.
_BEGINNING = 2**20
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


def about_rows(source: Source) -> int | None:
    """Return the number of rows; None where there is no telling.

    Text files do not say how many rows they have. For these it is what it would be if all
    lines were as long as the first ones, and could be compressed as well.
    """
    if source.n_rows is not None or source.n_bytes is None:
        return source.n_rows
    if not isinstance(source.format, Delimited) or source.paths[0].suffix in (".xz", ".zip"):
        return None
    try:
        lines, size = _beginning(source.paths[0])
    except (OSError, pa.ArrowException):  # those who read on will say what is wrong
        return None
    return max(1, round(source.n_bytes * lines / size)) if lines else None


def _beginning(path: FilePath) -> tuple[int, int]:
    """Return how many lines the beginning of a file has, and how many bytes that took."""
    with path.open("rb") as file:
        codec = _CODECS.get(path.suffix.lower())
        stream: Any = file if codec is None else pa.CompressedInputStream(file, codec)
        lines = stream.read(_BEGINNING).count(b"\n")
        return lines, file.tell()
