"""JSON as a table: one object in a line, or an array of objects.

An object is a row and its keys are columns; those of objects inside it are joined by points:
``{"card": {"country": "NO"}}`` has the column ``card.country``. Numbers, text, true and false
keep their types; a column with several is text. Files are read twice, because a key may come
late, and a value of another type later still.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import pyarrow as pa

from aloof.exceptions import TableError
from aloof.io.remote import FilePath
from aloof.models.table.cells import SIGN_IN_NUMBER, cell_text
from aloof.models.table.compression import open_bytes
from aloof.models.table.formats import Record, TextFormat, first_line
from aloof.models.table.words import short
from aloof.written.decoding import Utf8

__all__ = ["JsonWriter", "Objects", "flattened"]

_CHUNK = 2**16  # characters of an array that are read at a time
_LARGEST = 2**26  # characters of a row
_SPACE = " \t\r\n"

# What a column holds, in a word for each type that makes a difference.
_INTEGER, _LARGE, _NUMBER, _FLAG = "integer", "large integer", "number", "flag"
_TEXT, _SIGNED, _LIST = "text", "text with numbers", "list"
# As Python and others write what JSON has no word for.
_CONSTANTS = {"NaN": None, "Infinity": float("inf"), "-Infinity": float("-inf")}
# A row, and the line that it begins in.
_Numbered = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class _Shape:
    """What a file holds.

    Attributes
    ----------
    kinds
        By column, the types of its values, and the line where each was first.
    is_array
        Whether the rows are in an array.
    """

    kinds: Mapping[str, Mapping[str, int]]
    is_array: bool


@dataclass(frozen=True)
class Objects(TextFormat):
    """Objects of JSON, of which each is a row."""

    def names(self, path: FilePath | None) -> tuple[str, ...]:
        """Return the keys, in the order in which they come up."""
        return tuple(self._shape(path).kinds)

    def n_rows(self, path: FilePath) -> int | None:
        """Return None: rows would have to be counted."""
        return None

    def understood(self, path: FilePath | None) -> str:
        """Say that rows are in an array, and how columns of inner objects are called."""
        shape = self._shape(path)
        said = ["an array of objects"] if shape.is_array else []
        inner = [name for name in shape.kinds if "." in name]
        if inner:
            said.append(f"objects inside objects as columns such as {inner[0]!r}")
        return ", ".join(said)

    def batches(
        self, path: FilePath | None, columns: tuple[str, ...], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Read the rows; a key that an object does not have is missing there."""
        kinds = self._shape(path).kinds
        for name in columns:
            if _LIST in kinds[name]:
                raise TableError(
                    f"{path}: {name!r} holds a list in line {kinds[name][_LIST]:,}, and a "
                    "column holds text, numbers, true, false or null. Leave it out with "
                    f"drop=[{name!r}] (--drop {name}), or write its values under keys of their "
                    "own."
                )
        there = (row for _, row in self._rows(path))
        while some := list(islice(there, rows)):
            arrays = [_array([row.get(name) for row in some], kinds[name]) for name in columns]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def records(self, path: FilePath, columns: tuple[str, ...]) -> Iterator[Record]:
        """Yield the line that each object begins in, and its values as text."""
        for line, row in self._rows(path):
            yield line, [cell_text(row.get(name)) for name in columns]

    def _shape(self, path: FilePath | None) -> _Shape:
        assert path is not None  # standard input is read as CSV
        info = path.stat()
        return _looked_at(self, path, (info.st_size, info.st_mtime_ns))

    def _rows(self, path: FilePath | None) -> Iterator[_Numbered]:
        assert path is not None
        with self._open(path) as stream:
            is_array = _is_array(stream)
            stream.skip(0)
            text = io.TextIOWrapper(io.BufferedReader(stream), "utf8", newline=None)
            reader = _Reader(path)
            try:
                yield from reader.array(text) if is_array else reader.lines(text)
            except UnicodeDecodeError as error:
                raise self._not_encoded(path) from error
            except (OSError, EOFError, pa.ArrowException) as error:
                raise TableError(
                    f"{path} is damaged: it cannot be read after line {reader.line:,} "
                    f"({first_line(error)}). Get a fresh copy."
                ) from error

    def _open(self, path: FilePath) -> Utf8:
        try:
            stream = Utf8(open_bytes(path), self.encoding, self.fallback)
        except UnicodeDecodeError as error:
            raise self._not_encoded(path) from error
        except (OSError, EOFError, pa.ArrowException) as error:
            raise TableError(f"Cannot read {path}: {first_line(error)}.") from error
        if not stream.beginning.strip():
            stream.close()
            raise TableError(f"{path} is empty. Name a file with rows.")
        return stream

    def _not_encoded(self, path: FilePath) -> TableError:
        return TableError(
            f"{path} is not {self.encoding or 'utf8'} text. Name its encoding, such as "
            "encoding='latin-1' (--encoding latin-1)."
        )


def _is_array(stream: Utf8) -> bool:
    return stream.beginning.lstrip().startswith("[")


@lru_cache(maxsize=64)
def _looked_at(format: Objects, path: FilePath, version: object) -> _Shape:
    """Read a file, for its columns and the types of their values."""
    with format._open(path) as stream:
        is_array = _is_array(stream)
    kinds: dict[str, dict[str, int]] = {}
    for line, row in format._rows(path):
        for name, value in row.items():
            found = kinds.setdefault(name, {})
            if value is not None and (kind := _kind(value)) not in found:
                found[kind] = line
    if not kinds:
        raise TableError(f"{path} holds no objects with keys. Name a file with rows.")
    return _Shape(kinds, is_array)


@dataclass
class _Reader:
    """Reads rows; `line` is where it is."""

    path: FilePath
    line: int = 0
    _decoder: json.JSONDecoder = field(
        default_factory=lambda: json.JSONDecoder(
            object_pairs_hook=_once, parse_constant=_CONSTANTS.__getitem__
        )
    )

    def lines(self, text: Any) -> Iterator[_Numbered]:
        """Yield the rows of a file with one object in a line; blank lines are none."""
        for line in text:
            self.line += 1
            if stripped := line.strip():
                try:
                    value = self._decoder.decode(stripped)
                except (ValueError, RecursionError) as error:
                    raise self._wrong(error) from error
                yield self._row(value)

    def array(self, text: Any) -> Iterator[_Numbered]:
        """Yield the rows of an array, of which only a part is in memory."""
        held, place, size = text.read(_CHUNK), 0, _CHUNK
        self.line, is_begun = 1, False
        while True:
            place = self._past(held, place, _SPACE)
            if place == len(held):
                held, place = text.read(_CHUNK), 0
                if not held:
                    raise self._cut()
                continue
            if held[place] in ("[" if not is_begun else ",") or held[place] == "]":
                ends, is_begun = held[place] == "]", True
                place += 1
                if ends:
                    break
                continue
            try:
                value, end = self._decoder.raw_decode(held, place)
            except (ValueError, RecursionError) as error:
                more = "" if isinstance(error, _TwiceError) else text.read(size)
                if not more or len(held) > _LARGEST:
                    raise self._wrong(error) from error
                held, place, size = held[place:] + more, 0, 2 * size
                continue
            yield self._row(value)
            self.line += held.count("\n", place, end)
            place, size = end, _CHUNK
        if rest := (held[place:] + text.read(_CHUNK)).strip():
            raise TableError(
                f"{self.path}: behind the array that ends in line {self.line:,} there is more: "
                f"{short(rest, 40)!r}. Put all objects into one array, or each into a line."
            )

    def _past(self, held: str, place: int, signs: str) -> int:
        while place < len(held) and held[place] in signs:
            self.line += held[place] == "\n"
            place += 1
        return place

    def _row(self, value: Any) -> _Numbered:
        if not isinstance(value, dict):
            raise TableError(
                f"{self.path}, line {self.line:,}: {short(json.dumps(value), 40)} is not an "
                'object such as {"amount": 12.5}. A row is an object, in a line or in an array.'
            )
        try:
            return self.line, flattened(value)
        except (ValueError, RecursionError) as error:
            raise self._wrong(error) from error

    def _wrong(self, error: Exception) -> TableError:
        if isinstance(error, RecursionError):
            why = "objects are nested too deeply"
        elif isinstance(error, json.JSONDecodeError):
            at = error.doc[error.pos :] or error.doc
            why = f"not JSON: {error.msg}, at {short(at, 40)!r}"
        else:
            why = str(error)
        return TableError(
            f"{self.path}, line {self.line:,}: {why}. Rows are objects, each whole in a line, "
            "or all in one array."
        )

    def _cut(self) -> TableError:
        return TableError(
            f"{self.path} ends in line {self.line:,}, before its array does. Get a fresh copy."
        )


class _TwiceError(ValueError):
    """A key is there twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _TwiceError(f"the key {twice!r} is there twice")
    return found


def flattened(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with the keys of inner objects joined to theirs by points.

    Raises
    ------
    ValueError
        If a key is then there twice.

    Examples
    --------
    >>> flattened({"amount": 3, "card": {"country": "NO", "bank": {"id": 7}}})
    {'amount': 3, 'card.country': 'NO', 'card.bank.id': 7}
    """
    if not any(isinstance(value, dict) for value in row.values()):
        return dict(row)
    found: dict[str, Any] = {}
    for key, value in row.items():
        inner = {key: value}
        if isinstance(value, dict):
            inner = {f"{key}.{name}": part for name, part in flattened(value).items()}
        for name, part in inner.items():
            if name in found:
                raise _TwiceError(f"the key {name!r} is there twice, alone and in an object")
            found[name] = part
    return found


def _kind(value: Any) -> str:
    """Return what kind of value this is."""
    if isinstance(value, bool):
        return _FLAG
    if isinstance(value, int):
        return _INTEGER if -(2**63) <= value < 2**63 else _LARGE
    if isinstance(value, float):
        return _NUMBER
    if isinstance(value, str):
        return _SIGNED if SIGN_IN_NUMBER.search(value) else _TEXT
    return _LIST


def _array(values: list[Any], kinds: Mapping[str, int]) -> pa.Array:
    """Return values of a column in which there are such kinds in all of the file."""
    there = set(kinds)
    if there and there <= {_INTEGER, _NUMBER}:
        return pa.array(values, pa.float64() if _NUMBER in there else pa.int64())
    if there == {_FLAG}:
        return pa.array(values, pa.bool_())
    sure = _SIGNED in there
    return pa.array([cell_text(value, sure=sure) for value in values], pa.string())


class JsonWriter:
    """Writes rows as objects, one in a line; what is not finite is null.

    Parameters
    ----------
    sink
        Takes bytes.
    """

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write_table(self, table: pa.Table) -> None:
        """Write rows below those that are there."""
        lines = [json.dumps(_jsonable(row), ensure_ascii=False) for row in table.to_pylist()]
        self._sink.write("".join(f"{line}\n" for line in lines).encode())


def _jsonable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
