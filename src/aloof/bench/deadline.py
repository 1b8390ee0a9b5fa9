"""When a run has to end: what may still be started, and what stops what is running."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["Deadline", "TimeIsUp"]


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
    """

    def __init__(
        self,
        seconds: float,
        estimate: Callable[[Sequence[Any]], float] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
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
