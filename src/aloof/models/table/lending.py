"""Python's files and bytes in the hands of Arrow's threads, which give them back some time."""

from __future__ import annotations

import io
import threading
import weakref
from typing import Any, TypeVar

__all__ = ["Lent"]

# Seconds to wait at most; it takes far less.
_PATIENCE = 10.0

_T = TypeVar("_T")


class Lent:
    """What Arrow has of Python's, counted.

    Threads of Arrow's read ahead, and drop what they have read when they come to it. They need
    the interpreter for that. Where it is shutting down by then, as it is when a command has
    refused a file, the process hangs or is aborted.
    """

    def __init__(self) -> None:
        self._n = 0
        self._changed = threading.Condition()

    def file(self, stream: io.RawIOBase) -> io.RawIOBase:
        """Return a stream to lend."""
        return self.add(_LentFile(stream, self))

    def add(self, thing: _T) -> _T:
        """Count something until nobody has it any more."""
        with self._changed:
            self._n += 1
        weakref.finalize(thing, self._returned).atexit = False
        return thing

    def wait(self) -> None:
        """Wait until everything has been given back."""
        with self._changed:
            self._changed.wait_for(lambda: self._n == 0, _PATIENCE)

    def _returned(self) -> None:
        with self._changed:
            self._n -= 1
            self._changed.notify_all()


class _LentFile(io.RawIOBase):
    def __init__(self, stream: io.RawIOBase, lent: Lent) -> None:
        self._stream, self._lent = stream, lent

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        return self._lent.add(memoryview(self._stream.read(size) or b""))
