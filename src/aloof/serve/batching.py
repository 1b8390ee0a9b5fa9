"""Requests wait in a bounded queue and are scored together, outside of the event loop.

Whatever waits when a thread is free is its next batch: nobody waits for others to come, and
the busier the server, the larger the batches. Models take turns. A request that does not fit
into the queue, or whose time would be over before its turn, is refused at once.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from aloof.exceptions import AloofError
from aloof.serve.limits import Limits, Refused, refused_by
from aloof.serve.served import Rows, Scored, Served

__all__ = ["Job", "Queue"]

_FEW, _MANY = 16, 256  # rows of batches that show what a batch takes, and what a row does
_SMOOTH = 0.1
_TICK = 0.02  # seconds


@dataclass(slots=True, eq=False)
class Job:
    """A request that waits.

    Attributes
    ----------
    served, rows
        What scores what.
    finish
        Makes an answer of what was found, in the thread that found it.
    tell
        Called with the answer or an exception, in the loop.
    loop
        Of who waits.
    deadline
        When nobody waits any more, by the monotonic clock.
    is_over
        Whether nobody waits for an answer: it was told, or the client is gone.
    """

    served: Served[Any]
    rows: Rows
    finish: Callable[[Scored], Any]
    tell: Callable[[Any], None]
    loop: asyncio.AbstractEventLoop
    deadline: float
    is_over: bool = False

    def end(self, answer: Any) -> None:
        """Tell the answer, once."""
        if not self.is_over:
            self.is_over = True
            self.tell(answer)


class _Deadlines:
    """Ends what waits for too long.

    One timer does for all: one for each would cost more than the rest of a small request.
    """

    def __init__(self) -> None:
        self._waiting: list[Job] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, job: Job) -> None:
        """Watch a request until it is answered."""
        self._waiting.append(job)
        if self._timer is None:
            self._timer = job.loop.call_later(_TICK, self._look)

    def _look(self) -> None:
        self._timer, now = None, time.monotonic()
        waiting = [job for job in self._waiting if not job.is_over]
        self._waiting = [job for job in waiting if job.deadline > now]
        for job in waiting:
            if job.deadline <= now:
                job.end(_too_late())
        if self._waiting and self._timer is None:
            self._timer = self._waiting[0].loop.call_later(_TICK, self._look)


class Queue:
    """What waits to be scored, and the threads that score it.

    Parameters
    ----------
    limits
        How many rows may wait, and be scored together.
    threads
        How many batches are scored at once.
    watch
        Called with the number of rows and requests of each batch, and the seconds it took.
    failed
        Called with errors that nobody expected.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        threads: int = 1,
        watch: Callable[[int, int, float], None] = lambda rows, requests, seconds: None,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._limits, self._watch, self._failed = limits, watch, failed
        self._waiting: OrderedDict[Served[Any], deque[Job]] = OrderedDict()
        self._changed = threading.Condition()
        self._stopped = False
        self._deadlines = _Deadlines()
        self._done: deque[list[tuple[Job, Any]]] = deque()
        self.rows = 0  # that wait
        self._busy = 0  # rows that are being scored
        self._per_batch = self._per_row = 0.0  # seconds, as far as they were measured
        self._threads = [
            threading.Thread(target=self._work, name=f"scoring-{i}", daemon=True)
            for i in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def seconds(self) -> float:
        """About how long it takes until all that waits is scored."""
        rows = self.rows + self._busy
        batches = -(-rows // self._limits.batch)
        return (batches * self._per_batch + rows * self._per_row) / len(self._threads)

    def check(self, n: int, deadline: float) -> None:
        """Refuse a request for which there is no room, or no time."""
        if self._stopped:
            raise Refused(503, "The server is shutting down.", retry=5, close=True)
        if self.rows + n > self._limits.queue and self.rows:
            raise Refused(
                429, "Too many rows are waiting. Try again later.", retry=self.seconds
            )
        if time.monotonic() + self.seconds > deadline:
            raise Refused(
                429,
                "It would take longer than the request has time. Try again later.",
                retry=self.seconds,
            )

    async def score(
        self,
        served: Served[Any],
        rows: Rows,
        finish: Callable[[Scored], Any],
        deadline: float,
    ) -> Any:
        """Return what `finish` makes of the scores of some rows; see `submit`."""
        future = asyncio.get_running_loop().create_future()
        job = self.submit(served, rows, finish, deadline, partial(_resolve, future))
        try:
            return await future
        finally:
            job.is_over = True

    def submit(
        self,
        served: Served[Any],
        rows: Rows,
        finish: Callable[[Scored], Any],
        deadline: float,
        tell: Callable[[Any], None],
    ) -> Job:
        """Let rows wait for their scores; refuse where there is no room, or no time.

        Parameters
        ----------
        served
            What scores them.
        rows
            What `Served.read` returned.
        finish
            Makes an answer, in the thread that scores.
        deadline
            By the monotonic clock: what is not begun then is not done at all.
        tell
            Called with the answer or an exception, in the loop that runs now.
        """
        job = Job(served, rows, finish, tell, asyncio.get_running_loop(), deadline)
        with self._changed:
            self.check(rows.n, deadline)
            self._waiting.setdefault(served, deque()).append(job)
            self.rows += rows.n
            self._changed.notify()
        self._deadlines.add(job)
        return job

    def stop(self) -> None:
        """Score what waits, and then end the threads."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _take(self) -> list[Job]:
        """Wait for requests, and take those of one model; none: it is over."""
        with self._changed:
            while not self._waiting:
                if self._stopped:
                    return []
                self._changed.wait()
            served, waiting = next(iter(self._waiting.items()))
            jobs = [waiting.popleft()]
            n = jobs[0].rows.n
            while waiting and n + waiting[0].rows.n <= self._limits.batch:
                jobs.append(waiting.popleft())
                n += jobs[-1].rows.n
            if waiting:
                self._waiting.move_to_end(served)
            else:
                del self._waiting[served]
            self.rows -= n
            self._busy += n
            return jobs

    def _work(self) -> None:
        while jobs := self._take():
            n = sum(job.rows.n for job in jobs)
            started = time.monotonic()
            wanted, done = [], []
            for job in jobs:
                if job.deadline > started and not job.is_over:
                    wanted.append(job)
                else:
                    done.append((job, None))
            if wanted:
                done += zip(wanted, self._answers(wanted), strict=True)
                self._measured(sum(job.rows.n for job in wanted), len(wanted), started)
            with self._changed:
                self._busy -= n
            self._deliver(done)

    def _measured(self, rows: int, requests: int, started: float) -> None:
        seconds = time.monotonic() - started
        if rows <= _FEW:
            self._per_batch += _SMOOTH * (seconds - self._per_batch)
        elif rows >= _MANY:
            row = max(0.0, seconds - self._per_batch) / rows
            self._per_row += _SMOOTH * (row - self._per_row)
        self._watch(rows, requests, seconds)

    def _answers(self, jobs: list[Job]) -> list[Any]:
        """Return an answer, or an error, for each request."""
        served = jobs[0].served
        try:
            found = served.score([job.rows for job in jobs])
        except Exception as error:
            if len(jobs) > 1:  # one of them is to blame, and the others are not
                return [answer for job in jobs for answer in self._answers([job])]
            return [self._excuse(error)]
        answers: list[Any] = []
        for job, scored in zip(jobs, found, strict=True):
            if not isinstance(scored, Scored):
                answers.append(self._excuse(scored))
                continue
            try:
                answers.append(job.finish(scored))
            except Exception as error:
                self._failed(error)
                answers.append(error)
        return answers

    def _excuse(self, error: Exception) -> Exception:
        """Return how a request is refused; what nobody expected is told."""
        if isinstance(error, AloofError):
            return refused_by(error)
        if not isinstance(error, Refused):
            self._failed(error)
        return error

    def _deliver(self, done: list[tuple[Job, Any]]) -> None:
        self._done.append(done)
        for loop in {job.loop for job, _ in done}:
            try:
                loop.call_soon_threadsafe(self.hand_out)
            except RuntimeError:  # it is closed: nobody waits any more
                continue

    def hand_out(self) -> None:
        """Tell the answers that are there, in the loop.

        It is called when they are. Whoever finds no room calls it, too: of a thousand
        connections that have sent something, all may have their turn before it is called.
        """
        while self._done:
            for job, answer in self._done.popleft():
                try:
                    job.end(_too_late() if answer is None else answer)
                except Exception as error:  # of one client; the others wait for theirs
                    told = {"message": "an answer could not be told", "exception": error}
                    job.loop.call_exception_handler(told)


def _resolve(future: asyncio.Future[Any], answer: Any) -> None:
    if future.done():
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _too_late() -> Refused:
    return Refused(429, "The time that the request has is over. Try again later.", retry=1)
