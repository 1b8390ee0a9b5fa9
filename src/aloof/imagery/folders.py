"""Where image files lie: a folder, a zip archive, or one file. Nothing is ever unpacked."""

from __future__ import annotations

import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from aloof.exceptions import ImageError
from aloof.imagery.pages import without_page

__all__ = ["Collection", "Reader", "Skipped", "open_images"]

_IMAGES = frozenset(
    ".avif .bmp .dib .gif .ico .j2k .jfif .jp2 .jpe .jpeg .jpg .jpx .pbm .pcx .pgm .png .pnm "
    ".ppm .tga .tif .tiff .webp".split()
)
# What lies beside images for good reasons; any other name is reported.
_BESIDE = frozenset(
    ".csv .db .gz .html .ini .json .jsonl .log .md .npy .npz .parquet .tsv .txt .xml .yaml "
    ".yml".split()
)
# Everything that reading a damaged or unusual archive has been seen to raise.
_UNREADABLE = (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
_MOST_BYTES = 2**28  # of one file inside an archive
_ENCRYPTED = 0x1


class Skipped(NamedTuple):
    """A file that was left out.

    Attributes
    ----------
    name
        Of the file.
    reason
        Why, in words that follow the name: "is empty".
    """

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} {self.reason}"


@dataclass(frozen=True)
class Collection:
    """Image files, by name.

    Attributes
    ----------
    path
        The folder, the archive or the file.
    names
        Of the images, relative to the folder, with ``/`` between folders; sorted.
    skipped
        What was found and is no image, or may not be read.
    archived
        Whether `path` is an archive.
    """

    path: Path
    names: tuple[str, ...]
    skipped: tuple[Skipped, ...]
    archived: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @contextmanager
    def opened(self) -> Iterator[Reader]:
        """Give access to the files for as long as the context lasts."""
        if not self.archived:
            yield Reader(self.path if self.path.is_dir() else self.path.parent, None)
            return
        with zipfile.ZipFile(self.path) as archive:
            yield Reader(self.path, archive)


@dataclass(frozen=True)
class Reader:
    """Opens files of a collection, from several threads at once."""

    root: Path
    archive: zipfile.ZipFile | None

    @contextmanager
    def __call__(self, name: str) -> Iterator[BinaryIO]:
        """Open one file; what goes wrong with it is an `ImageError`.

        A name may be that of a page; see `aloof.imagery.paged`.
        """
        name = without_page(name)
        try:
            if self.archive is None:
                with open(self.root / name, "rb") as file:
                    yield file
            else:
                with self.archive.open(name) as member:
                    yield member  # type: ignore[misc]
        except _UNREADABLE as error:
            reason = getattr(error, "strerror", None) or error
            raise ImageError(f"cannot be read ({reason})") from error


def open_images(path: str | os.PathLike[str]) -> Collection:
    """List the images of a folder, of a zip archive, or take one file.

    Folders are searched to any depth. Hidden files and files that often lie beside images
    (``.csv``, ``.txt``, ...) are passed over; anything else that is no image by its name is
    reported as skipped. So are members of an archive that are links or encrypted, or whose
    names lead out of it. Links to folders are not followed.

    Parameters
    ----------
    path
        The folder, archive or file.
    """
    found = Path(path)
    if found.is_dir():
        return _of_folder(found)
    if not found.exists():
        raise ImageError(f"There is no folder or file {os.fspath(path)!r}.")
    if not found.is_file():
        raise ImageError(f"{os.fspath(path)!r} is neither a folder nor a file.")
    if found.suffix.lower() == ".zip" or (
        found.suffix.lower() not in _IMAGES and zipfile.is_zipfile(found)
    ):
        return _of_archive(found)
    return Collection(found, (found.name,), ())


def _of_folder(root: Path) -> Collection:
    names, skipped = [], []

    def stop(error: OSError) -> None:
        name = os.path.relpath(error.filename, root).replace(os.sep, "/")
        skipped.append(Skipped(name, f"cannot be read ({error.strerror})"))

    for folder, folders, files in os.walk(root, onerror=stop):
        here = Path(folder)
        for name in folders:
            if (here / name).is_symlink() and not name.startswith("."):
                skipped.append(
                    Skipped((here / name).relative_to(root).as_posix(), "is a link to a folder")
                )
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            relative = (here / name).relative_to(root).as_posix()
            if reason := _refused_by_name(name):
                skipped.append(Skipped(relative, reason))
            elif reason is not None:
                continue
            elif not (here / name).is_file():  # a pipe would be waited for
                skipped.append(Skipped(relative, "is neither a file nor a link to one"))
            else:
                names.append(relative)
    return Collection(root, tuple(sorted(names)), _in_order(skipped))


def _of_archive(path: Path) -> Collection:
    names, skipped = [], []
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise ImageError(f"{path} cannot be read as a zip archive: {error}.") from error
    for name, member in members.items():
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if member.is_dir() or "__MACOSX" in parts:
            continue
        if reason := _refused_in_archive(member, parts):
            skipped.append(Skipped(name, reason))
        elif reason := _refused_by_name(parts[-1]):
            skipped.append(Skipped(name, reason))
        elif reason is None:
            names.append(name)
    return Collection(path, tuple(sorted(names)), _in_order(skipped), archived=True)


def _in_order(skipped: list[Skipped]) -> tuple[Skipped, ...]:
    return tuple(sorted(skipped, key=lambda each: each.name))


def _refused_by_name(name: str) -> str | None:
    """Return why a file is no image by its name; "" is no reason to speak of."""
    suffix = Path(name).suffix.lower()
    if name.startswith(".") or suffix in _BESIDE:
        return ""
    if suffix in _IMAGES:
        return None
    return f"does not have the ending of an image file ({suffix or 'no ending'})"


def _refused_in_archive(member: zipfile.ZipInfo, parts: tuple[str, ...]) -> str | None:
    name = member.filename
    if not parts or ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
        return "has a name that leads outside the archive"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "is a link"
    if member.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if member.file_size > _MOST_BYTES:
        return f"has {member.file_size:,} bytes; the limit is {_MOST_BYTES:,}"
    return None
