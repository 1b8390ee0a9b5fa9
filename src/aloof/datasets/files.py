"""Where the files are: the folder ``ALOOF_DATA`` names, or a cache that is filled on demand.

A download is kept only if its SHA-256 is a known one, and the cache never holds half a file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

from aloof._version import __version__
from aloof.exceptions import DatasetError, MissingExtraError
from aloof.io import write_file

__all__ = [
    "DataFile",
    "LocalFile",
    "cache_folder",
    "data_folder",
    "no_downloads",
    "obtain",
    "read_local",
]

_logger = logging.getLogger(__name__)

_ADVICE = "Choose another cache folder with the environment variable XDG_CACHE_HOME."
_TIMEOUT = 30.0  # seconds without an answer
_MAY_DOWNLOAD = ContextVar("_MAY_DOWNLOAD", default=True)


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file of a data set.

    Attributes
    ----------
    path
        Inside the cache folder or ``ALOOF_DATA``.
    sha256
        Of every file known to hold it, the public one first.
    urls
        Direct addresses, tried in this order; none: the file has no public home.
    size
        Bytes of the public file, if known.
    """

    path: str
    sha256: tuple[str, ...]
    urls: tuple[str, ...] = ()
    size: int | None = None

    @property
    def local(self) -> Path:
        """Where the file is looked for, whether or not it is there."""
        return (_own_folder() or cache_folder()) / self.path


@dataclass(frozen=True)
class LocalFile:
    """A file that is here.

    Attributes
    ----------
    path
        Where.
    content
        What is in it.
    sha256
        Of the content.
    known
        Whether that is one of the SHA-256 of the `DataFile`.
    """

    path: Path
    content: bytes = field(repr=False)
    sha256: str
    known: bool


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
    folder = _own_folder()
    if folder is None:
        raise DatasetError(
            "Set the environment variable ALOOF_DATA to the folder with the data, or name its "
            "files."
        )
    return folder


@contextmanager
def no_downloads() -> Iterator[None]:
    """Make do with the files that are here: others are an error meanwhile."""
    token = _MAY_DOWNLOAD.set(False)
    try:
        yield
    finally:
        _MAY_DOWNLOAD.reset(token)


def obtain(file: DataFile, name: str, origin: str) -> LocalFile:
    """Return a file of the data set `name`; download it where it is not there yet.

    A file in ``ALOOF_DATA`` is the user's: it is read whatever its SHA-256. One in the cache,
    or a download, must be a known file. `origin` says how to come by it, for messages.
    """
    path = file.local
    if (folder := _own_folder()) is not None:
        try:
            return read_local(file, path)
        except OSError as error:
            raise DatasetError(
                f"ALOOF_DATA is {str(folder)!r}, but {file.path} cannot be read there: "
                f"{error.strerror or error}. Put the file there ({origin})"
                + (", or unset ALOOF_DATA to download it." if file.urls else ".")
            ) from error
    if path.is_file():
        if (found := read_local(file, path)).known:
            return found
        _logger.warning("%s is not a known file of %s; downloading it", path, name)
    by_hand = (
        f"{origin}. Save it as {file.path} in a folder of your choice, and set the "
        "environment variable ALOOF_DATA to that folder."
    )
    if not file.urls:
        raise DatasetError(
            f"{name} cannot be downloaded in the form that aloof reads. To make the file: "
            f"{by_hand}"
        )
    if not _MAY_DOWNLOAD.get():
        raise DatasetError(f"{name} is not on this machine. To get it: aloof data get {name}")
    if failures := _download(file, path):
        raise DatasetError(
            f"Could not download {name}; nothing was kept.\n"
            + "".join(f"  {failure.rstrip('.')}.\n" for failure in failures)
            + f"Try again later, or get the file by hand: {by_hand}"
        )
    _logger.info("downloaded %s to %s", name, path)
    return read_local(file, path)


def _own_folder() -> Path | None:
    given = os.environ.get("ALOOF_DATA")
    return Path(given).expanduser() if given else None


def read_local(file: DataFile, path: Path) -> LocalFile:
    """Return a file that is at `path`, whatever it holds."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    return LocalFile(path, content, digest, digest in file.sha256)


def _download(file: DataFile, path: Path) -> list[str]:
    """Put a known file in place; if no address has one, return why and leave nothing."""
    try:
        import pooch
        import requests
    except ImportError:
        raise MissingExtraError("pooch", "data", f"Downloading {file.path}") from None
    get = pooch.HTTPDownloader(timeout=_TIMEOUT, headers={"User-Agent": f"aloof/{__version__}"})
    failures = []
    for url in file.urls:
        received = BytesIO()
        try:
            get(url, received, None)
        except requests.RequestException as error:
            failures.append(f"{url}: {_reason(error)}")
            continue
        content = received.getvalue()
        digest = hashlib.sha256(content).hexdigest()
        if digest in file.sha256:
            write_file(path, content, DatasetError, advice=_ADVICE, parents=True)
            return []
        failures.append(
            f"{url}: hash mismatch, the {len(content)} bytes received have SHA-256 {digest} "
            f"and not {' or '.join(file.sha256)}"
        )
    return failures


def _reason(error: BaseException) -> str:
    """Return what went wrong in the first place, in a few words."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code} {response.reason}"
    while error.__context__ is not None:
        error = error.__context__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
