"""The progress of an experiment whose parts run in several processes."""

from __future__ import annotations

from collections.abc import Iterator
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

from aloof.experiments.workers import Event, EventCallback

__all__ = ["running"]


@contextmanager
def running() -> Iterator[EventCallback]:
    """Show on a terminal what is running and how much is done; elsewhere, nothing."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )
    tasks: dict[str, TaskID] = {}
    with bar:
        total = bar.add_task("fits", total=None)

        def report(event: Event) -> None:
            if event.kind == "planned":
                bar.update(total, total=event.n_cases)
                return
            if event.kind == "finished":
                bar.advance(total, event.n_cases)
                if event.job in tasks:
                    bar.remove_task(tasks.pop(event.job))
                for message in event.errors[:1]:
                    bar.console.print(f"{event.job} failed: {message}", markup=False)
                return
            if event.job not in tasks:
                tasks[event.job] = bar.add_task(f"  {event.job}", total=None)
            if event.kind == "epoch":
                bar.update(tasks[event.job], completed=event.epoch, total=event.max_epochs)

        yield report
