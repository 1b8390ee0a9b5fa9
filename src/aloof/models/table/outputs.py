"""Tables out: a file appears whole under its name, or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from aloof.exceptions import TableError
from aloof.io import check_file, replacing, writing
from aloof.io.remote import FilePath, path_of, sending
from aloof.models.table.excel import ExcelWriter
from aloof.models.table.formats import ENDINGS, ending_of
from aloof.models.table.objects import JsonWriter

__all__ = ["Output", "can_be_written", "check_output", "open_output", "write_table"]

# Endings that are read and not written.
_NOT_WRITTEN = (".bz2", ".zst", ".xz", ".zip", ".xlsm", ".json")


class Output:
    """Where batches of rows go; `open_output` makes one."""

    def __init__(self, name: str, writer: Any, schema: pa.Schema) -> None:
        self._name, self._writer, self._schema = name, writer, schema

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Write rows whose columns are those of the schema."""
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        table = table.select(self._schema.names).cast(self._schema)
        with writing(self._name, TableError):
            self._writer.write_table(table)


def can_be_written(path: FilePath) -> bool:
    """Say whether the ending of a name is one that tables are written with."""
    ending = ending_of(path)
    return ending is not None and not {ending, path.suffix.lower()}.intersection(_NOT_WRITTEN)


def check_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Raise what `open_output` would, before any work is done.

    Parameters
    ----------
    path
        The file to be: .csv, .tsv, .jsonl (with .gz or without), .xlsx, .parquet, .arrow;
        "-": standard output.
    force
        Whether to replace an existing file.
    """
    name = os.fspath(path)
    if name == "-":
        return
    target = path_of(name)
    if isinstance(target, Path) and _is_device(target):
        return
    if name.endswith(("/", os.sep)) or target.is_dir():
        raise TableError(
            f"{name} is a folder. Name a file in it: {name.rstrip('/' + os.sep)}/scores.csv."
        )
    if not can_be_written(target):
        known = ", ".join(ending for ending in ENDINGS if ending not in _NOT_WRITTEN)
        raise TableError(
            f"Cannot write {target.name!r}: unknown ending. Known endings: {known}, and .gz "
            "after .csv, .tsv or .jsonl."
        )
    check_file(target, TableError, force=force, name=name)


@contextmanager
def open_output(
    path: str | os.PathLike[str], schema: pa.Schema, *, force: bool = False
) -> Iterator[Output]:
    """Open a file to be written in batches.

    It is written under a temporary name beside its own, and takes its name when the block
    ends. If the block fails nothing is left.

    Parameters
    ----------
    path, force
        See `check_output`.
    schema
        Names and types of the columns.
    """
    check_output(path, force=force)
    name = os.fspath(path)
    if name == "-":
        with _csv("Standard output", sys.stdout.buffer, schema, ",") as output:
            yield output
        sys.stdout.buffer.flush()
        return
    target = path_of(name)
    with _aside(target) as place:
        stack = ExitStack()
        try:
            with writing(name, TableError):
                output = stack.enter_context(_file(place, target, schema))
            yield output
            with writing(name, TableError):
                stack.close()
        except BaseException:
            with suppress(Exception):  # what failed is known already
                stack.close()
            raise


def write_table(path: str | os.PathLike[str], table: pa.Table, *, force: bool = False) -> None:
    """Write a table into a file; see `check_output` for `path` and `force`."""
    with open_output(path, table.schema, force=force) as output:
        output.write(table)


@contextmanager
def _file(aside: Path, target: FilePath, schema: pa.Schema) -> Iterator[Output]:
    name = str(target)
    kind = ENDINGS[ending_of(target) or ".csv"]
    if kind == "parquet":
        with pq.ParquetWriter(str(aside), schema) as writer:
            yield Output(name, writer, schema)
    elif kind == "excel":
        with ExcelWriter(aside, schema) as excel:
            yield Output(name, excel, schema)
    elif kind == "arrow":
        with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            yield Output(name, writer, schema)
    elif kind == "jsonl":
        with _bytes(aside, target) as sink:
            yield Output(name, JsonWriter(sink), schema)
    else:
        with _bytes(aside, target) as sink:
            with _csv(name, sink, schema, "\t" if kind == "tsv" else ",") as output:
                yield output


@contextmanager
def _bytes(aside: Path, target: FilePath) -> Iterator[Any]:
    with aside.open("wb") as file:
        if target.suffix.lower() != ".gz":
            yield file
            return
        # No name and no time inside, so that the same rows are the same bytes.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:
            yield compressed


@contextmanager
def _csv(name: str, sink: Any, schema: pa.Schema, delimiter: str) -> Iterator[Output]:
    options = pa_csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    wrapped = _Unclosed(sink)
    with pa_csv.CSVWriter(wrapped, schema, write_options=options) as writer:
        yield Output(name, writer, schema)


class _Unclosed:
    """A sink that Arrow writes to and does not close."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self.write, self.flush = sink.write, sink.flush

    def close(self) -> None:
        self.flush()


def _aside(target: FilePath) -> AbstractContextManager[Path]:
    """Give a file to write to, which takes the place of the target when it is whole."""
    if not isinstance(target, Path):
        return sending(target, TableError)
    return nullcontext(target) if _is_device(target) else replacing(target, TableError)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
