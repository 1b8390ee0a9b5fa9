"""As many threads as the work is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import TypeVar

import torch

from aloof.processors import available_processors, chosen_threads, wait_asleep

__all__ = ["alone", "share_out", "threads_for"]

_T = TypeVar("_T")

# Multiplications of a step below which a second thread costs more than it brings: threads
# that share small products spend their time waiting for each other, and spin.
_WORTH_SHARING = 2e8
_DEFAULT = torch.get_num_threads()


@contextmanager
def threads_for(multiplications: float) -> Iterator[None]:
    """Use one thread for small steps, and never more than there are processors.

    Threads that sleep while they wait harm nobody, and share small steps too. Whoever has said
    how many there are, in the environment or to torch, has the last word.

    Parameters
    ----------
    multiplications
        Of one step: parameters times rows.
    """
    before = torch.get_num_threads()
    small = multiplications < _WORTH_SHARING and not wait_asleep()
    wanted = 1 if small else min(before, available_processors())
    if wanted == before or before != _DEFAULT or chosen_threads():
        yield
        return
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def alone() -> Iterator[None]:
    """Use one thread for each operation here, and in threads that are begun meanwhile."""
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def share_out(work: Callable[[Iterable[_T]], None], things: Sequence[_T]) -> None:
    """Let threads work, each on some things of its own, with one thread for each operation.

    So nobody waits for others in the middle of small operations, and what is computed does not
    depend on how many threads there are.

    Parameters
    ----------
    work
        Takes some of the things. It is called by every thread, at the same time. Where one
        fails, the others get no more.
    things
        What there is to do.
    """
    n_threads = min(torch.get_num_threads(), available_processors(), len(things))
    failed = Event()

    def own(number: int) -> Iterator[_T]:
        for thing in things[number::n_threads]:
            if failed.is_set():
                return
            yield thing

    def share(number: int) -> None:
        with _told(failed), alone():
            work(own(number))

    if n_threads == 1:
        share(0)
    elif n_threads > 1:
        with alone(), ThreadPoolExecutor(n_threads) as pool, _told(failed):
            list(pool.map(share, range(n_threads)))


@contextmanager
def _told(failed: Event) -> Iterator[None]:
    """Let everybody know where something fails, or is interrupted."""
    try:
        yield
    except BaseException:
        failed.set()
        raise
