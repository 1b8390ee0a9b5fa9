"""Garbage collection in a process that holds a lot and keeps little.

A model and its libraries are about a million objects that stay. To look through them for cycles
again and again takes as long as to answer single rows. So they are set aside once everything is
loaded, and again when a model has been replaced.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["set_aside", "setting_aside"]

_THRESHOLDS = (5_000, 10, 10)


@contextmanager
def setting_aside() -> Iterator[None]:
    """Look through what is new alone, within this block."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def set_aside() -> None:
    """Let go of what was replaced, and set aside what took its place; in the block alone."""
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
        gc.freeze()
