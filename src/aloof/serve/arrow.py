"""Arrow IPC from strangers: nothing is believed that was not checked."""

from __future__ import annotations

import struct

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from aloof.exceptions import TableError
from aloof.models.table import to_table
from aloof.serve.limits import Limits, Refused

__all__ = ["ARROW_FILE", "ARROW_STREAM", "check_values", "read_arrow", "write_arrow"]

ARROW_STREAM = "application/vnd.apache.arrow.stream"
ARROW_FILE = "application/vnd.apache.arrow.file"
_MAGIC = b"ARROW1"
_OLD_COMPRESSION = b"ARROW:experimental_compression"


def read_arrow(data: bytes, limits: Limits) -> pa.Table:
    """Return the table in an Arrow stream or file.

    Buffers that are compressed are refused: a few bytes of them can claim any size.
    """
    try:
        return _read(data, limits)
    except (pa.ArrowException, OSError, ValueError, LookupError, struct.error) as error:
        if isinstance(error, TableError):
            raise
        # What Arrow says may quote values.
        raise Refused(400, "The body is not a valid Arrow stream or file.") from error


def _read(data: bytes, limits: Limits) -> pa.Table:
    # The messages of a file are those of a stream, behind the magic; its footer, which can
    # point anywhere, is not needed.
    content = data[len(_MAGIC) + 2 :] if data.startswith(_MAGIC) else data
    _check_messages(content)
    stream = pa.ipc.open_stream(pa.py_buffer(content))
    limits.check_columns(len(stream.schema))
    for field in stream.schema:
        _check_type(field)
    kept, n = [], 0
    for batch in stream:
        n += batch.num_rows
        if n > limits.rows:
            limits.check_rows(n)
        batch.validate(full=True)
        kept.append(batch)
    limits.check_rows(n)
    table = pa.Table.from_batches(kept, stream.schema)
    return check_values(to_table(table).combine_chunks(), limits)


def check_values(table: pa.Table, limits: Limits) -> pa.Table:
    """Return a table whose rows, columns and texts are no more than they may be."""
    limits.check_columns(table.num_columns)
    limits.check_rows(table.num_rows)
    for column in table.columns:
        kind = column.type
        values = column
        if pt.is_dictionary(kind):
            values = pa.chunked_array([chunk.dictionary for chunk in column.chunks])
            kind = kind.value_type
        if pt.is_string(kind) or pt.is_large_string(kind):
            limits.check_text(pc.max(pc.binary_length(values)).as_py() or 0)
    return table


def write_arrow(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _check_type(field: pa.Field) -> None:
    kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
    flat = (
        pt.is_primitive(kind)
        or pt.is_decimal(kind)
        or pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_null(kind)
    )
    if isinstance(field.type, pa.ExtensionType) or not flat:
        raise Refused(
            422,
            f"A column has the type {kind}. Send columns of numbers, text, booleans or times.",
        )


def _check_messages(data: bytes) -> None:
    """Refuse messages with compressed buffers, as far as the messages can be followed.

    Where they cannot, Arrow says what is wrong.
    """
    at = 0
    while at + 8 <= len(data):
        mark, size = struct.unpack_from("<Ii", data, at)
        if mark != 0xFFFFFFFF:  # an older form, or the end
            at, size = at + 4, struct.unpack_from("<i", data, at)[0]
        else:
            at += 8
        if size <= 0 or at + size > len(data):
            return
        message = _Flat(data, at)
        if message.is_compressed() or _OLD_COMPRESSION in data[at : at + size]:
            raise Refused(
                415,
                "Send Arrow without compressed buffers; the whole body may be compressed, "
                "with Content-Encoding: gzip.",
            )
        at += size + message.body_length()


class _Flat:
    """A message of Arrow as its flat buffer has it; see Arrow's Message.fbs.

    Parameters
    ----------
    data, begin
        Where it is.
    """

    def __init__(self, data: bytes, begin: int) -> None:
        self._data = data
        self._root = begin + struct.unpack_from("<I", data, begin)[0]

    def body_length(self) -> int:
        """Return how long the body is that follows."""
        at = self._field(self._root, 3)
        length = struct.unpack_from("<q", self._data, at)[0] if at else 0
        return max(0, int(length))

    def is_compressed(self) -> bool:
        """Say whether it is a batch, also one of a dictionary, of compressed buffers."""
        kind, header = self._field(self._root, 1), self._field(self._root, 2)
        if not kind or not header:
            return False
        batch = header + struct.unpack_from("<I", self._data, header)[0]
        if self._data[kind] == 2:  # a batch of a dictionary holds one of records
            inner = self._field(batch, 1)
            if not inner:
                return False
            batch = inner + struct.unpack_from("<I", self._data, inner)[0]
        elif self._data[kind] != 3:
            return False
        return bool(self._field(batch, 3))

    def _field(self, table: int, number: int) -> int:
        """Return where a field of a table is; 0: it is not there."""
        shape = table - struct.unpack_from("<i", self._data, table)[0]
        size = struct.unpack_from("<H", self._data, shape)[0]
        place = 4 + 2 * number
        if place + 2 > size:
            return 0
        offset = struct.unpack_from("<H", self._data, shape + place)[0]
        return table + offset if offset else 0
