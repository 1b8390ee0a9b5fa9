"""The formats of files of tables: their endings, and how one file is read in batches.

Not by pyarrow.dataset: it holds a row group in memory (twice as much for one of 150 MiB), reads
no standard input, and cannot say which part of a file is damaged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from aloof.exceptions import TableError
from aloof.io.remote import FilePath
from aloof.models.table.compression import COMPRESSED, member_of
from aloof.models.table.frames import without_views
from aloof.written.decoding import FALLBACK, check_encoding

__all__ = [
    "ENDINGS",
    "Arrow",
    "Format",
    "FormatName",
    "Parquet",
    "Record",
    "TextFormat",
    "ending_of",
    "first_line",
    "holds_table",
]

FormatName = Literal["csv", "tsv", "parquet", "arrow", "txt", "excel", "json", "jsonl"]

# Bytes of a column that are read at a time: a row group need not fit in memory.
_BUFFER = 2**20
ENDINGS: dict[str, FormatName] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".txt": "txt",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
}
_TEXT = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


def ending_of(path: FilePath) -> str | None:
    """Return the known ending of a name, without that of a compression, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        if suffixes.pop() == ".zip" and path.is_file():
            member = member_of(path)
            suffixes = [] if member is None else [Path(member).suffix.lower()]
        return suffixes[-1] if suffixes and suffixes[-1] in _TEXT else None
    return suffixes[-1] if suffixes and suffixes[-1] in ENDINGS else None


def holds_table(archive: FilePath) -> bool:
    """Say whether a zip archive holds a table, and nothing else."""
    return ending_of(archive) is not None


# A line, and the text that a row has in some columns.
Record = tuple[int, list[str | None]]


class Format(ABC):
    """How a file is read. Files are given as paths, standard input as None.

    Attributes
    ----------
    line
        What people who open such a file count.
    """

    line: ClassVar[str] = "line"

    @abstractmethod
    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return the names of the columns."""

    @abstractmethod
    def n_rows(self, path: FilePath) -> int | None:
        """Return the number of rows if the file says it."""

    @abstractmethod
    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; `rows` is how many at a time are welcome."""

    def understood(self, path: FilePath | None) -> str:
        """Say how a file is read that was opened, where it is not the usual way."""
        return ""

    def records(self, path: FilePath, columns: tuple[str, ...]) -> Iterator[Record]:
        """Yield the line that each row begins in, and its text in some columns.

        Lines are counted as in an editor, from 1 on. A format that has none yields nothing.
        """
        return iter(())


@dataclass(frozen=True)
class TextFormat(Format):
    """A file of text, in an encoding.

    Attributes
    ----------
    encoding
        As Python names it; None: found out.
    fallback
        The encoding of what is not UTF-8.
    """

    encoding: str | None = None
    fallback: str = FALLBACK

    def __post_init__(self) -> None:
        for encoding in (self.encoding, self.fallback):
            if encoding is not None:
                check_encoding(encoding)


@dataclass(frozen=True)
class Parquet(Format):
    """Parquet, row group by row group.

    Attributes
    ----------
    groups
        Which row groups: the first, and the one after the last. None: all.
    """

    groups: tuple[int, int] | None = None

    def __repr__(self) -> str:
        return f"Parquet({'' if self.groups is None else self.groups})"

    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return the names in the footer."""
        with self._open(path) as file:
            return tuple(file.schema_arrow.names)

    def n_rows(self, path: FilePath) -> int | None:
        """Return the number in the footer."""
        with self._open(path) as file:
            groups = map(file.metadata.row_group, self._groups(file))
            return sum(int(group.num_rows) for group in groups)

    def schema(self, path: FilePath) -> pa.Schema:
        """Return names and types of the columns."""
        with self._open(path) as file:
            return file.schema_arrow

    def _groups(self, file: Any) -> range:
        return range(*(self.groups or (0, file.metadata.num_row_groups)))

    def pieces(self, path: FilePath, rows: int) -> list[tuple[int, int]]:
        """Return which row groups together have about so many rows, or are too large alone."""
        found, first, held = [], 0, 0
        with self._open(path) as file:
            n = file.metadata.num_row_groups
            for group in range(n):
                held += file.metadata.row_group(group).num_rows
                if held >= rows or group == n - 1:
                    found.append((first, group + 1))
                    first, held = group + 1, 0
        return found

    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; a damaged row group is named."""
        with self._open(path) as file:
            n_groups = file.metadata.num_row_groups
            for group in self._groups(file):
                read = file.iter_batches(rows, row_groups=[group], columns=list(columns))
                try:
                    yield from read
                except (pa.ArrowException, OSError) as error:
                    raise TableError(
                        f"{path} is damaged: row group {group + 1} of {n_groups} cannot be "
                        f"read ({first_line(error)}). Get a fresh copy; the rows before it "
                        "are intact."
                    ) from error

    @staticmethod
    def _open(path: FilePath | None) -> Any:
        try:
            _check_not_empty(path)
            source = path if path is None or isinstance(path, Path) else path.open("rb")
            return pq.ParquetFile(source, buffer_size=_BUFFER, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{path} cannot be read as Parquet: {first_line(error)}."
            ) from error


class Arrow(Format):
    """Arrow IPC, both the file and the stream format."""

    def __repr__(self) -> str:
        return "Arrow()"

    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return the names in the schema."""
        with self._open(path) as reader:
            return tuple(reader.schema.names)

    def n_rows(self, path: FilePath) -> int | None:
        """Return None: batches would have to be read."""
        return None

    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; a damaged batch is named."""
        with self._open(path) as reader:
            number = 0
            try:
                for batch in _arrow_batches(reader):
                    table = pa.Table.from_batches([batch.select(list(columns))])
                    yield from without_views(table).to_batches()
                    number += 1
            except (pa.ArrowException, OSError) as error:
                raise TableError(
                    f"{path} is damaged: batch {number + 1} cannot be read "
                    f"({first_line(error)}). Get a fresh copy."
                ) from error

    @staticmethod
    def _open(path: FilePath | None) -> Any:
        try:
            _check_not_empty(path)
            try:
                return pa.ipc.open_file(_mapped(path))
            except pa.ArrowInvalid:
                return pa.ipc.open_stream(_mapped(path))
        except (pa.ArrowException, OSError) as error:
            raise TableError(
                f"{path} cannot be read as Arrow IPC: {first_line(error)}."
            ) from error


def _arrow_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)


def _mapped(path: FilePath | None) -> Any:
    if path is None or isinstance(path, Path):
        return pa.memory_map(str(path))
    return pa.PythonFile(path.open("rb"), mode="r")


def _check_not_empty(path: FilePath | None) -> None:
    if path is not None and path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty. Name a file with rows.")


def first_line(error: Exception) -> str:
    """Return what an error of Arrow or of the system says, in one line."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")
