"""The latest of what was scored, as much as it takes to compare it with the training."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

__all__ = ["Recent"]

_T = TypeVar("_T")
_ROWS, _BYTES = 2048, 8 * 2**20


class Recent(Generic[_T]):
    """Parts of data, the latest of them: bounded in rows and in bytes.

    Threads may add to it and look at it at the same time.
    """

    def __init__(self) -> None:
        self._parts: deque[tuple[_T, int, int]] = deque()
        self._lock = threading.Lock()
        self.rows = self._bytes = 0

    def add(self, part: _T, rows: int, size: int) -> None:
        """Keep a part of so many rows and bytes, and let go of the oldest ones.

        One that is larger than all that is kept is not kept.
        """
        if size > _BYTES:
            return
        with self._lock:
            self._parts.append((part, rows, size))
            self.rows += rows
            self._bytes += size
            while len(self._parts) > 1 and (self.rows > _ROWS or self._bytes > _BYTES):
                _, rows, size = self._parts.popleft()
                self.rows -= rows
                self._bytes -= size

    def all(self) -> list[_T]:
        """Return what is kept, the oldest first."""
        with self._lock:
            return [part for part, _, _ in self._parts]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._parts.clear()
            self.rows = self._bytes = 0
