"""Where the files are: the folder ``ALOOF_DATA`` names, or a cache that is filled on demand.

A download is kept only if its SHA-256 is a known one, and the cache never holds half a file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import uuid
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from aloof._version import __version__
from aloof.datasets.registry import Dataset, PublicFile, find_dataset
from aloof.exceptions import DatasetError

__all__ = ["cache_folder", "data_folder", "dataset_path", "place", "read_bytes"]

_logger = logging.getLogger(__name__)

_TIMEOUT = 30.0  # seconds without an answer
_LARGEST = 2**25  # bytes; more than any of the files


def cache_folder() -> Path:
    """Return the folder for downloads: ``XDG_CACHE_HOME``, or what the system uses."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "aloof"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        return Path(local) / "aloof" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "aloof"
    return Path.home() / ".cache" / "aloof"


def data_folder() -> Path:
    """Return the folder that ``ALOOF_DATA`` names, for data that is not downloaded."""
    folder = _local_folder()
    if folder is None:
        raise DatasetError(
            "Set the environment variable ALOOF_DATA to the folder with the data, or name its "
            "files."
        )
    return folder


def dataset_path(name: str) -> Path:
    """Return where the file of a data set is looked for, whether or not it is there.

    Parameters
    ----------
    name
        See `list_datasets`.

    Returns
    -------
    A path in the folder that ``ALOOF_DATA`` names, or else in the cache folder.
    """
    return place(find_dataset(name))


def place(entry: Dataset | PublicFile) -> Path:
    """Return where the file of `entry` is looked for, as `dataset_path` does."""
    return (_local_folder() or cache_folder()) / entry.file


def read_bytes(entry: Dataset | PublicFile) -> bytes:
    """Return the content of the file of `entry`; download it where it is not there yet.

    A file in ``ALOOF_DATA`` is the user's: it is read whatever its SHA-256. One in the
    cache, or a download, must be a known file.
    """
    path = place(entry)
    if (folder := _local_folder()) is not None:
        return _read_local(entry, path, folder)
    if path.is_file():
        content = path.read_bytes()
        if _digest(content) in entry.sha256:
            return content
        _logger.warning("%s is not a known file of %s; downloading it", path, entry.name)
    content = _download(entry)
    _write(path, content)
    return content


def _local_folder() -> Path | None:
    given = os.environ.get("ALOOF_DATA")
    return Path(given).expanduser() if given else None


def _read_local(entry: Dataset | PublicFile, path: Path, folder: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DatasetError(
            f"ALOOF_DATA is {str(folder)!r}, and {entry.file} cannot be read there: "
            f"{error.strerror or error}. Put the file there ({entry.origin})"
            + (", or unset ALOOF_DATA to download it." if entry.urls else ".")
        ) from error


def _download(entry: Dataset | PublicFile) -> bytes:
    if not entry.urls:
        raise DatasetError(
            f"{entry.name} has no public home in the form that aloof reads. To make the file: "
            f"{entry.origin}. Save it as {entry.file} in a folder of yours and set the "
            "environment variable ALOOF_DATA to that folder."
        )
    failures = []
    for url in entry.urls:
        request = Request(url, headers={"User-Agent": f"aloof/{__version__}"})
        try:
            with urlopen(request, timeout=_TIMEOUT) as response:
                content: bytes = response.read(_LARGEST + 1)
        except (OSError, HTTPException) as error:
            failures.append(f"{url}: {_reason(error)}")
            continue
        digest = _digest(content)
        if digest in entry.sha256:
            _logger.info("downloaded %s from %s", entry.name, url)
            return content
        failures.append(
            f"{url}: hash mismatch, the {len(content)} bytes received have SHA-256 {digest} "
            f"and not {' or '.join(entry.sha256)}"
        )
    raise DatasetError(
        f"{entry.name} could not be downloaded, and nothing was kept.\n"
        + "".join(f"  {failure}\n" for failure in failures)
        + f"Try again later, or get the file by hand: {entry.origin}. Save it "
        f"as {entry.file} in a folder of yours and set the environment variable ALOOF_DATA to "
        "that folder."
    )


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        error.close()
        return f"HTTP {error.code} {error.reason}"
    cause = getattr(error, "reason", error)  # what urllib wrapped
    return getattr(cause, "strerror", None) or str(cause) or type(cause).__name__


def _write(path: Path, content: bytes) -> None:
    """Put a whole file in place."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, path)
    except OSError as error:
        raise DatasetError(
            f"The download cannot be written to {path}: {error.strerror or error}. Choose "
            "another cache folder with the environment variable XDG_CACHE_HOME."
        ) from error
    finally:
        if temporary.is_file():
            temporary.unlink()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
