"""Packages that only some baselines need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from aloof.exceptions import MissingExtraError

__all__ = ["needed"]


def needed(package: str, baseline: str, extra: str = "bench") -> ModuleType:
    """Import a package, or say what to install.

    Parameters
    ----------
    package
        Its name.
    baseline
        What needs it.
    extra
        Of aloof, that brings it.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra, f"The baseline {baseline}") from error
