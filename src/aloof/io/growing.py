"""Lines of a file that others write to, also where it is renamed or cut; lines of a pipe.

A line is given when its end is there. Where a file is renamed and a new one takes its name, the
rest of the old one comes first. A `Position` says what was read, and a later process goes on
there.
"""

from __future__ import annotations

import hashlib
import os
import select
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

__all__ = ["GrowingFile", "Line", "PipedLines", "Position"]

_CHUNK = 2**20
# What has no end by then is given as it is.
_LONGEST = 8 * 2**20
# So much of the beginning tells a file from one that was written over it.
_HEAD = 1024


@dataclass(frozen=True)
class Position:
    """A place in a file.

    Attributes
    ----------
    device, inode
        Which file, whatever its name is by now.
    offset
        How many bytes are before it.
    head
        A digest of the first bytes, and how many these are: inodes are used again.
    n_head
        See `head`.
    """

    device: int
    inode: int
    offset: int
    head: str = ""
    n_head: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes
    ----------
    content
        Its bytes, without the end of the line.
    after
        Where the next one begins; None: in a pipe, where nobody can go back.
    is_first
        Whether it is the first of its file.
    """

    content: bytes
    after: Position | None
    is_first: bool = False


class GrowingFile:
    """The lines of a file that grows, and of those that take its place.

    Parameters
    ----------
    path
        The name. There may be no such file yet.
    after
        Where to begin; None: with the first line.

    Attributes
    ----------
    has_ended
        Never: it may always grow.
    """

    has_ended = False

    def __init__(self, path: Path, after: Position | None = None) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._position = Position(0, 0, 0)
        self._partial = b""
        self._is_first = True
        self._next: list[Path] = []
        self._said: list[str] = []
        if after is not None:
            self._return_to(after)

    def news(self) -> list[str]:
        """Return what happened to the file since this was asked last, in words."""
        said, self._said = self._said, []
        return said

    def lines(self) -> list[Line]:
        """Return the lines that are there now, at most about a megabyte of them."""
        if self._descriptor is None and not self._open_next():
            return []
        if self._was_cut():
            self._said.append(f"{self.path} was cut; reading it from its beginning")
            self._restart()
        found = self._read()
        if found or self._partial_grew:
            return found
        if not self._is_over():
            return []
        found = self._read()  # what came between the last look and the new file
        if found:
            return found
        rest = self._take_rest()
        self.close()
        self._open_next()
        return rest

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _read(self) -> list[Line]:
        assert self._descriptor is not None
        at = self._position.offset + len(self._partial)
        raw = os.pread(self._descriptor, _CHUNK, at)
        self._partial_grew = bool(raw)
        if not raw:
            return []
        *whole, self._partial = (self._partial + raw).split(b"\n")
        found = [self._line(content, len(content) + 1) for content in whole]
        return found if len(self._partial) < _LONGEST else [*found, *self._take_rest()]

    def _line(self, content: bytes, n_bytes: int) -> Line:
        position = replace(self._position, offset=self._position.offset + n_bytes)
        if position.n_head < _HEAD:
            position = self._with_head(position)
        self._position = position
        first, self._is_first = self._is_first, False
        return Line(content.removesuffix(b"\r"), position, first)

    def _take_rest(self) -> list[Line]:
        """Return what has no end: the last line of a file nobody writes to, or a huge one."""
        rest, self._partial = self._partial, b""
        return [self._line(rest, len(rest))] if rest else []

    def _was_cut(self) -> bool:
        assert self._descriptor is not None
        size = os.fstat(self._descriptor).st_size
        if size < self._position.offset + len(self._partial):
            return True
        return not _has_head(self._descriptor, self._position)

    def _is_over(self) -> bool:
        """Say whether another file has the name, or is to be read next."""
        if self._next:
            return True
        try:
            info = os.stat(self.path)
        except OSError:  # between two names
            return False
        return (info.st_dev, info.st_ino) != (self._position.device, self._position.inode)

    def _open_next(self) -> bool:
        path = self._next.pop(0) if self._next else self.path
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        if self._position.inode:
            self._said.append(f"{self.path} was renamed; reading the new one")
        self._restart()
        return True

    def _restart(self) -> None:
        assert self._descriptor is not None
        info = os.fstat(self._descriptor)
        self._position = Position(info.st_dev, info.st_ino, 0)
        self._partial, self._is_first = b"", True

    def _return_to(self, after: Position) -> None:
        """Open the file that a position is in, under whatever name, and those after it."""
        around = sorted(_siblings(self.path), key=lambda pair: (pair[1].st_mtime_ns, pair[0]))
        for place, (path, info) in enumerate(around):
            if (info.st_dev, info.st_ino) != (after.device, after.inode):
                continue
            descriptor = os.open(path, os.O_RDONLY)
            if info.st_size < after.offset or not _has_head(descriptor, after):
                os.close(descriptor)
                continue
            self._descriptor, self._position = descriptor, after
            self._is_first = after.offset == 0
            later = [other for other, _ in around[place + 1 :] if other != self.path]
            if path != self.path:
                self._next = [*later, self.path] if self.path.exists() else later
            return
        self._said.append(
            f"the file that was read last is gone, and lines of it may be; reading {self.path} "
            "from its beginning"
        )

    def _with_head(self, position: Position) -> Position:
        assert self._descriptor is not None
        n = min(_HEAD, position.offset)
        return replace(position, head=_digest(self._descriptor, n), n_head=n)

    _partial_grew = False


class PipedLines:
    """The lines of a pipe, such as standard input, as they come.

    Parameters
    ----------
    descriptor
        Where to read.
    patience
        How many seconds to wait for something.

    Attributes
    ----------
    has_ended
        Whether no line is to come.
    """

    def __init__(self, descriptor: int, patience: float = 0.25) -> None:
        self._descriptor, self._patience = descriptor, patience
        self._partial, self._is_first = b"", True
        self.has_ended = False

    def news(self) -> list[str]:
        """Return nothing: a pipe is what it is."""
        return []

    def lines(self) -> list[Line]:
        """Return the lines that are there now, or come soon."""
        if self.has_ended or not select.select([self._descriptor], [], [], self._patience)[0]:
            return []
        raw = os.read(self._descriptor, _CHUNK)
        self.has_ended = not raw
        *whole, self._partial = (self._partial + raw).split(b"\n")
        if self._partial and (self.has_ended or len(self._partial) >= _LONGEST):
            whole, self._partial = [*whole, self._partial], b""
        return [*self._made(whole)]

    def close(self) -> None:
        """Leave the pipe to whoever opened it."""

    def _made(self, contents: list[bytes]) -> Iterator[Line]:
        for content in contents:
            first, self._is_first = self._is_first, False
            yield Line(content.removesuffix(b"\r"), None, first)


def _siblings(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files beside a file whose names begin like its own, as renamed ones do."""
    for other in path.parent.glob(f"{path.name}*") if path.parent.is_dir() else ():
        try:
            if other.is_file():
                yield other, other.stat()
        except OSError:  # renamed meanwhile
            continue


def _has_head(descriptor: int, position: Position) -> bool:
    return _digest(descriptor, position.n_head) == position.head if position.n_head else True


def _digest(descriptor: int, n: int) -> str:
    return hashlib.sha256(os.pread(descriptor, n, 0)).hexdigest()
