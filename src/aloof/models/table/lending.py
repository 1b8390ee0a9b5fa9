"""Python's files and bytes in the hands of Arrow's threads, which give them back some time."""

from __future__ import annotations

import io
import time
import weakref
from queue import Empty, SimpleQueue
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
        self._lent: dict[int, weakref.ref[Any]] = {}
        self._streams: list[io.RawIOBase] = []
        self._returned: SimpleQueue[weakref.ref[Any]] = SimpleQueue()

    def file(self, stream: io.RawIOBase) -> io.RawIOBase:
        """Return a stream to lend."""
        self._streams.append(stream)  # which is closed here, not in a thread of Arrow's
        return self.add(_LentFile(stream, self))

    def add(self, thing: _T) -> _T:
        """Note something until nobody has it any more."""
        # Whoever drops it runs no line of Python after that, only C: there, nobody else can
        # take the interpreter away and end it before the thread is done with it.
        reference = weakref.ref(thing, self._returned.put)
        self._lent[id(reference)] = reference
        return thing

    def wait(self) -> None:
        """Wait until everything has been given back."""
        end = time.monotonic() + _PATIENCE
        while self._lent:
            try:
                reference = self._returned.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                return
            del self._lent[id(reference)]


class _LentFile(io.RawIOBase):
    def __init__(self, stream: io.RawIOBase, lent: Lent) -> None:
        self._stream, self._lent = stream, lent

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> Any:
        return self._lent.add(memoryview(self._stream.read(size) or b""))
