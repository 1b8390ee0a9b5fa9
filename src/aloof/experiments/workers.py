"""Jobs in processes: one for each worker, each with one thread, and what happens to them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from aloof.experiments.measure import Outcome, Trial, measure
from aloof.experiments.records import Case
from aloof.training import EpochReport

__all__ = ["Event", "EventCallback", "Job", "execute"]


@dataclass(frozen=True, eq=False)
class Job:
    """Cases that are run together.

    Attributes
    ----------
    label
        For people; unique.
    cases
        Whose results come out.
    trials
        Makes what is run for them; called when the job starts.
    """

    label: str
    cases: tuple[Case, ...]
    trials: Callable[[], list[Trial]] = field(repr=False)


@dataclass(frozen=True)
class Event:
    """Something happened.

    Attributes
    ----------
    kind
        The run is planned; a job was started, has done an epoch, or has an outcome.
    job
        Its label.
    n_cases
        Of the job, or still to do when the run is planned.
    epoch, max_epochs
        How far it is, for an epoch.
    errors
        What went wrong, for an outcome.
    """

    kind: Literal["planned", "started", "epoch", "finished"]
    job: str
    n_cases: int
    epoch: int = 0
    max_epochs: int = 0
    errors: tuple[str, ...] = ()


EventCallback = Callable[[Event], None]


def execute(
    jobs: Sequence[Job], *, n_workers: int, on_event: EventCallback
) -> Iterator[tuple[Job, list[Outcome]]]:
    """Run jobs and yield each with its outcomes as soon as it is done.

    Parameters
    ----------
    jobs
        In the order to start them.
    n_workers
        Processes; 1: this one, with its threads as they are.
    on_event
        Called from this process, maybe from another thread.

    Notes
    -----
    Where a worker dies (mostly for want of memory), the jobs that were running are run again,
    one at a time; one that kills its worker again has that as its outcome. Closing the
    iterator ends the workers.
    """
    if n_workers == 1:
        for job in jobs:
            on_event(Event("started", job.label, len(job.cases)))
            outcomes = measure(job.trials(), on_epoch=_epochs(job, on_event))
            yield job, _told(job, outcomes, on_event)
        return
    suspects: list[Job] = []
    waiting = deque(jobs)
    while waiting:
        yield from _pool(waiting, n_workers, on_event, suspects)
    for job in suspects:
        again: list[Job] = []
        yield from _pool(deque([job]), 1, on_event, again)
        if again:
            message = "The process was killed, perhaps for want of memory."
            outcomes = [{"status": "error", "message": message} for _ in job.cases]
            yield job, _told(job, outcomes, on_event)


def _pool(
    waiting: deque[Job], n_workers: int, on_event: EventCallback, suspects: list[Job]
) -> Iterator[tuple[Job, list[Outcome]]]:
    """Run the waiting jobs until there is none or a worker dies."""
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    messages = context.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(messages, on_event), daemon=True)
    listener.start()
    pool = ProcessPoolExecutor(n_workers, context, _start, (messages,))
    running: dict[Future[list[Outcome]], Job] = {}
    complete = False
    try:
        while waiting or running:
            while waiting and len(running) < n_workers:
                job = waiting[0]
                try:
                    task = pool.submit(_work, job.label, job.trials())
                except BrokenProcessPool:
                    suspects.extend(running.values())
                    return
                running[task] = waiting.popleft()
                on_event(Event("started", job.label, len(job.cases)))
            for task in wait(running, return_when=FIRST_COMPLETED).done:
                job = running[task]
                try:
                    outcomes = task.result()
                except BrokenProcessPool:
                    suspects.extend(running.values())
                    return
                except Exception as error:  # of the way there and back: pickling
                    message = f"{type(error).__name__}: {error}"
                    outcomes = [{"status": "error", "message": message} for _ in job.cases]
                del running[task]
                yield job, _told(job, outcomes, on_event)
        complete = True
    finally:
        if complete:
            pool.shutdown()
        else:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
        messages.put(None)
        listener.join(timeout=5)


def _told(job: Job, outcomes: list[Outcome], on_event: EventCallback) -> list[Outcome]:
    errors = tuple(o["message"] for o in outcomes if o["status"] == "error")
    on_event(Event("finished", job.label, len(job.cases), errors=errors))
    return outcomes


def _epochs(job: Job, on_event: EventCallback) -> Callable[[EpochReport], None]:
    def report(epoch: EpochReport) -> None:
        on_event(Event("epoch", job.label, len(job.cases), epoch.epoch, epoch.max_epochs))

    return report


def _listen(messages: Any, on_event: EventCallback) -> None:
    """Pass on what workers say, until there is a None."""
    while (event := messages.get()) is not None:
        on_event(event)


# In a worker: the way to the process that started it.
_messages: Any = None


def _start(messages: Any) -> None:
    """Set a worker up: one thread, and Ctrl-C is for the process that started it."""
    global _messages
    _messages = messages
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    # Comes with scikit-learn.
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    threadpool_limits(1)


def _leave_with_parent() -> None:
    """End a worker whose parent was killed: nobody else would tell it."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(label: str, trials: list[Trial]) -> list[Outcome]:
    def report(epoch: EpochReport) -> None:
        if _messages is not None:
            _messages.put(Event("epoch", label, len(trials), epoch.epoch, epoch.max_epochs))

    return measure(trials, on_epoch=report)
