"""Values that have a type of their own beside text: cells of workbooks, values in JSON."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["SIGN_IN_NUMBER", "cell_text"]

SIGN_IN_NUMBER = re.compile(r"\d[.,]\d")
# A decimal sign that has one meaning, for numbers beside text with commas and points.
_ARABIC = "\u066b"


def cell_text(cell: Any, *, sure: bool = False) -> str | None:
    """Return a value as text; `sure`: numbers with a sign that can only be a decimal one.

    Examples
    --------
    >>> cell_text(2.0), cell_text(1.234), cell_text(True), cell_text(None)
    ('2', '1.234', 'true', None)
    """
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        text = str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
        return text.replace(".", _ARABIC) if sure else text
    return str(cell)
