"""Groups in processes: one for each worker, each with one thread, and what happens to them.

The processes are on this machine, or on those of a Ray cluster.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Literal

import torch

from aloof.bench.deadline import Deadline, TimeIsUp
from aloof.bench.study import Group, Outcome, Tell, Work

__all__ = ["Event", "EventCallback", "execute"]


@dataclass(frozen=True)
class Event:
    """Something happened.

    Attributes
    ----------
    kind
        The run is planned; a group was started, has got further, has an outcome for a case,
        is finished, or is left for want of time.
    group
        Its label.
    n_cases
        Of the group; with an outcome; still to do when the run is planned, or left.
    done, total, what
        How far it is with what, for a step.
    errors
        What went wrong, for a group that is finished.
    """

    kind: Literal["planned", "started", "step", "outcome", "finished", "left"]
    group: str
    n_cases: int
    done: int = 0
    total: int = 0
    what: str = ""
    errors: tuple[str, ...] = ()


EventCallback = Callable[[Event], None]
_Results = Iterator[tuple[Any, Outcome]]


def execute(
    groups: Sequence[Group[Any]],
    *,
    n_workers: int,
    on_event: EventCallback,
    deadline: Deadline | None = None,
    cluster: bool = False,
) -> _Results:
    """Run groups and yield each case with its outcome as soon as there is one.

    Parameters
    ----------
    groups
        In the order to start them.
    n_workers
        Processes; 1: this one, with its threads as they are. Groups that have to run here
        come first.
    on_event
        Called from this process, maybe from another thread.
    deadline
        Groups that do not fit are left; those that run when it comes are stopped: here at
        their next step, in workers at once.
    cluster
        Whether workers are those of a Ray cluster, see `aloof.ray`, also where it is one. They
        must find data sets where this process does, and tell of no steps.

    Notes
    -----
    Where a worker dies (mostly for want of memory), the groups that were running are run again,
    one at a time; one that kills its worker again has that as its outcome. Closing the
    iterator ends the workers.
    """
    waiting: deque[Group[Any]] = deque()
    for group in groups:
        if not group.here and (n_workers > 1 or cluster):
            waiting.append(group)
        elif _left(group, on_event, deadline):
            continue
        else:
            yield from _here(group, on_event, deadline)
    if cluster and waiting:
        yield from _cluster(waiting, n_workers, on_event, deadline)
    suspects: list[Group[Any]] = []
    while waiting:
        yield from _pool(waiting, n_workers, on_event, suspects, deadline)
    for group in suspects:
        again: list[Group[Any]] = []
        yield from _pool(deque([group]), 1, on_event, again, deadline)
        if again:
            message = "The process was killed, perhaps because memory ran out."
            yield from _told(group, _failed(group, message), on_event)


def _left(group: Group[Any], on_event: EventCallback, deadline: Deadline | None) -> bool:
    """Return whether a group is left for want of time, and tell."""
    if deadline is None or deadline.allows(group.cases):
        return False
    on_event(Event("left", group.label, len(group.cases)))
    return True


def _here(group: Group[Any], on_event: EventCallback, deadline: Deadline | None) -> _Results:
    """Run a group in this process; what is done when its time is up is kept."""
    on_event(Event("started", group.label, len(group.cases)))
    left = len(group.cases)
    try:
        tell = _teller(group.label, on_event, deadline)
        results = _told(group, _outcomes(group, tell), on_event)
        for result in results if deadline is None else deadline.guard(results):
            yield result
            left -= 1
    except TimeIsUp:
        kind: Literal["left", "finished"] = "left" if left else "finished"
        on_event(Event(kind, group.label, left or len(group.cases)))


def _outcomes(group: Group[Any], tell: Tell) -> Iterator[Outcome]:
    """Run a group once the first outcome is asked for."""
    yield from group.prepare()(tell)


def _pool(
    waiting: deque[Group[Any]],
    n_workers: int,
    on_event: EventCallback,
    suspects: list[Group[Any]],
    deadline: Deadline | None,
) -> _Results:
    """Run the waiting groups until there is none, a worker dies or time is up."""
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    messages = context.SimpleQueue()
    listener = threading.Thread(target=_listen, args=(messages, on_event), daemon=True)
    listener.start()
    pool = ProcessPoolExecutor(n_workers, context, _start, (messages,))
    running: dict[Future[list[Outcome]], Group[Any]] = {}
    complete = False
    try:
        while waiting or running:
            while waiting and len(running) < n_workers:
                group = waiting[0]
                if _left(group, on_event, deadline):
                    waiting.popleft()
                    continue
                try:
                    task = pool.submit(_work, group.label, group.prepare())
                except BrokenProcessPool:
                    suspects.extend(running.values())
                    return
                running[task] = waiting.popleft()
                on_event(Event("started", group.label, len(group.cases)))
            seconds = None if deadline is None else deadline.left
            done = wait(running, seconds, return_when=FIRST_COMPLETED).done
            if running and not done:  # time is up
                for group in running.values():
                    on_event(Event("left", group.label, len(group.cases)))
                running.clear()
                continue
            for task in done:
                group = running[task]
                try:
                    outcomes = task.result()
                except BrokenProcessPool:
                    suspects.extend(running.values())
                    return
                except Exception as error:  # of the way there and back: pickling
                    outcomes = _failed(group, f"{type(error).__name__}: {error}")
                del running[task]
                yield from _told(group, outcomes, on_event)
        complete = deadline is None or bool(deadline.left)
    finally:
        if complete:
            pool.shutdown()
        else:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
        messages.put(None)
        listener.join(timeout=5)


def _cluster(
    waiting: deque[Group[Any]],
    n_workers: int,
    on_event: EventCallback,
    deadline: Deadline | None,
) -> _Results:
    """Run the waiting groups on a Ray cluster; one that kills its worker twice has failed."""
    from aloof.ray import RayPool, WorkerDied

    pool = RayPool(n_workers, _remote_work)
    died: set[str] = set()
    running: dict[str, Group[Any]] = {}
    try:
        while waiting or running:
            while waiting and pool.has_room:
                group = waiting.popleft()
                if not _left(group, on_event, deadline):
                    pool.submit(group.label, group.label, group.prepare())
                    running[group.label] = group
                    on_event(Event("started", group.label, len(group.cases)))
            done = pool.wait(None if deadline is None else deadline.left) if running else []
            if running and not done:  # time is up
                for group in [*running.values(), *waiting]:
                    on_event(Event("left", group.label, len(group.cases)))
                break
            for label, future in done:
                group, error = running.pop(label), future.exception()
                if isinstance(error, WorkerDied) and label not in died:
                    died.add(label)
                    waiting.append(group)
                    continue
                outcomes = future.result() if error is None else _failed(group, _reason(error))
                yield from _told(group, outcomes, on_event)
    finally:
        pool.close()
        waiting.clear()


def _remote_work() -> Callable[[str, Work], list[Outcome]]:
    return _work


def _reason(error: BaseException) -> str:
    name = type(error).__name__
    if name == "WorkerDied":
        return "The process was killed, perhaps because memory ran out."
    return f"{name}: {error}"


def _told(group: Group[Any], outcomes: Any, on_event: EventCallback) -> _Results:
    errors = []
    for case, outcome in zip(group.cases, outcomes, strict=True):
        if outcome.get("status") == "error":
            errors.append(outcome["message"])
        yield case, outcome
        on_event(Event("outcome", group.label, 1))
    on_event(Event("finished", group.label, len(group.cases), errors=tuple(errors)))


def _failed(group: Group[Any], message: str) -> list[Outcome]:
    return [{"status": "error", "message": message} for _ in group.cases]


def _teller(label: str, on_event: EventCallback, deadline: Deadline | None = None) -> Tell:
    def tell(done: int, total: int, what: str = "") -> None:
        on_event(Event("step", label, 0, done, total, what))
        if deadline is not None:
            deadline.check()

    return tell


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


def _work(label: str, work: Work) -> list[Outcome]:
    def send(event: Event) -> None:
        if _messages is not None:
            _messages.put(event)

    return list(work(_teller(label, send)))
