"""The one way to write: beside the name, to the disk, and then under the name in one step.

A write that fails or is killed leaves what was there before; a reader sees the old content or
the new one, never a part of either. Who may read it is what the umask says, whatever wrote it.
"""

from __future__ import annotations

import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aloof.exceptions import AloofError

if TYPE_CHECKING:
    from aloof.io.remote import FilePath

__all__ = ["check_file", "replacing", "write_file", "writing"]

_ADVICE = "Free some space, or write elsewhere. Nothing was changed there."


def check_file(
    path: FilePath,
    error: type[AloofError],
    *,
    force: bool,
    name: str | None = None,
    example: str = "",
) -> None:
    """Raise where a file cannot be written under its name, before any work is done.

    Parameters
    ----------
    path
        The file to be.
    error
        What to raise.
    force
        Whether a file that is there may be replaced.
    name
        What the user calls it; None: the path.
    example
        A name that a file could have, for those who named a folder.
    """
    name = str(path) if name is None else name
    if path.is_dir():
        such = f", such as {example}" if example else ""
        raise error(f"{name} is a folder. Name a file{such}.")
    if path.exists() and not force:
        raise error(
            f"{name} already exists. Choose another name, or replace it with force=True "
            "(--force)."
        )
    if isinstance(path, Path) and not path.parent.is_dir():
        raise error(f"Cannot write {name}: there is no folder {path.parent}.")


@contextmanager
def writing(
    path: str | os.PathLike[str], error: type[AloofError], *, advice: str = _ADVICE
) -> Iterator[None]:
    """Turn what the system says against writing into an error that names the path.

    A broken pipe passes: nobody reads any more, and that is no fault.

    Parameters
    ----------
    path
        What is being written, as the user knows it.
    error
        What to raise.
    advice
        What to do about it.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as problem:
        reason = str(problem.strerror or problem).splitlines()[0].rstrip(".")
        raise error(f"{os.fspath(path)} cannot be written: {reason}. {advice}") from problem


@contextmanager
def replacing(
    path: Path,
    error: type[AloofError],
    *,
    advice: str = _ADVICE,
    sync: bool = True,
    put: Callable[[Path, Path], None] | None = None,
) -> Iterator[Path]:
    """Give a name beside `path` for a file or a folder that is to be there when it is whole.

    If the block fails, what it wrote is removed and nothing else is changed. What the block
    itself raises is left as it is.

    Parameters
    ----------
    path
        Where it is to be.
    error, advice
        See `writing`: for what goes wrong once the block is through.
    sync
        Wait until it is on the disk, so that not even a power cut leaves an empty file under
        the name. Not worth the time where a damaged file is noticed and made again.
    put
        What moves it from where it is to `path`; None: `os.replace`.
    """
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield aside
        with writing(path, error, advice=advice):
            _share(aside)
            if sync:
                _sync(aside)
            (put or os.replace)(aside, path)
    finally:
        _remove(aside)


def write_file(
    path: Path,
    content: str | bytes | memoryview | Callable[[Path], object],
    error: type[AloofError],
    *,
    advice: str = _ADVICE,
    sync: bool = True,
    parents: bool = False,
) -> None:
    """Write a file whole, in the place of one that is there.

    Parameters
    ----------
    path
        The file.
    content
        Text (UTF-8), bytes, or what writes a file given its name.
    error, advice, sync
        See `replacing`.
    parents
        Make the folders it is to be in.
    """
    with (
        replacing(path, error, advice=advice, sync=sync) as aside,
        writing(path, error, advice=advice),
    ):
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            aside.write_text(content, encoding="utf-8")
        elif callable(content):
            content(aside)
        else:
            aside.write_bytes(content)


def _share(path: Path) -> None:
    """Give files the permissions of the umask: some writers keep theirs to the user alone."""
    mode = _mode_of_new(path)
    for each in [path, *path.rglob("*")]:
        wanted = mode if each.is_dir() else mode & 0o666
        if stat.S_IMODE(each.stat().st_mode) != wanted:
            with suppress(OSError):  # a file system without permissions
                each.chmod(wanted)


def _mode_of_new(path: Path) -> int:
    """Return the permissions of a new folder here.

    Seen at a new file: the umask itself can only be read by changing it for all threads.
    """
    probe = path.with_name(f"{path.name}.mode")
    try:
        opened = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o777)
        try:
            return stat.S_IMODE(os.fstat(opened).st_mode)
        finally:
            os.close(opened)
    finally:
        _remove(probe)


def _sync(path: Path) -> None:
    for file in path.iterdir() if path.is_dir() else [path]:
        with file.open("rb") as opened:
            os.fsync(opened.fileno())


def _remove(path: Path) -> None:
    """Remove what is left; that it cannot be is not what went wrong."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)
