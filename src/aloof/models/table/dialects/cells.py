"""Text as cells hold it: one kind of space, minus and digit, and words that mean nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aloof.written.cells import (
    FOREIGN,
    MISSING_WORDS,
    PLAIN_SIGNS,
    QUOTED,
    QUOTES,
    TRANSLATED,
)

__all__ = ["MOSTLY", "clean", "is_missing", "some_of"]

# Text is taken for numbers, times or codes if this share of it can be read as such.
MOSTLY = 0.9
# So many values of a long column are looked at before all are.
_SOME = 2048

_ODD = "|".join([*(pattern for pattern, _ in PLAIN_SIGNS), FOREIGN])


def clean(text: pa.Array) -> pa.Array:
    """Return text without space and quotation marks, and with the signs of a keyboard."""
    text = _unquoted(pc.utf8_trim_whitespace(text))
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return text
    if not _any(text, _ODD):
        return text
    for pattern, plain in PLAIN_SIGNS:
        text = pc.replace_substring_regex(text, pattern, plain)
    if _any(text, FOREIGN):
        values = (None if v is None else v.translate(TRANSLATED) for v in text.to_pylist())
        text = pa.array(values, pa.string())
    return pc.utf8_trim_whitespace(text)


def _unquoted(text: pa.Array) -> pa.Array:
    """Return text without what spreadsheets put around it so that it stays as it is."""
    begins = [pc.any(pc.starts_with(text, sign)).as_py() for sign in QUOTES]
    return pc.replace_substring_regex(text, QUOTED, r"\1\2\3\4") if any(begins) else text


def some_of(text: pa.Array) -> pa.Array | None:
    """Return values from everywhere in a long column; None: it is short."""
    step = len(text) // _SOME
    return text.take(pa.array(np.arange(0, len(text), step))) if step > 1 else None


def is_missing(text: pa.Array) -> pa.Array:
    """Return where clean text is nothing, or a word for nothing."""
    known = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING_WORDS))
    return pc.or_(pc.is_null(text), pc.fill_null(known, True))


def _any(text: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())
