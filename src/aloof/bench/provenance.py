"""Which code made a result, with what, where and when."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from aloof._version import __version__
from aloof.persistence import versions

__all__ = ["code_version", "device_name", "device_of", "now", "provenance"]


def provenance() -> dict[str, Any]:
    """Return the code, the libraries and the time, for a record."""
    return {**code_version(), "versions": versions(), "finished": now()}


@lru_cache(maxsize=1)
def code_version() -> dict[str, Any]:
    """Return the commit of this package and whether its files differ from it.

    Where the package is not part of a Git repository: its version.
    """
    package = Path(__file__).parents[1]
    commit = _git(package, "rev-parse", "HEAD")
    # A package installed somewhere inside of a repository is not that repository's.
    if commit is None or not _git(package, "ls-files", "_version.py"):
        return {"code": __version__}
    return {"code": commit, "dirty": bool(_git(package, "status", "--porcelain", "--", "."))}


def device_name(device: torch.device) -> str:
    """Return what people call a device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def device_of(estimator: Any) -> str:
    """Return what people call the device that a fitted estimator was trained on."""
    return device_name(torch.device(getattr(estimator, "device_", "cpu")))


def now() -> str:
    """Return the time to the second, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
