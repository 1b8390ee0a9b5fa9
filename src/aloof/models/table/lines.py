"""Plain text files: one document in a line."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.io.remote import FilePath
from aloof.models.table.formats import Record, TextFormat
from aloof.written.decoding import Utf8
from aloof.written.finding import find_table

__all__ = ["TEXT", "Lines"]

TEXT = "text"  # the name of the one column


@dataclass(frozen=True)
class Lines(TextFormat):
    """A table of one column, ``text``, with a row for each line; an empty one is missing.

    Attributes
    ----------
    sure
        Whether lines that look like those of a table are none.
    """

    sure: bool = False

    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return the one name; a file that is not there or empty is told, and a table."""
        with self._open(path) as stream:
            if not stream.beginning:
                raise TableError(f"{path} is empty. Name a file with rows.")
            place = find_table(stream.beginning, is_whole=stream.is_whole, header=True)
            is_table = place is not None and place.width > 2 and place.delimiter != ","
            if place is not None and is_table and not self.sure:
                raise TableError(
                    f"{path} looks like a table with values separated by {place.delimiter!r}. "
                    "To read it as a table, set format='csv' (--format csv); if each line is "
                    "one text, set format='txt' (--format txt)."
                )
        return (TEXT,)

    def n_rows(self, path: FilePath) -> int | None:
        """Return None: lines would have to be counted."""
        return None

    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the lines."""
        done = 0
        with self._open(path) as stream:
            stream.skip(0)
            file = io.TextIOWrapper(io.BufferedReader(stream), "utf8", newline=None)
            try:
                while lines := list(islice(file, rows)):
                    texts = [line.rstrip("\n") or None for line in lines]
                    yield pa.record_batch({TEXT: pa.array(texts, pa.string())})
                    done += len(lines)
            except UnicodeDecodeError as error:
                raise self._not_encoded(path, f"somewhere after line {done + 1:,}") from error

    def records(self, path: FilePath, columns: tuple[str, ...]) -> Iterator[Record]:
        """Yield each line and its number."""
        number = 0
        for batch in self.batches(path, columns, 65_536):
            for text in batch[TEXT].to_pylist():
                number += 1
                yield number, [text] * len(columns)

    def _open(self, path: FilePath | None) -> Utf8:
        assert path is not None  # standard input is read as CSV
        try:
            return Utf8(path.open("rb"), self.encoding, self.fallback)
        except UnicodeDecodeError as error:
            raise self._not_encoded(path, "at its beginning") from error
        except OSError as error:
            raise TableError(f"Cannot read {path}: {error.strerror or error}.") from error

    def _not_encoded(self, path: FilePath | None, where: str) -> TableError:
        return TableError(
            f"{path} is not {self.encoding or 'utf8'} text {where}. Name its encoding, such "
            "as encoding='latin-1' (--encoding latin-1)."
        )
