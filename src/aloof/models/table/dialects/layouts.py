"""Times in text of one layout that the user names, as in `time.strptime`."""

from __future__ import annotations

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aloof.models.table.dialects.times import Times
from aloof.written.times import read_by_pattern

__all__ = ["as_layout", "check_layout", "read_by_layout"]

_DIRECTIVE = re.compile("%.")
# What Arrow reads as Python does, and faster.
_QUICK = {"%Y", "%m", "%d", "%H", "%M", "%S"}
_PROBE = dt.datetime(2024, 10, 31, 22, 58, 59, tzinfo=dt.UTC)
# Days and months as spreadsheets write them, in English and German.
_LETTERS = re.compile("y{4}|y{2}|j{4}|j{2}|m{1,4}|d{1,2}|t{1,2}|h{1,2}|s{1,2}", re.IGNORECASE)


def as_layout(text: str) -> str:
    """Return a layout, also of one that is written as in a spreadsheet.

    Examples
    --------
    >>> as_layout("%d.%m.%Y"), as_layout("DD/MM/YYYY HH:MM"), as_layout("tt.mm.jj")
    ('%d.%m.%Y', '%d/%m/%Y %H:%M', '%d.%m.%y')
    """
    if "%" in text:
        return text
    seen_hours = False

    def directive(found: re.Match[str]) -> str:
        nonlocal seen_hours
        word = found[0].lower()
        if word[0] == "h":
            seen_hours = True
            return "%H"
        if word[0] in "yj":
            return "%Y" if len(word) == 4 else "%y"
        if word[0] == "m" and len(word) > 2:
            return "%b" if len(word) == 3 else "%B"
        return {"m": "%M" if seen_hours else "%m", "d": "%d", "t": "%d", "s": "%S"}[word[0]]

    return _LETTERS.sub(directive, text)


def check_layout(layout: str) -> None:
    """Raise a ValueError unless this is a way to write times that Python can read."""
    try:
        written = _PROBE.strftime(layout)
        dt.datetime.strptime(written, layout)
    except (ValueError, re.error) as error:
        raise ValueError(f"{layout!r} is not a date format: {error}") from None
    if not _DIRECTIVE.search(layout):
        raise ValueError(f"{layout!r} is not a date format: it has no %d, %m, %Y or the like")


def read_by_layout(text: pa.Array, layout: str) -> Times:
    """Return the times of clean text that is written in one layout."""
    nowhere = np.zeros(len(text), bool)
    if not set(_DIRECTIVE.findall(layout)) <= _QUICK:
        seconds, instants = _one_by_one(text, layout)
        return Times(seconds, instants, nowhere)
    times = pc.strptime(text, format=layout, unit="s", error_is_null=True)
    seconds = times.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    # Arrow takes the 31st of February for the 3rd of March: what it would write otherwise is
    # looked at once more.
    written = pc.strftime(times, format=layout)
    odd = pc.fill_null(pc.not_equal(written, text), False).to_numpy(zero_copy_only=False)
    if odd.any():
        seconds[odd], _ = _one_by_one(text.filter(pa.array(odd)), layout)
    return Times(seconds, nowhere, nowhere)


def _one_by_one(text: pa.Array, layout: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return seconds, and where they are those of UTC, as Python reads each value."""
    distinct = pc.unique(text)
    found = [read_by_pattern(value.as_py() or "", layout) for value in distinct]
    places = pc.index_in(text, value_set=distinct, skip_nulls=False)
    taken = places.to_numpy(zero_copy_only=False)
    seconds = np.array([pair[0] for pair in found], np.float64)[taken]
    return seconds, np.array([pair[1] for pair in found], bool)[taken]
