"""What the values of a column say about how it is written, and what all columns say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import pyarrow as pa

from aloof.models.table.dialects.hints import Locale
from aloof.models.table.dialects.number_evidence import NumberEvidence, locale_of_numbers
from aloof.models.table.dialects.time_evidence import TimeEvidence, locale_of_times

__all__ = ["Evidence", "survey"]


class Evidence:
    """What the values of a column of text say; it is looked at when somebody asks.

    Parameters
    ----------
    text
        All values there are, also of rows that are not learned from; None: it is no text.
    """

    def __init__(self, text: pa.Array | None) -> None:
        self._text = text

    @cached_property
    def numbers(self) -> NumberEvidence:
        """About numbers."""
        return NumberEvidence() if self._text is None else NumberEvidence.of(self._text)

    @cached_property
    def times(self) -> TimeEvidence:
        """About times. Numbers are none, so that most columns are looked at once."""
        if self._text is None or self.numbers.is_numbers:
            return TimeEvidence()
        return TimeEvidence.of(self._text)


def survey(columns: Mapping[str, Evidence]) -> Locale:
    """Return what the columns of a table that leave no doubt say about the others."""
    numbers = locale_of_numbers({name: found.numbers for name, found in columns.items()})
    return locale_of_times({name: found.times for name, found in columns.items()}, numbers)
