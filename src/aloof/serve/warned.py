"""Warnings in a server: for the client whose rows they are about, and for nobody else.

Warnings of aloof may quote values, so they must not reach a log. `warnings.catch_warnings`
changes what all threads see; here it is done once, and each thread has its own list.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aloof.exceptions import AloofWarning

__all__ = ["gathering", "keeping_quiet"]

_here = threading.local()


@contextmanager
def keeping_quiet() -> Iterator[None]:
    """Show no warning that may quote values, and refuse doubtful images, in all threads."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def keep(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
            if not issubclass(category, AloofWarning):
                show(message, category, *rest, **more)
            elif (said := getattr(_here, "said", None)) is not None:
                said.append(str(message))

        warnings.showwarning = keep
        warnings.simplefilter("always", AloofWarning)
        warnings.filterwarnings("error", module=r"PIL\.")
        yield


@contextmanager
def gathering() -> Iterator[list[str]]:
    """Gather the warnings of this thread, while all are quiet."""
    said: list[str] = []
    before = getattr(_here, "said", None)
    _here.said = said
    try:
        yield said
    finally:
        _here.said = before
