"""Progress of a fit, for people who wait for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["EpochReport", "ProgressCallback", "progress_bar"]


@dataclass(frozen=True)
class EpochReport:
    """What is known at the end of an epoch.

    Attributes
    ----------
    epoch, max_epochs
        Epochs done, and to do, over all stacks of the run.
    n_members
        Members trained at once.
    loss
        Mean loss over members.
    """

    epoch: int
    max_epochs: int
    n_members: int
    loss: float


ProgressCallback = Callable[[EpochReport], None]


@contextmanager
def progress_bar(description: str) -> Iterator[ProgressCallback]:
    """Show a bar on standard error: rich's where it is installed, else plain lines."""
    try:
        from rich.progress import Progress
    except ImportError:
        yield _plain(description)
        return
    with Progress(*_columns(), console=_console()) as bar:
        task = bar.add_task(description, total=None, loss="")

        def report(epoch: EpochReport) -> None:
            bar.update(
                task,
                total=epoch.max_epochs,
                completed=epoch.epoch,
                loss=f"loss {epoch.loss:.4g}",
            )

        yield report


def _plain(description: str) -> ProgressCallback:
    last = time.monotonic()

    def report(epoch: EpochReport) -> None:
        nonlocal last
        if time.monotonic() - last > 5 or epoch.epoch == epoch.max_epochs:
            last = time.monotonic()
            sys.stderr.write(
                f"{description}: epoch {epoch.epoch}/{epoch.max_epochs}, "
                f"loss {epoch.loss:.4g}\n"
            )

    return report


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


def _columns() -> tuple[Any, ...]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
