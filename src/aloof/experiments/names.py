"""What was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the rest of a message about an unknown name: the nearest one, and all of them.

    Examples
    --------
    >>> did_you_mean("dpp", ["dp", "mml"])
    "; did you mean 'dp'? Known are dp, mml."
    """
    names = list(known)
    nearest = difflib.get_close_matches(str(name).lower(), names, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    return f"{hint} Known are {', '.join(names)}."
