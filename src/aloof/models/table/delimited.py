"""CSV and TSV: text with one row in a line."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from aloof.exceptions import TableError
from aloof.models.table.formats import Format, check_encoding, first_line

__all__ = ["Delimited"]

# What is held in memory of a file. A row must fit into it.
_BLOCK = 4 * 2**20
_OTHER_DELIMITERS = (";", "\t", "|", ",")


@dataclass(frozen=True)
class Delimited(Format):
    """Text with one row in a line. All columns are text, and empty text is missing.

    Attributes
    ----------
    delimiter
        One character.
    encoding
        As Python names it.
    """

    delimiter: str = ","
    encoding: str = "utf8"
    # Standard input can be read once: its header was, and the rows are still to come.
    _waiting: list[tuple[_Stream, tuple[str, ...]]] = field(
        default_factory=list, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if len(self.delimiter) != 1:
            raise TableError(f"The delimiter must be one character; got {self.delimiter!r}.")
        check_encoding(self.encoding)

    def names(self, path: Path | None) -> tuple[str, ...]:
        """Return what the first line says; a column without a name is called by its place."""
        stream, names = self._open(path)
        if path is None:
            self._waiting[:] = [(stream, names)]
        else:
            stream.close()
        return names

    def n_rows(self, path: Path) -> int | None:
        """Return None: lines would have to be counted."""
        return None

    def batches(
        self, path: Path | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; a line with too few or too many values is an error."""
        waiting = path is None and self._waiting
        stream, names = self._waiting.pop() if waiting else self._open(path)
        places = [str(names.index(column)) for column in columns]
        done = 0
        with stream:
            try:
                with self._reader(stream, len(names), places) as reader:
                    for batch in reader:
                        done += batch.num_rows
                        yield batch.rename_columns(list(columns))
            except (pa.ArrowException, OSError, EOFError, UnicodeError) as error:
                raise self._failure(path, error, done) from error

    def _reader(self, stream: _Stream, n_columns: int, places: list[str]) -> Any:
        # Columns go by their place, so that no name is in the way.
        return pa_csv.open_csv(
            pa.PythonFile(stream, mode="r"),
            read_options=pa_csv.ReadOptions(
                block_size=_BLOCK,
                encoding=self.encoding,
                column_names=[str(place) for place in range(n_columns)],
                skip_rows_after_names=1,
                use_threads=False,  # only then errors know the row
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types={str(place): pa.string() for place in range(n_columns)},
                include_columns=places,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    def _open(self, path: Path | None) -> tuple[_Stream, tuple[str, ...]]:
        try:
            stream = _Stream(_raw(path))
            head = stream.first_record()
        except (pa.ArrowException, OSError, EOFError) as error:
            raise self._failure(path, error, 0) from error
        what = _named(path)
        if not head.removeprefix(codecs.BOM_UTF8).strip():
            raise TableError(f"{what} is empty. It takes a line of column names and rows.")
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise TableError(f"{what} is written in UTF-16. Save it as UTF-8.")
        if b"\0" in head or head.startswith(b"PAR1"):
            raise TableError(f"{what} is not a text file, so it cannot be read as CSV.")
        try:
            text = head.decode("utf-8-sig" if self._is_utf8 else self.encoding)
        except UnicodeDecodeError as error:
            raise self._not_utf8(what) from error
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter))
        self._check_delimiter(what, names)
        return stream, tuple(
            name if name.strip() else f"column_{place}"
            for place, name in enumerate(names, start=1)
        )

    @property
    def _is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name == "utf-8"

    def _check_delimiter(self, what: str, names: list[str]) -> None:
        if len(names) != 1:
            return
        for other in _OTHER_DELIMITERS:
            if other != self.delimiter and other in names[0]:
                raise TableError(
                    f"{what} has one column only, named {names[0][:60]!r}: its values seem to "
                    f"be separated by {other!r} and not by {self.delimiter!r}. Say so with "
                    f"delimiter={other!r} (--delimiter {other!r})."
                )

    def _not_utf8(self, what: str) -> TableError:
        return TableError(
            f"{what} is not written in {self.encoding}. Older files are often 'latin-1' or "
            "'cp1252': say so with encoding='latin-1' (--encoding latin-1), or save as UTF-8."
        )

    def _failure(self, path: Path | None, error: Exception, done: int) -> TableError:
        what, said = _named(path), first_line(error)
        if "UTF8" in said or isinstance(error, UnicodeError):
            return self._not_utf8(what)
        if "straddling" in said:
            return TableError(
                f"{what} has a row of more than {_BLOCK // 2**20} MiB after row {done:,}. Is "
                "there a quotation mark that is not closed?"
            )
        return TableError(f"{what} cannot be read on after row {done:,}: {said}.")


class _Stream(io.RawIOBase):
    """A file whose beginning was looked at already."""

    def __init__(self, file: Any) -> None:
        self._file, self._head = file, b""

    def first_record(self) -> bytes:
        """Return the first line, or more of them where the values of one hold line ends."""
        while len(self._head) < _BLOCK:
            more = self._file.read(2**16)
            self._head += more
            record = _first_record(self._head)
            if record is not None or not more:
                break
        return self._head if record is None else record

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        if self._head:
            size = len(self._head) if size is None or size < 0 else size
            part, self._head = self._head[:size], self._head[size:]
            return part
        data: bytes = self._file.read(size)
        return data

    def close(self) -> None:
        if not self.closed and self._file is not getattr(sys.stdin, "buffer", None):
            self._file.close()
        super().close()


def _first_record(head: bytes) -> bytes | None:
    """Return the first non-empty line with all its quotation marks closed."""
    end = -1
    while (end := head.find(b"\n", end + 1)) >= 0:
        line = head[: end + 1]
        if line.strip() and line.count(b'"') % 2 == 0:
            return line
    return None


def _raw(path: Path | None) -> Any:
    if path is None:
        return sys.stdin.buffer
    return pa.input_stream(str(path), compression="detect", buffer_size=2**16)


def _named(path: Path | None) -> str:
    return "Standard input" if path is None else str(path)
