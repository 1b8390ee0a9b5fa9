"""Names of columns: each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from aloof.exceptions import TableError

__all__ = ["check_names"]


def check_names(names: Iterable[str]) -> None:
    """Raise where a column name is there more than once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(map(repr, twice[:5]))
        raise TableError(
            f"The table has more than one column named {listed}. Rename them so that every "
            "name is unique."
        )
