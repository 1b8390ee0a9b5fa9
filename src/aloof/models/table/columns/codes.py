"""Columns that hold neither numbers nor text to read: codes, ids, addresses."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from aloof.models.table.columns.base import Values
from aloof.models.table.dialects.cells import MOSTLY, clean
from aloof.models.table.dialects.outlines import outlined
from aloof.written.cells import QUOTES

__all__ = ["code_of", "nature_of"]

# Longer numbers lose digits when they are calculated with.
_LONGEST = 15
# Digits of one length under these names are no amounts.
_CODE_NAME = re.compile(
    r"plz|zip|postal|post_?code|postleit|^cap$|^cp$|konto|account|blz|iban|phone|telefon|tel$"
    r"|mobil|fax|ean$|gtin|isbn|upc|sku|code|kennziffer|nummer|number|(^|[^a-z])(nr|no|num)\.?$"
    r"|matnr|imei|ssn|card|tax_?id|vin$"
)
# What nearly all values of a column are, the most special first.
_NATURES = {
    "hashes": r"^([0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128})$",
    "UUIDs": r"^\{?[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\}?$",
    "bank account numbers (IBAN)": r"^[a-z]{2}\d{2} ?[0-9a-z]{4}[0-9a-z ]{7,30}$",
    "e-mail addresses": r"^[^@\s]+@[^@\s]+\.[a-z]{2,}$",
    "web addresses": r"^(https?|ftp)://",
    "network addresses": r"^(\d{1,3}(\.\d{1,3}){3}|([0-9a-f]{2}[:-]){5}[0-9a-f]{2})(:\d+)?$",
    "phone numbers": r"^(\+|00|\(?0)[\d ()/.-]{6,}$",
}
_QUOTE = f'[{QUOTES}"]*'
_NO_PLUS = r"^\s*[^+\s]"
_FIRST = 100  # most often one of these already says it
# Ids look alike: so many different outlines at most, for so many values.
_FEW_OUTLINES = 0.05


def code_of(values: Values) -> str:
    """Return what text that could be numbers holds instead, or nothing."""
    text, numbers = values.text, values.evidence.numbers
    if _any(_not_from_one(text), rf"^\s*{_QUOTE}[+-]?0\d"):
        return "codes with leading zeros"
    if numbers.only.total() or numbers.either.total():
        return ""
    if not _any(text[:_FIRST], _NO_PLUS) and not _any(text, _NO_PLUS):
        if not _any(text, r"^.{0,7}$"):
            return "phone numbers"  # all with a plus, and long
    longest = pc.max(pc.binary_length(text)).as_py() or 0
    if longest > _LONGEST and _any(text, rf"^\s*{_QUOTE}\d{{{_LONGEST + 1},}}{_QUOTE}\s*$"):
        return "digits too long for a number"
    if _CODE_NAME.search(values.name.lower()):
        lengths = pc.unique(pc.utf8_length(clean(text.drop_null())))
        if len(lengths) == 1 and (length := lengths[0].as_py()) > 3:
            if not _any(text, r"[^\d\s]"):
                return f"codes of {length} digits"
    return ""


def nature_of(values: Values) -> str:
    """Return what text with many different values holds: codes, ids, addresses or free text."""
    text = values.text.drop_null()
    if values.evidence.numbers.is_numbers and (code := code_of(values)):
        return code
    small = pc.utf8_lower(clean(text))
    for nature, pattern in _NATURES.items():
        if pc.mean(_matches(small, pattern)).as_py() >= MOSTLY:
            return nature
    one_word = not _any(text, r"\S\s+\S")
    if one_word and values.n_distinct >= MOSTLY * len(text) and _any(text, r"\d"):
        n_outlines = pc.count_distinct(outlined(pc.utf8_lower(text))).as_py()
        if n_outlines <= max(3, _FEW_OUTLINES * values.n_distinct):
            return "ids"
    if one_word and pc.mean(_matches(text, r"\d")).as_py() >= MOSTLY:
        return "codes"
    return "free text"


def _not_from_one(text: pa.Array) -> pa.Array:
    """Return the values that do not begin with 1 to 9: patterns take longer to look at all."""
    from_one = pc.and_(pc.greater_equal(text, "1"), pc.less(text, ":"))
    return text.filter(pc.invert(from_one))


def _any(text: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def _matches(text: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(text, pattern).cast(pa.int8())
