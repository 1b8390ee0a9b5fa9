"""The progress of a benchmark whose parts may run in several processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from aloof.bench.workers import Event, EventCallback
from aloof.phrases import count, duration

__all__ = ["Log", "running"]


@contextmanager
def running() -> Iterator[EventCallback]:
    """Show what is running and how much is done: bars on a terminal, elsewhere a `Log`."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Log(lambda line: console.print(line, markup=False, soft_wrap=True))
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    with bar:
        total = bar.add_task("cases", total=None)

        def report(event: Event) -> None:
            if event.kind == "planned":
                bar.update(total, total=event.n_cases)
            elif event.kind == "outcome":
                bar.advance(total, event.n_cases)
            elif event.kind in ("finished", "left"):
                if event.group in tasks:
                    bar.remove_task(tasks.pop(event.group))
                for line in _failures(event):
                    bar.console.print(line, markup=False)
            elif event.group not in tasks:
                tasks[event.group] = bar.add_task(f"  {event.group}", total=None)
            if event.kind == "step" and event.group in tasks:
                label = f"  {event.group}" + (f": {event.what}" if event.what else "")
                bar.update(
                    tasks[event.group],
                    description=label,
                    completed=event.done,
                    total=event.total,
                )

        yield report


class Log:
    """Progress for a file: failures as they come, and a line every few minutes.

    Parameters
    ----------
    write
        Takes a line.
    clock
        Tells the seconds.
    """

    def __init__(
        self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._write, self._clock = write, clock
        self._began = self._told = clock()
        self._total = self._done = 0

    def __call__(self, event: Event) -> None:
        """Take note of an event, and write a line if it is time for one."""
        if event.kind == "planned":
            self._total = event.n_cases
        elif event.kind == "outcome":
            self._done += event.n_cases
        for line in _failures(event):
            self._write(line)
        now = self._clock()
        if now - self._told < _EVERY or event.kind == "planned":
            return
        self._told = now
        at = f"{event.what} {event.done:,} of {event.total:,}" if event.kind == "step" else ""
        self._write(
            f"{self._done:,} of {count(self._total, 'case')} after "
            f"{duration((now - self._began) / 60)}; "
            + ": ".join(part for part in (event.group, at.strip()) if part)
        )


_EVERY = 300.0  # seconds


def _failures(event: Event) -> list[str]:
    return [f"{event.group} failed: {message}" for message in event.errors[:1]]
