"""Progress bars: on standard error, with the time left, and only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["counting_rows"]


@contextmanager
def counting_rows(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done; yields a function to call with their number.

    Parameters
    ----------
    description
        What is being done.
    total
        How many rows there are, if that is known.
    """
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(description, total=total)
        yield lambda rows: bar.advance(task, rows)
