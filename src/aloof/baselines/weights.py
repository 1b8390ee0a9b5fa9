"""Weights that others have trained: where they are looked for. Nothing is downloaded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from aloof.datasets import cache_folder, data_folder
from aloof.estimators._parameters import Check, or_none
from aloof.exceptions import ModelError

__all__ = ["WEIGHTS", "find_weights"]

WEIGHTS: Check = or_none((lambda v: isinstance(v, str | os.PathLike), "the path of a file"))


def find_weights(
    given: str | os.PathLike[str] | None,
    system: str,
    folder: str,
    patterns: Sequence[str],
    advice: str,
) -> Path:
    """Return the file with the weights of a system.

    Parameters
    ----------
    given
        The file that the user names. None: the first one in `folder` that has a known name.
    system
        Whose weights, for messages.
    folder
        Inside ``ALOOF_DATA``, or else inside the cache folder.
    patterns
        Names of such files, the best one first.
    advice
        How to come by the file.
    """
    if given is not None:
        path = Path(given).expanduser()
        if path.is_file():
            return path
        raise ModelError(f"The weights of {system} are not in {path}: there is no such file.")
    place = (data_folder() if os.environ.get("ALOOF_DATA") else cache_folder()) / folder
    for pattern in patterns:
        if found := sorted(place.glob(pattern)):
            if len(found) == 1:
                return found[0]
            names = ", ".join(path.name for path in found)
            raise ModelError(
                f"{place} has several files with weights of {system}: {names}. Name one of "
                "them with weights=..."
            )
    raise ModelError(
        f"The weights of {system} are not on this machine, and aloof downloads none. {advice} "
        f"Put the file into {place}, or name it with weights=..."
    )
