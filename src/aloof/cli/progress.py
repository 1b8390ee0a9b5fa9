"""Progress bars: on standard error, with the time left, and only on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from aloof.models import Progress

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(description: str) -> Iterator[Progress]:
    """Show how many are done, from the first that is until all are; yields what to call."""
    console = Console(stderr=True)
    with ExitStack() as stack:
        bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        task, shown = bar.add_task(description, total=None), False

        def progress(done: int, total: int | None) -> None:
            nonlocal shown
            if not shown:
                stack.enter_context(bar)
            bar.update(task, completed=done, total=total)
            shown = done != total
            if not shown:
                stack.close()

        yield progress
