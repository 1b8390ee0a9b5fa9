"""Text files of any encoding as UTF-8, in bounded memory."""

from __future__ import annotations

import codecs
import io
import re
import sys
from typing import Any

from aloof.exceptions import TableError

__all__ = ["FALLBACK", "Utf8", "check_encoding"]

# What a file is written in that is not UTF-8 and does not say: Western Windows, of which
# Latin-1 is a part.
FALLBACK = "cp1252"
_MARKS = (
    (codecs.BOM_UTF8, "utf8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF8 = "utf8"
# Files that were put together have marks in the middle, which nobody sees.
_BOM = codecs.BOM_UTF8
# How much of the beginning is looked at: so many bytes, or so many lines.
_MOST_BYTES, _CHUNK, _LINES = 4 * 2**20, 2**16, 500
_TAIL = 2**14  # bytes of the end that are kept


def check_encoding(name: str) -> None:
    """Raise unless there is an encoding of this name."""
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        found = None
    if found is None or not found._is_text_encoding:
        raise TableError(f"There is no encoding {name!r}. Try 'utf8', 'latin-1' or 'cp1252'.")


class Utf8(io.RawIOBase):
    """A file as UTF-8 bytes, whatever it is written in.

    Parameters
    ----------
    file
        Has bytes to be read.
    encoding
        What they are; None: found out. UTF-8 or UTF-16 says so itself; otherwise text is UTF-8
        where it can be, which the first letter with an accent decides, wherever it is.
    fallback
        What it is where it is not UTF-8.
    """

    def __init__(self, file: Any, encoding: str | None, fallback: str = FALLBACK) -> None:
        self._file, self._fallback = file, fallback
        self._given = encoding
        self._found: str | None = None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._waiting = b""
        self._beginning, self.is_whole = "", False
        self.is_binary, self.n_quotes, self._tail = False, 0, b""
        self._is_stopped = False
        raw = self._begin(self._first())
        self._beginning = self._to_text(raw, final=self.is_whole).replace("\ufeff", "")

    @property
    def encoding(self) -> str:
        """What the file is written in, as far as it was read."""
        return self._found or _UTF8

    @property
    def beginning(self) -> str:
        """The first lines; all of them where `is_whole`."""
        return self._beginning

    def skip(self, n: int) -> None:
        """Leave out characters of the beginning; must come before anything is read."""
        self._waiting, self._beginning = self._beginning[n:].encode(), ""

    def readable(self) -> bool:
        """Say that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return how many bytes there were."""
        part = self.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def stop(self) -> None:
        """End here: nothing more is read."""
        self._is_stopped = True

    def read(self, size: int | None = -1) -> bytes:
        """Return bytes, as many at most; none at the end."""
        if self._is_stopped:
            return b""
        size = -1 if size is None else size
        if size < 0:
            parts = [self._waiting]
            self._waiting = b""
            while more := self._more(_MOST_BYTES):
                parts.append(more)
            return self._noted(b"".join(parts))
        part, self._waiting = self._waiting or self._more(size), b""
        if len(part) > size:
            part, self._waiting = part[:size], part[size:]
        return self._noted(part)

    @property
    def last_line(self) -> str:
        """The last line that was read and is not blank, if it is not too long."""
        *before, line = re.split(r"[\r\n]", self._tail.decode(errors="replace").rstrip())
        return line if before or len(self._tail) < _TAIL else ""

    def _noted(self, part: bytes) -> bytes:
        self.n_quotes += part.count(b'"')
        self._tail = part[-_TAIL:] if len(part) >= _TAIL else (self._tail + part)[-_TAIL:]
        return part

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if not self.closed and self._file is not getattr(sys.stdin, "buffer", None):
            self._file.close()
        super().close()

    def _first(self) -> bytes:
        head = b""
        while len(head) < _MOST_BYTES and head.count(b"\n") < _LINES:
            more = self._file.read(_CHUNK)
            if not more:
                self.is_whole = True
                break
            head += more
        return head

    def _begin(self, raw: bytes) -> bytes:
        """Choose how to decode; return what is to be decoded."""
        if self._given is not None:
            self._choose(self._given)
            for mark, name in _MARKS:
                if self._is(name) and raw.startswith(mark):
                    return raw[len(mark) :]
            return raw
        for mark, name in _MARKS:
            if raw.startswith(mark):
                self._choose(name)
                return raw[len(mark) :]
        zeros = [raw[place:4096:2].count(0) for place in (0, 1)]
        if max(zeros) > 0.3 * len(raw[:4096:2]) and min(zeros) == 0:
            self._choose("utf-16-be" if zeros[0] else "utf-16-le")
        elif b"\0" in raw[:_CHUNK]:
            self.is_binary = True
        return raw

    def _choose(self, name: str) -> None:
        self._found = name
        if not self._is(_UTF8):
            self._decoder = codecs.getincrementaldecoder(name)()

    def _is(self, name: str) -> bool:
        if self._found is None:
            return False
        return codecs.lookup(self._found).name == codecs.lookup(name).name

    def _more(self, size: int) -> bytes:
        while True:
            raw = self._file.read(size)
            if raw.endswith((_BOM[:1], _BOM[:2])):
                raw += self._file.read(2)
            more = self._converted(raw, final=not raw).replace(_BOM, b"")
            if more or not raw:
                return more

    def _converted(self, raw: bytes, *, final: bool) -> bytes:
        if self._found is None and raw.isascii():
            return raw
        self._decide(raw)
        if self._decoder is None:
            return raw  # whoever reads it checks that it is UTF-8
        return self._decoder.decode(raw, final).encode()

    def _to_text(self, raw: bytes, *, final: bool) -> str:
        if self._found is None and raw.isascii():
            return raw.decode("ascii")
        self._decide(raw)
        if self._decoder is not None:
            return self._decoder.decode(raw, final)
        decoder = codecs.getincrementaldecoder(_UTF8)()
        text = decoder.decode(raw, final)
        left, _ = decoder.getstate()
        while left:  # the rest of a letter
            more = self._file.read(1)
            text += decoder.decode(more, not more)
            left, _ = decoder.getstate()
        return text

    def _decide(self, raw: bytes) -> None:
        """Choose by the first bytes that are not ASCII."""
        if self._found is not None or raw.isascii():
            return
        try:
            codecs.getincrementaldecoder(_UTF8)().decode(raw, False)
            self._found = _UTF8
        except UnicodeDecodeError:
            if not raw.decode(_UTF8, "ignore").isascii():
                raise  # letters of UTF-8 and others
            self._found = self._fallback
            is_default = self._fallback == FALLBACK
            known = _Windows if is_default else codecs.getincrementaldecoder(self._fallback)
            self._decoder = known()


class _Windows(codecs.IncrementalDecoder):
    """Western Windows text; the few bytes that it lacks are those of Latin-1."""

    def decode(self, raw: Any, final: bool = False) -> str:
        try:
            return bytes(raw).decode(FALLBACK)
        except UnicodeDecodeError:
            return bytes(raw).decode("latin-1")
