"""When a run has to end: what may still be started, and what stops what is running."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["Deadline", "TimeIsUp"]

_T = TypeVar("_T")

_AGAIN, _LONGEST = 5.0, 1e8  # seconds


class TimeIsUp(BaseException):
    """Raised inside of a group that is running when its time is up.

    No `Exception`: what a system raises is a result about that system, and this is none.
    """


class Deadline:
    """The end of a run, some time from now.

    Parameters
    ----------
    seconds
        From now.
    estimate
        Returns how many seconds cases take that are run together; None: nobody knows, and
        anything may be started while there is time.
    clock
        Returns seconds that only ever grow.
    grace
        Seconds after the end in which what is running may say that it got somewhere, and is
        stopped there. Then it is stopped wherever it is.
    """

    def __init__(
        self,
        seconds: float,
        estimate: Callable[[Sequence[Any]], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        grace: float = 30.0,
    ) -> None:
        self._clock = clock
        self._grace = grace
        self._end = clock() + seconds
        self._estimate = estimate

    @property
    def left(self) -> float:
        """Seconds; none is left once this is 0."""
        return max(0.0, self._end - self._clock())

    def allows(self, cases: Sequence[Any]) -> bool:
        """Return whether cases can be run to their end, by what is known of them."""
        needed = 0.0 if self._estimate is None else self._estimate(cases)
        return 0 < self.left >= needed

    def check(self) -> None:
        """Raise `TimeIsUp` if it is."""
        if not self.left:
            raise TimeIsUp

    def guard(self, items: Iterator[_T]) -> Iterator[_T]:
        """Yield items, and raise `TimeIsUp` in the middle of making one, after the grace.

        A step of a large network may take minutes, and nobody could ask in between. What is
        done with an item, such as writing it down, is never interrupted. Only the main thread
        of a system with timers can do this, by the system's clock; elsewhere, whoever makes the
        items has to ask.
        """
        making = False

        def ring(*_: object) -> None:
            if making:
                raise TimeIsUp

        with self._alarm(ring):
            while True:
                making = True
                try:
                    item = next(items)
                except StopIteration:
                    return
                finally:
                    making = False
                yield item

    @contextmanager
    def _alarm(self, ring: Callable[..., None]) -> Iterator[None]:
        rings = hasattr(signal, "setitimer") and self._clock is time.monotonic
        if not rings or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGALRM, ring)
        # It goes off again: an item may have been in use, or code running that cannot raise.
        seconds = min(max(self.left + self._grace, 1e-3), _LONGEST)
        signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
