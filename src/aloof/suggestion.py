"""What was probably meant by a name that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest one, and all of them.

    Examples
    --------
    >>> did_you_mean("DPP", ["dp", "mml"])
    "; did you mean 'dp'? Choose from dp, mml."
    """
    names = list(known)
    near = _nearest(name, names)
    hint = "." if near is None else f"; did you mean {near!r}?"
    return f"{hint} Choose from {', '.join(name or repr(name) for name in names)}."


def closest(name: object, known: Iterable[str], *, typed: bool = True) -> str:
    """Return the nearest name in brackets, or nothing: for names too many to list.

    Parameters
    ----------
    name
        What is not known.
    known
        What is.
    typed
        Whether somebody typed the name, and may have erred; names in files are rarely wrong,
        and have to be nearer.

    Examples
    --------
    >>> closest("amuont", ["Amount", "Age"])
    " (did you mean 'Amount'?)"
    >>> closest("amount", ["account"], typed=False)
    ''
    """
    near = _nearest(name, known, 0.6 if typed else 0.8)
    return "" if near is None else f" (did you mean {near!r}?)"


def _nearest(name: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    folded = {other.casefold(): other for other in known}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None
