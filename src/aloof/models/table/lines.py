"""Plain text files: one document in a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.models.table.formats import Format, check_encoding

__all__ = ["TEXT", "Lines"]

TEXT = "text"  # the name of the one column


@dataclass(frozen=True)
class Lines(Format):
    """A table of one column, ``text``, with a row for each line; an empty one is missing.

    Attributes
    ----------
    encoding
        As Python names it.
    """

    encoding: str = "utf8"

    def __post_init__(self) -> None:
        check_encoding(self.encoding)

    def names(self, path: Path | None) -> tuple[str, ...]:
        """Return the one name; a file that is not there or empty is told."""
        with self._open(path) as file:
            if not file.buffer.peek(1):  # type: ignore[attr-defined]
                raise TableError(f"{path} is empty. Name a file that has rows.")
        return (TEXT,)

    def n_rows(self, path: Path) -> int | None:
        """Return None: lines would have to be counted."""
        return None

    def batches(
        self, path: Path | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the lines."""
        done = 0
        with self._open(path) as file:
            try:
                while lines := list(islice(file, rows)):
                    texts = [line.rstrip("\n") or None for line in lines]
                    yield pa.record_batch({TEXT: pa.array(texts, pa.string())})
                    done += len(lines)
            except UnicodeDecodeError as error:
                raise TableError(
                    f"{path} is not {self.encoding} text somewhere after line {done + 1:,}: "
                    f"{error.reason}. Say what it is with --encoding, such as latin-1."
                ) from error

    def _open(self, path: Path | None) -> IO[str]:
        assert path is not None  # standard input is read as CSV
        encoding = "utf-8-sig" if self.encoding in ("utf8", "utf-8") else self.encoding
        try:
            return path.open(encoding=encoding, newline=None)
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error
