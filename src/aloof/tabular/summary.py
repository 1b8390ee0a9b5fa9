"""What the values of a column were in training, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from aloof.tabular.columns import CategoryColumn, ConstantColumn, NumberColumn, TimestampColumn
from aloof.tabular.words import number_words

__all__ = ["summary_of_column"]


def summary_of_column(column: Any) -> str:
    """Return the range of a column, or some of its values."""
    match column:
        case NumberColumn():
            low, middle, high = map(number_words, (column.low, column.middle, column.high))
            return f"{low} to {high}, median {middle}" + (" s" if column.unit else "")
        case CategoryColumn():
            shown = ", ".join(column.categories[:3])
            n = len(column.categories) + len(column.rare)
            more = "" if column.complete else "more than "
            return shown if n <= 3 else f"{shown}, ... ({more}{n:,} values)"
        case TimestampColumn():
            return _period(column)
        case ConstantColumn():
            return "nothing" if column.value is None else f"always {column.value}"
    return ""


def _period(column: TimestampColumn) -> str:
    if not column.position:
        return "times of day"
    low, high = (np.datetime64(int(at), "s") for at in (column.low, column.high))
    return f"{str(low)[:10]} to {str(high)[:10]}"
