"""Files elsewhere: s3://, gs://, https:// and whatever else fsspec or Arrow can reach.

A `RemotePath` has what is used of a `pathlib.Path` where files are read. What is written goes
to a file here first, and there when it is whole.
"""

from __future__ import annotations

import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from aloof.exceptions import AloofError, MissingExtraError
from aloof.io.atomic import writing

__all__ = ["FilePath", "RemotePath", "check_here", "is_remote", "path_of", "sending"]

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://")
_ONE_SLASH = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/+")
# What Arrow reaches by itself, where the package that fsspec asks for is not installed.
_ARROW = {"s3": "S3FileSystem", "gs": "GcsFileSystem", "gcs": "GcsFileSystem"}


def is_remote(name: str | os.PathLike[str]) -> bool:
    """Say whether a name is that of a file elsewhere.

    Examples
    --------
    >>> is_remote("s3://bucket/key.parquet"), is_remote("file:///tmp/x"), is_remote("x.csv")
    (True, False, False)
    """
    text = os.fspath(name)
    return bool(_SCHEME.match(text)) and not text.lower().startswith("file://")


def check_here(name: str | os.PathLike[str], error: type[AloofError], advice: str) -> Path:
    """Return the path of a file or folder that has to be here, or raise.

    Parameters
    ----------
    name
        Its name; a `Path` that was made of a URL has one of its slashes left.
    error
        What to raise where it is elsewhere.
    advice
        What to do instead.

    Examples
    --------
    >>> check_here(Path("s3://bucket/model"), AloofError, "Copy it here.")
    Traceback (most recent call last):
    aloof.exceptions.AloofError: s3://bucket/model is elsewhere. Copy it here.
    """
    text = os.fspath(name)
    if (found := _ONE_SLASH.match(text)) and found[1].lower() != "file":
        raise error(f"{found[1]}://{text[found.end() :]} is elsewhere. {advice}")
    return Path(name)


def path_of(name: str | os.PathLike[str]) -> FilePath:
    """Return the path that a name stands for, here or elsewhere; ``file://`` is here.

    Examples
    --------
    >>> str(path_of("file:///tmp/a%20b.csv")), path_of("memory://x/y.csv").name
    ('/tmp/a b.csv', 'y.csv')
    """
    text = os.fspath(name)
    if is_remote(text):
        return RemotePath(text)
    if text.lower().startswith("file://"):
        return Path(unquote(urlsplit(text).path))
    return Path(text).expanduser()


@dataclass(frozen=True)
class RemotePath:
    """A file or a folder elsewhere.

    Attributes
    ----------
    url
        With its scheme.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __fspath__(self) -> str:
        return self.url

    def __lt__(self, other: RemotePath) -> bool:
        return self.url < other.url

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.url.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """The last part."""
        return self._pure.name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return self._pure.suffix

    @property
    def suffixes(self) -> list[str]:
        """The endings of the name."""
        return self._pure.suffixes

    @property
    def parent(self) -> RemotePath:
        """What it is in."""
        return RemotePath(self.url.rstrip("/").rpartition("/")[0])

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(urlsplit(self.url).path or urlsplit(self.url).netloc)

    def with_name(self, name: str) -> RemotePath:
        """Return what is beside it under another name."""
        return self.parent / name

    def resolve(self) -> RemotePath:
        """Return itself."""
        return self

    def exists(self) -> bool:
        """Say whether there is something."""
        return self._ask("exists")

    def is_file(self) -> bool:
        """Say whether it is a file."""
        return self._ask("isfile")

    def is_dir(self) -> bool:
        """Say whether it is a folder."""
        return self._ask("isdir")

    def stat(self) -> Any:
        """Return its size, and a number that changes when it does, as far as is known."""
        with self._reaching():
            info = self._system.info(self._place)
        time = next((info[k] for k in _TIMES if info.get(k) is not None), 0)
        if isinstance(time, datetime):
            time = time.timestamp()
        if isinstance(time, str):
            time = int.from_bytes(time.encode()[-7:], "big")
        size = int(info.get("size") or 0)
        return SimpleNamespace(st_size=size, st_mtime_ns=int(float(time) * 1e9))

    def open(self, mode: str = "rb") -> Any:
        """Open the file, to be read from any place."""
        with self._reaching():
            return self._system.open(self._place, mode)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Return all text."""
        with self.open() as file:
            return str(file.read().decode(encoding))

    def files(self) -> list[RemotePath]:
        """Return the files in the folder and those below it, in order."""
        with self._reaching(anew=True):
            found = self._system.find(self._place)
        return sorted(RemotePath(self._url(place)) for place in found)

    def glob(self) -> list[RemotePath]:
        """Return the files whose names fit, where this is a pattern."""
        with self._reaching(anew=True):
            found = [p for p in self._system.glob(self._place) if self._system.isfile(p)]
        return sorted(RemotePath(self._url(place)) for place in found)

    def put(self, source: Path) -> None:
        """Copy a file from here to there: readers see all of it, or nothing of it."""
        with self._reaching():
            if self._scheme in _WHOLE:  # and folders are just names; a bucket is nobody's typo
                self._system.put_file(str(source), self._place)
                return
            self._system.makedirs(self._parent_of(self._place), exist_ok=True)
            aside = f"{self._parent_of(self._place)}/.{self.name}.{uuid.uuid4().hex[:8]}"
            self._system.put_file(str(source), aside)
            self._system.mv(aside, self._place)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the file."""
        if not missing_ok or self.exists():
            with self._reaching():
                self._system.rm_file(self._place)

    @property
    def _scheme(self) -> str:
        return self.url.partition("://")[0].lower()

    @property
    def _system(self) -> Any:
        return _reached(self.url)[0]

    @property
    def _place(self) -> str:
        return str(_reached(self.url)[1])

    @staticmethod
    def _parent_of(place: str) -> str:
        return place.rpartition("/")[0]

    def _url(self, place: str) -> str:
        if place.startswith(f"{self._scheme}://"):
            return place
        return f"{self._scheme}://{place.lstrip('/')}"

    def _ask(self, question: str) -> bool:
        with self._reaching(anew=True):
            return bool(getattr(self._system, question)(self._place))

    @contextmanager
    def _reaching(self, *, anew: bool = False) -> Iterator[None]:
        """Turn what goes wrong on the way into what files here raise: an `OSError`.

        `anew`: what was there at an earlier look does not count.
        """
        try:
            if anew:
                self._system.invalidate_cache()
            yield
        except (OSError, AloofError):
            raise
        except Exception as error:  # each system has its own
            raise OSError(f"{type(error).__name__}: {error}") from error


_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created", "ETag", "etag")
# Where a file appears whole by itself, and renaming would be copying.
_WHOLE = ("s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "memory")

FilePath = Path | RemotePath


@contextmanager
def sending(path: RemotePath, error: type[AloofError]) -> Iterator[Path]:
    """Give a file here to write to; when the block ends well it is sent there.

    Parameters
    ----------
    path
        Where to.
    error
        What to raise where it cannot be sent.
    """
    with tempfile.TemporaryDirectory(prefix="aloof-") as folder:
        here = Path(folder) / path.name
        yield here
        with writing(path, error, advice="Nothing was changed there."):
            path.put(here)


@lru_cache(maxsize=1024)
def _reached(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and where in it the URL leads."""
    scheme = url.partition("://")[0].lower()
    try:
        import fsspec.core
    except ImportError as error:
        raise MissingExtraError("fsspec", "remote", f"Reaching {scheme}://") from error
    try:
        system, place = fsspec.core.url_to_fs(url)
    except ValueError as error:  # an unknown scheme
        raise OSError(f"{error}") from error
    except ImportError as error:
        found = _by_arrow(scheme, url)
        if found is None:
            raise OSError(f"{scheme}:// needs a package: {error}") from error
        return found
    return system, place


def _by_arrow(scheme: str, url: str) -> tuple[Any, str] | None:
    import pyarrow.fs as arrow
    from fsspec.implementations.arrow import ArrowFSWrapper

    name = _ARROW.get(scheme)
    if name is None or not hasattr(arrow, name):
        return None
    bucket, _, key = url.partition("://")[2].partition("/")
    options = key[key.index("?") :] if "?" in key and "=" in key else ""
    key = quote(key.removesuffix(options))  # names may have spaces, URIs may not
    system, place = arrow.FileSystem.from_uri(
        f"{scheme.replace('gcs', 'gs')}://{bucket}/{key}{options}"
    )
    return ArrowFSWrapper(system), place
