"""Names of columns and files: each once, and the nearest one where there is none."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence

from aloof.exceptions import TableError

__all__ = ["check_names", "closest"]


def check_names(names: Iterable[str]) -> None:
    """Raise where a column name is there more than once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(map(repr, twice[:5]))
        raise TableError(
            f"The table has more than one column named {listed}. Rename them, so that each "
            "name is there once."
        )


def closest(name: str, names: Sequence[str]) -> str:
    """Return " (did you mean ...?)" where one of `names` is close, else nothing."""
    folded = {other.casefold(): other for other in names}
    close = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""
