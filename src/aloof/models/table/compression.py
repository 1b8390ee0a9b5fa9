"""Compressed files as bytes: gzip, bzip2, Zstandard and xz, and archives of one file."""

from __future__ import annotations

import lzma
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.io.remote import FilePath

__all__ = ["COMPRESSED", "member_of", "open_bytes"]

COMPRESSED = (".gz", ".bz2", ".zst", ".xz", ".zip")
_CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_BUFFER = 2**16


def open_bytes(path: FilePath) -> Any:
    """Open a file to read what was compressed into it, or what it holds."""
    ending = path.suffix.lower()
    file = path if isinstance(path, Path) else path.open("rb")
    if ending == ".xz":
        return lzma.open(file)
    if ending == ".zip":
        return zipfile.ZipFile(file).open(_only(path))
    if not isinstance(path, Path):
        codec = _CODECS.get(ending)
        opened = pa.PythonFile(file, mode="r")
        return pa.CompressedInputStream(opened, codec) if codec else file
    return pa.input_stream(str(path), compression="detect", buffer_size=_BUFFER)


def member_of(path: FilePath) -> str | None:
    """Return the name of the only file in an archive; None: there is not one, or no archive."""
    try:
        file = path if isinstance(path, Path) else path.open("rb")
        with zipfile.ZipFile(file) as archive:
            files = [
                name
                for name in archive.namelist()
                if not name.endswith("/") and not name.startswith("__MACOSX/")
            ]
    except (OSError, zipfile.BadZipFile):
        return None
    return files[0] if len(files) == 1 else None


def _only(path: FilePath) -> str:
    name = member_of(path)
    if name is None:
        raise TableError(f"{path} must hold exactly one file. Unpack it, and name the file.")
    return name
