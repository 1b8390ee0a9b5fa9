"""The progress of a benchmark whose parts may run in several processes."""

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

from aloof.bench.workers import Event, EventCallback

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
        total = bar.add_task("cases", total=None)

        def report(event: Event) -> None:
            if event.kind == "planned":
                bar.update(total, total=event.n_cases)
            elif event.kind == "outcome":
                bar.advance(total, event.n_cases)
            elif event.kind in ("finished", "left"):
                if event.group in tasks:
                    bar.remove_task(tasks.pop(event.group))
                for message in event.errors[:1]:
                    bar.console.print(f"{event.group} failed: {message}", markup=False)
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
