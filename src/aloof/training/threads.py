"""As many threads as the work is worth."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from aloof.processors import available_processors, chosen_threads, wait_asleep

__all__ = ["alone", "threads_for"]

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
