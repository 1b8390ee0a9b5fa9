"""Text as cells hold it: one kind of space, minus and digit, and words that mean nothing."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["MISSING_WORDS", "MOSTLY", "QUOTES", "clean", "is_missing", "some_of"]

# Text is taken for numbers, times or codes if this share of it can be read as such.
MOSTLY = 0.9
# So many values of a long column are looked at before all are.
_SOME = 2048

# Text that stands for "nothing here" in a column of numbers or times. In a column of
# categories only empty text is missing: there "NA" may be Namibia.
MISSING_WORDS = (
    *("", "-", "--", "---", "?", ".", "..", "...", "n/a", "n.a.", "na", "nan", "nat", "nil"),
    *("none", "null", "(null)", "\\n", "missing", "unknown", "(blank)", "<na>", "#n/a", "#na"),
    *("#nv", "#null!", "#value!", "#wert!", "#ref!", "#bezug!", "#name?", "#div/0!", "#num!"),
    *("#zahl!", "#valeur!", "k.a.", "k. a.", "n.v.", "n.d.", "s/d"),
)
# What looks like a space, a minus or an apostrophe, and what cannot be seen at all.
_SPACE = "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\t]"
_MINUS = "[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]"
_APOSTROPHE = "[\u2018\u2019\u02bc\u00b4`\uff07\u066c]"
_UNSEEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
# What a value begins with that is quoted: ="12", '12, =12 and quotation marks that no CSV has.
QUOTES = "='\u201c\u201e\u00ab"
_QUOTED = (
    "^(?:=\"(.*)\"|'([^']*)|[\u201c\u201e\u00ab](.*)[\u201c\u201d\u00bb]|=([-+]?[\\d.,]+))$"
)
_PLAIN = ((_UNSEEN, ""), (_SPACE, " "), (_MINUS, "-"), (_APOSTROPHE, "'"))
# Digits and signs of other scripts. The Arabic decimal sign stays: it has one meaning.
_DIGITS = {
    code: unicodedata.digit(chr(code))
    for code in (
        *range(0x0660, 0x066A),  # Arabic
        *range(0x06F0, 0x06FA),  # Persian
        *range(0x0966, 0x0970),  # Devanagari
        *range(0x09E6, 0x09F0),  # Bengali
        *range(0xFF10, 0xFF1A),  # full width
    )
}
_TRANSLATED: dict[int, str] = {code: str(digit) for code, digit in _DIGITS.items()}
_TRANSLATED |= {ord("．"): ".", ord("，"): ",", ord("％"): "%", ord("："): ":", ord("／"): "/"}
_FOREIGN = "[" + "".join(map(chr, _TRANSLATED)) + "]"
_ODD = "|".join([*(pattern for pattern, _ in _PLAIN), _FOREIGN])


def clean(text: pa.Array) -> pa.Array:
    """Return text without space and quotation marks, and with the signs of a keyboard."""
    text = _unquoted(pc.utf8_trim_whitespace(text))
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return text
    if not _any(text, _ODD):
        return text
    for pattern, plain in _PLAIN:
        text = pc.replace_substring_regex(text, pattern, plain)
    if _any(text, _FOREIGN):
        values = (None if v is None else v.translate(_TRANSLATED) for v in text.to_pylist())
        text = pa.array(values, pa.string())
    return pc.utf8_trim_whitespace(text)


def _unquoted(text: pa.Array) -> pa.Array:
    """Return text without what spreadsheets put around it so that it stays as it is."""
    begins = [pc.any(pc.starts_with(text, sign)).as_py() for sign in QUOTES]
    return pc.replace_substring_regex(text, _QUOTED, r"\1\2\3\4") if any(begins) else text


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
