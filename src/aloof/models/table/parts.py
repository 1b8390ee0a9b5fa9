"""Long work in parts: each is safe on disk when it is done, and a killed run goes on there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.io import write_file, writing
from aloof.models.table.formats import first_line

__all__ = ["Parts", "PartsError"]

_RUN, _PART = "run.json", ".arrow"
_ADVICE = "Free some space, or write elsewhere."


class PartsError(TableError):
    """Parts that cannot be written; those that were are kept."""


class Parts:
    """The finished parts of a run, in a folder of their own.

    A part is a table, in a file that takes its name when it is whole. The folder remembers
    what it belongs to, and is refused to anything else.

    Parameters
    ----------
    folder
        Where the parts are. It must not exist, or hold the parts of an earlier run.
    run
        What the parts depend on: a word for people, such as "input", and a fingerprint.
    resume
        Whether to go on with the parts that are there, if there are any.
    force
        Whether to start anew where parts are there.

    Attributes
    ----------
    folder
        As given.
    n_rows
        How many rows the parts hold together.
    """

    def __init__(
        self, folder: Path, run: Mapping[str, str], *, resume: bool, force: bool
    ) -> None:
        self.folder = folder
        self.n_rows = self._n_parts = 0
        if folder.exists():
            self._check_ours()
            if not resume:
                self._check_may_start_anew(force)
                self.discard()
            elif (folder / _RUN).exists():
                self._check_same(run)
                self._count()
        with self._writing():
            folder.mkdir(exist_ok=True)
            self._write(_RUN, json.dumps(dict(run), indent=2))

    def add(self, table: pa.Table) -> None:
        """Write the next part; when this returns it is safe."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        with self._writing():
            self._write(f"{self._n_parts:06}{_PART}", memoryview(sink.getvalue()))
        self._n_parts += 1
        self.n_rows += table.num_rows

    def __iter__(self) -> Iterator[pa.Table]:
        for number in range(self._n_parts):
            yield self._read(number)

    def discard(self) -> None:
        """Remove the folder and the files in it."""
        self._remove(lambda path: path.name != _RUN)
        (self.folder / _RUN).unlink(missing_ok=True)  # last: without it the rest is nobody's
        with suppress(OSError):
            self.folder.rmdir()
        self.n_rows = self._n_parts = 0

    def _remove(self, wanted: Callable[[Path], bool]) -> None:
        for path in list(self.folder.glob("*")):
            if wanted(path) and path.is_file():
                path.unlink()

    def _check_ours(self) -> None:
        """Raise unless this is a work folder, or one that was about to be."""
        if self.folder.is_dir() and (
            (self.folder / _RUN).is_file()
            or all(path.name.startswith(f".{_RUN}.") for path in self.folder.iterdir())
        ):
            return
        raise TableError(
            f"{self.folder} is needed for work in progress, but holds something else. Move "
            "it, or choose another output."
        )

    def _check_may_start_anew(self, force: bool) -> None:
        if force or not any(path.suffix == _PART for path in self.folder.iterdir()):
            return
        raise TableError(
            f"{self.folder} holds the parts of an unfinished run. Continue it with "
            "resume=True (--resume), or start over with force=True (--force)."
        )

    def _check_same(self, run: Mapping[str, str]) -> None:
        try:
            before = json.loads((self.folder / _RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise TableError(
                f"Cannot read {self.folder / _RUN}: {first_line(error)}. Start over with "
                "force=True (--force)."
            ) from error
        other = [word for word in run if before.get(word) != run[word]]
        if other:
            raise TableError(
                f"The unfinished run had another {' and another '.join(other)}, so it cannot "
                "continue. Use the same again, or start over with force=True (--force)."
            )

    def _count(self) -> None:
        """Find the parts that are whole; what is behind the first gap is done again."""
        self._remove(lambda path: path.name != _RUN and path.suffix != _PART)
        with suppress(OSError, pa.ArrowException):
            while True:
                rows = self._read(self._n_parts).num_rows
                self.n_rows += rows
                self._n_parts += 1

    def _read(self, number: int) -> pa.Table:
        data = (self.folder / f"{number:06}{_PART}").read_bytes()
        return pa.ipc.open_file(data).read_all()

    def _write(self, name: str, content: str | memoryview) -> None:
        write_file(self.folder / name, content, PartsError, advice=_ADVICE)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with writing(self.folder, PartsError, advice=_ADVICE):
                yield
        except PartsError:
            with suppress(OSError):  # not empty, and then it stays
                self.folder.rmdir()
            raise
