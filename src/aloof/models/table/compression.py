"""Compressed files as bytes: gzip, bzip2, Zstandard and xz, and archives of one file."""

from __future__ import annotations

import lzma
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from aloof.exceptions import TableError

__all__ = ["COMPRESSED", "member_of", "open_bytes"]

COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".zip")
_BUFFER = 2**16


def open_bytes(path: Path) -> Any:
    """Open a file to read what was compressed into it, or what it holds."""
    ending = path.suffix.lower()
    if ending == ".xz":
        return lzma.open(path)
    if ending == ".zip":
        return zipfile.ZipFile(path).open(_only(path))
    return pa.input_stream(str(path), compression="detect", buffer_size=_BUFFER)


def member_of(path: Path) -> str | None:
    """Return the name of the only file in an archive; None: there is not one, or no archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            files = [
                name
                for name in archive.namelist()
                if not name.endswith("/") and not name.startswith("__MACOSX/")
            ]
    except (OSError, zipfile.BadZipFile):
        return None
    return files[0] if len(files) == 1 else None


def _only(path: Path) -> str:
    name = member_of(path)
    if name is None:
        raise TableError(f"{path} must hold exactly one file. Unpack it, and name the file.")
    return name
