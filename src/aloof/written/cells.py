"""Text as cells hold it: one kind of space, minus and digit, and words that mean nothing."""

from __future__ import annotations

import re
import unicodedata

__all__ = [
    "FOREIGN",
    "MISSING_WORDS",
    "PLAIN_SIGNS",
    "QUOTED",
    "QUOTES",
    "TRANSLATED",
    "clean_text",
    "means_nothing",
]

# Text that stands for "nothing here" in a column of numbers or times. In a column of
# categories only empty text is missing: there "NA" may be Namibia.
MISSING_WORDS = (
    *("", "-", "--", "---", "?", ".", "..", "...", "n/a", "n.a.", "na", "nan", "nat", "nil"),
    *("none", "null", "(null)", "\\n", "missing", "unknown", "(blank)", "<na>", "#n/a", "#na"),
    *("#nv", "#null!", "#value!", "#wert!", "#ref!", "#bezug!", "#name?", "#div/0!", "#num!"),
    *("#zahl!", "#valeur!", "k.a.", "k. a.", "n.v.", "n.d.", "s/d"),
)
# What looks like a space, a minus or an apostrophe, and what cannot be seen at all.
_SPACE = "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
_MINUS = "[\u2010-\u2015\u2212\ufe58\ufe63\uff0d]"
_APOSTROPHE = "[\u2018\u2019\u02bc\u00b4\uff07\u066c]"
_UNSEEN = "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
# What a value begins with that is quoted: ="12", '12, =12 and quotation marks that no CSV has.
QUOTES = "='\u201c\u201e\u00ab"
QUOTED = (
    "^(?:=\"(.*)\"|'([^']*)|[\u201c\u201e\u00ab](.*)[\u201c\u201d\u00bb]|=([-+]?[\\d.,]+))$"
)
PLAIN_SIGNS = ((_UNSEEN, ""), (_SPACE, " "), (_MINUS, "-"), (_APOSTROPHE, "'"))
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
TRANSLATED: dict[int, str] = {code: str(digit) for code, digit in _DIGITS.items()}
TRANSLATED |= {ord("．"): ".", ord("，"): ",", ord("％"): "%", ord("："): ":", ord("／"): "/"}
FOREIGN = "[" + "".join(map(chr, TRANSLATED)) + "]"
_NOTHING = frozenset(MISSING_WORDS)
_PATTERNS = tuple((re.compile(pattern), plain) for pattern, plain in PLAIN_SIGNS)
_AROUND = re.compile(QUOTED, re.ASCII)


def clean_text(text: str) -> str:
    """Return text without space and quotation marks, and with the signs of a keyboard.

    Examples
    --------
    >>> clean_text(' ="12" '), clean_text("\u22125\u00a0000")
    ('12', '-5 000')
    """
    text = text.strip()
    if text[:1] in QUOTES and text:
        text = _AROUND.sub(r"\1\2\3\4", text)
    if text.isascii():
        return text
    for pattern, plain in _PATTERNS:
        text = pattern.sub(plain, text)
    return text.translate(TRANSLATED).strip()


def means_nothing(text: str) -> bool:
    """Say whether clean text is nothing, or a word for nothing."""
    return text.lower() in _NOTHING
