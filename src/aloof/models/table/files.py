"""Files of tables as streams of batches, in bounded memory.

CSV, TSV and JSON (also compressed), Excel, Parquet, Arrow IPC and lines of text; a file, a
folder, a glob, or "-" for CSV on standard input. A CSV file holds text and is read as text:
what a column means is the business of the encoder, so no value far down in a file can break
the stream.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.io.remote import FilePath, RemotePath, path_of
from aloof.models.table.compression import COMPRESSED
from aloof.models.table.delimited import Delimited
from aloof.models.table.excel import Excel
from aloof.models.table.formats import (
    ENDINGS,
    Arrow,
    Format,
    FormatName,
    Parquet,
    ending_of,
    first_line,
)
from aloof.models.table.lines import TEXT, Lines
from aloof.models.table.locating import Spot
from aloof.models.table.names import check_names
from aloof.models.table.objects import Objects
from aloof.suggestion import closest
from aloof.written.decoding import FALLBACK

__all__ = ["Source", "column_names", "in_memory", "joined_table", "open_source"]

# Larger files are not read once more to say in which line something is.
_MOST_TO_READ_AGAIN = 256 * 2**20
# Which options say something about which format.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "csv": ("delimiter", "encoding", "header"),
    "tsv": ("delimiter", "encoding", "header"),
    "txt": ("encoding",),
    "excel": ("sheet", "header"),
    "parquet": (),
    "arrow": (),
    "json": ("encoding",),
    "jsonl": ("encoding",),
}
# What to do about files of other programs.
_ADVICE = {
    ".xls": "is an old Excel workbook. Save it as .xlsx or .csv",
    ".xlsb": "is a binary workbook. Save it as .xlsx or .csv",
    ".ods": "is a LibreOffice workbook. Save it as .xlsx or .csv",
    ".mat": "is a MATLAB file. Save it as .csv or .parquet",
    ".zip": "is an archive without exactly one CSV, TSV or JSON file. Unpack it, and name one",
}


@dataclass(frozen=True)
class Source:
    """A table in files; `open_source` makes one.

    Attributes
    ----------
    name
        As the user wrote it.
    paths
        The files, in the order they are read; empty for standard input.
    format
        How to read one.
    options
        Of `open_source`, as far as they were given.
    """

    name: str
    paths: tuple[FilePath, ...]
    format: Format
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def written(self) -> str:
        """What `open_source` was given."""
        return self.name if self.paths else "-"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, those of the first file."""
        names = self.format.names(self.paths[0] if self.paths else None)
        check_names(names)
        return names

    @cached_property
    def n_rows(self) -> int | None:
        """How many rows there are, if the files say it without being read."""
        counts = [self.format.n_rows(path) for path in self.paths]
        known = [count for count in counts if count is not None]
        return sum(known) if counts and len(known) == len(counts) else None

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns that are free text, whatever they hold: the lines of a text file."""
        return (TEXT,) if isinstance(self.format, Lines) else ()

    @property
    def understood(self) -> str:
        """How the first file is read, in words, where it is not the usual way."""
        return self.format.understood(self.paths[0] if self.paths else None)

    def lines_of(self, column: str, values: Collection[str]) -> dict[str, Spot]:
        """Return where values of a column stand first, as far as that can be told."""
        found: dict[str, Spot] = {}
        for spot, (text,) in self._records((column,)):
            if text is not None and text in values:
                found.setdefault(text, spot)
                if len(found) == len(values):
                    break
        return found

    def lines_at(self, rows: Collection[int]) -> dict[int, Spot]:
        """Return where rows stand, which are counted from 1, as far as that can be told."""
        found: dict[int, Spot] = {}
        last = max(rows, default=0)
        for row, (spot, _) in enumerate(islice(self._records(()), last), start=1):
            if row in rows:
                found[row] = spot
        return found

    def rows_at(self, lines: Collection[int]) -> dict[int, int]:
        """Return the rows that begin in lines of the one file."""
        if len(self.paths) > 1:
            raise TableError(
                f"{self.name} holds more than one file, so a line could be in any. Name one."
            )
        found: dict[int, int] = {}
        for row, (spot, _) in enumerate(self._records(()), start=1):
            if spot.line in lines:
                found[spot.line] = row
        return found

    def _records(self, columns: tuple[str, ...]) -> Iterator[tuple[Spot, list[str | None]]]:
        """Yield where each row stands, and its text in some columns; nothing: nobody knows."""
        if (self.n_bytes or 0) > _MOST_TO_READ_AGAIN:
            return
        for path in self.paths:
            file = path.name if len(self.paths) > 1 else None
            for line, cells in self.format.records(path, columns):
                yield Spot(line, self.format.line, file), cells

    @property
    def n_bytes(self) -> int | None:
        """How large the files are; None for standard input."""
        return sum(path.stat().st_size for path in self.paths) if self.paths else None

    def fingerprint(self) -> str | None:
        """Return a text that changes when a file does; None for standard input."""
        if not self.paths:
            return None
        digest = hashlib.sha256(repr(self.format).encode())
        for path in self.paths:
            info = path.stat()
            digest.update(f"{path.resolve()}|{info.st_size}|{info.st_mtime_ns}\n".encode())
        return digest.hexdigest()

    def batches(
        self, columns: Sequence[str] | None = None, *, rows: int = 65_536, skip: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows in order.

        Parameters
        ----------
        columns
            Which columns to read; all by default.
        rows
            How many rows each batch has, but for the last one. Batches are the same however
            the rows are spread over blocks and files.
        skip
            How many rows to leave out at the beginning.

        Yields
        ------
        Batches. A table without rows is an error.
        """
        wanted = tuple(self.names if columns is None else columns)
        read = 0
        waiting: list[pa.RecordBatch] = []
        n_waiting = 0
        for batch in self._blocks(wanted, rows):
            read += batch.num_rows
            left = min(skip, batch.num_rows)
            skip -= left
            batch = batch.slice(left)
            while n_waiting + batch.num_rows >= rows:
                here = rows - n_waiting
                yield _joined([*waiting, batch.slice(0, here)])
                waiting, n_waiting, batch = [], 0, batch.slice(here)
            if batch.num_rows:
                waiting.append(batch)
                n_waiting += batch.num_rows
        if waiting:
            yield _joined(waiting)
        if not read:
            raise TableError(
                f"{self.name} has columns ({', '.join(self.names[:5])}) but no rows."
            )

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows."""
        return joined_table(list(self.batches(columns)))

    def _blocks(self, columns: tuple[str, ...], rows: int) -> Iterator[pa.RecordBatch]:
        for path in self.paths or (None,):
            if path is not None and path != self.paths[0]:
                names = self.format.names(path)
                check_names(names)
                missing = [name for name in columns if name not in names]
                if missing:
                    raise TableError(
                        f"{path} has no column {missing[0]!r}, but {self.paths[0]} has."
                    )
            for batch in self.format.batches(path, columns, rows):
                yield batch.select(list(columns))


def open_source(
    source: str | os.PathLike[str],
    *,
    format: FormatName | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    header: bool | None = None,
    before: Mapping[str, Any] | None = None,
) -> Source:
    """Find the files of a table and make sure that their beginning can be read.

    Parameters
    ----------
    source
        A file, a folder (all files of one format in it), a glob, or "-" for standard input.
        Also elsewhere: a URL such as s3://bucket/folder.
    format
        "csv", "tsv", "excel", "parquet", "arrow", "json", "jsonl" or "txt" (one document in a
        line); by default what the ending of the name says.
    delimiter
        What separates the values of a CSV file; None: found in each file.
    encoding
        Of CSV, JSON and text files, such as "latin-1"; None: found in each file.
    sheet
        Of an Excel file, by name or by number from "1" on; None: the first.
    header
        Whether there is a line of column names; False: columns are called column_1 and so on.
        None: there must be one.
    before
        What was said about a file of the same kind, such as the training data: it holds where
        nothing else is said, and for the delimiter and encoding where the file leaves a choice.
    """
    name = os.fspath(source)
    if format is not None and format not in get_args(FormatName):
        known = ", ".join(get_args(FormatName))
        raise TableError(f"The format must be one of {known}; got {format!r}.")
    paths = () if name == "-" else _paths(name, format)
    kind = format or (_format_name(paths[0]) if paths else "csv")
    if not paths and kind not in ("csv", "tsv"):
        lines = ", or follow it line by line: --follow" if kind == "jsonl" else ""
        raise TableError(
            f"Standard input is read as CSV or TSV, not as {kind}. Name a file{lines}."
        )
    given: dict[str, Any]
    given = {"format": format, "delimiter": delimiter, "encoding": encoding}
    given |= {"sheet": sheet, "header": header}
    options = {option: value for option, value in given.items() if value is not None}
    found = Source(
        name if paths else "standard input",
        paths,
        _format(kind, options, before or {}),
        options,
    )
    _ = found.names  # what cannot be opened is told now
    return found


def in_memory(
    content: bytes,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    before: Mapping[str, Any] | None = None,
) -> Source:
    """Return CSV that is in memory as a table; the parameters are those of `open_source`."""
    given = {"delimiter": delimiter, "encoding": encoding, "header": header}
    options = {option: value for option, value in given.items() if value is not None}
    format = _format("csv", options, before or {})
    assert isinstance(format, Delimited)
    found = Source("the text", (), replace(format, content=content), options)
    _ = found.names
    return found


def _format_name(path: FilePath) -> FormatName:
    ending = ending_of(path)
    if ending is not None:
        return ENDINGS[ending]
    if advice := _ADVICE.get(path.suffix.lower()):
        raise TableError(f"{path.name} {advice}.")
    raise TableError(
        f"The ending of {path.name} does not tell its format. Known endings: "
        f"{', '.join(ENDINGS)}, and {', '.join(COMPRESSED)} after .csv, .tsv or .jsonl. If "
        "it is a text file with one row per line, set format='csv' (--format csv)."
    )


def _format(name: FormatName, options: Mapping[str, Any], before: Mapping[str, Any]) -> Format:
    takes = _OPTIONS[name]
    for option in ("delimiter", "encoding", "sheet", "header"):
        if option in options and option not in takes:
            article = "An" if option[0] in "aeiou" else "A"
            raise TableError(
                f"{article} {option} does not apply to {name} files; leave it out."
            )
    if name == "parquet":
        return Parquet()
    if name == "arrow":
        return Arrow()
    if name in ("json", "jsonl"):
        return Objects(options.get("encoding"), before.get("encoding") or FALLBACK)
    if name == "txt":
        sure = "format" in options
        return Lines(options.get("encoding"), before.get("encoding") or FALLBACK, sure)
    header = options.get("header", before.get("header"))
    if name == "excel":
        return Excel(options.get("sheet", before.get("sheet")), header)
    preferred = "\t" if name == "tsv" else before.get("delimiter")
    return Delimited(
        encoding=options.get("encoding"),
        fallback=before.get("encoding") or FALLBACK,
        delimiter=options.get("delimiter"),
        header=header,
        preferred=preferred,
    )


def column_names(data: Source | pa.Table) -> Sequence[str]:
    """Return the names of the columns, also of a table in memory."""
    names: Sequence[str] = data.names if isinstance(data, Source) else data.column_names
    return names


def joined_table(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Join batches whose types may differ: what has no common type becomes text."""
    tables = [pa.Table.from_batches([batch]) for batch in batches]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException:
        return pa.concat_tables(
            [_as_text(table) for table in tables], promote_options="default"
        )


def _as_text(table: pa.Table) -> pa.Table:
    return pa.table({name: _text(table[name]) for name in table.column_names})


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return column.cast(pa.string())
    except pa.ArrowException as error:
        raise TableError(
            f"A column has the type {column.type} in one file and an incompatible one in "
            "another."
        ) from error


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (batch,) = joined_table(batches).combine_chunks().to_batches()
    return batch


def _paths(name: str, format: FormatName | None) -> tuple[FilePath, ...]:
    path = path_of(name)
    if isinstance(path, RemotePath):
        return _remote_paths(name, path, format)
    if path.is_dir():
        return _of_one_kind(
            name, [p for p in sorted(path.rglob("*")) if _is_data(p, path)], format
        )
    if path.exists():
        return (path,)
    if glob.has_magic(name):
        found = [Path(p) for p in sorted(glob.glob(os.path.expanduser(name), recursive=True))]
        return _of_one_kind(name, [p for p in found if p.is_file()], format)
    parent = path.parent
    if not parent.is_dir():
        raise TableError(f"There is no file {name}: the folder {parent} does not exist.")
    raise TableError(
        f"There is no file {name}{closest(path.name, sorted(os.listdir(parent)))}."
    )


def _remote_paths(
    name: str, path: RemotePath, format: FormatName | None
) -> tuple[FilePath, ...]:
    try:
        if glob.has_magic(name.partition("?")[0] if name.startswith("http") else name):
            return _of_one_kind(name, path.glob(), format)
        if path.is_file():
            return (path,)
        if path.is_dir():
            below = len(str(path).rstrip("/")) + 1
            files = [p for p in path.files() if not _is_hidden(str(p)[below:].split("/"))]
            return _of_one_kind(name, files, format)
    except OSError as error:
        raise TableError(f"Cannot reach {name}: {first_line(error)}.") from error
    raise TableError(f"There is no file {name}.")


def _is_data(path: Path, root: Path) -> bool:
    """Say whether a file of a folder is data: Spark and others put notes beside it."""
    return path.is_file() and not _is_hidden(path.relative_to(root).parts)


def _is_hidden(parts: Sequence[str]) -> bool:
    return any(part[:1] in (".", "_") for part in parts)


def _of_one_kind(
    name: str, paths: Sequence[FilePath], format: FormatName | None
) -> tuple[FilePath, ...]:
    known = paths if format else [path for path in paths if ending_of(path)]
    # Beside tables of other kinds, a .json file is a note.
    others = [path for path in known if ending_of(path) != ".json"]
    known = known if format or not others else others
    if not known:
        raise TableError(f"{name} holds no tables. Known endings: {', '.join(ENDINGS)}.")
    kinds = sorted({ENDINGS[ending] for path in known if (ending := ending_of(path))})
    if format is None and len(kinds) > 1:
        raise TableError(
            f"{name} holds files of several formats ({', '.join(kinds)}). Name those of one, "
            "for example with a glob such as '*.parquet'."
        )
    return tuple(known)
