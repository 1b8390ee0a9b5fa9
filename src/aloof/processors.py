"""How many processors this process may use, and threads that leave them to others."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

__all__ = ["available_processors", "be_considerate", "chosen_threads", "wait_asleep"]

_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_OLD_QUOTA = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
_OLD_PERIOD = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
# With any of these the user has said how threads wait.
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
# With any of these the user has said how many there are.
_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_OURS = "ALOOF_CHOSE_THREADS"
# Some microseconds of spinning before a thread sleeps: too short to harm others, long enough
# for most waits within a product.
_SPINS = "10000"


def available_processors() -> int:
    """Return how many processors there are for this process, a container's quota counted.

    Examples
    --------
    >>> available_processors() >= 1
    True
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = _quota()
    return count if quota is None else max(1, min(count, round(quota)))


def be_considerate(environment: MutableMapping[str, str] | None = None) -> None:
    """Make threads sleep soon while they wait, no more of them than there are processors.

    Threads of OpenMP spin by default. Where other programs run too, a small fit takes many
    times as long. It has to be said before torch is loaded, and what the user said stays.
    """
    said = os.environ if environment is None else environment
    if environment is None and "torch" in sys.modules:
        return
    if not any(name in said for name in _WAITING):
        said["OMP_WAIT_POLICY"] = "PASSIVE"
        said["GOMP_SPINCOUNT"] = _SPINS
    if not any(name in said for name in _COUNTS) and _quota() is not None:
        said["OMP_NUM_THREADS"] = str(available_processors())
        said[_OURS] = "1"


def chosen_threads(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether the user has said how many threads there are."""
    said = os.environ if environment is None else environment
    return _OURS not in said and any(name in said for name in _COUNTS)


def wait_asleep(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether threads sleep while they wait, where somebody has said so."""
    said = os.environ if environment is None else environment
    return said.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE"


def _quota() -> float | None:
    """Return the processors that a container may use; None: there is no limit."""
    try:
        if _QUOTA.exists():
            limit, period = _QUOTA.read_text().split()[:2]
        else:
            limit, period = _OLD_QUOTA.read_text(), _OLD_PERIOD.read_text()
        return None if limit == "max" or int(limit) <= 0 else int(limit) / int(period)
    except (OSError, ValueError):
        return None
