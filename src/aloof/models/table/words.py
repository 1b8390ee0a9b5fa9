"""Numbers, durations and values as people write them, and the sentences they stand in."""

from __future__ import annotations

from math import floor, isfinite, log10

__all__ = ["against", "duration_words", "missing_words", "number_words", "short"]

# A value is said to be missing rarely up to this share of the training rows.
_RARELY = 0.05


def number_words(value: float, digits: int = 6) -> str:
    """Return a number with so many significant digits, as people write it.

    Examples
    --------
    >>> number_words(9120.0), number_words(0.12345678, 2), number_words(1.5e20)
    ('9,120', '0.12', '1.5e+20')
    """
    if not isfinite(value):
        return "infinity" if value > 0 else "minus infinity"
    if value == 0:
        return "0"
    size = floor(log10(abs(value)))
    if not -5 < size < 15:
        return f"{value:.{min(digits, 3)}g}"
    decimals = digits - 1 - size
    rounded = round(value, decimals)
    text = f"{rounded:,.{max(decimals, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration_words(seconds: float, digits: int = 3) -> str:
    """Return a duration as people write it.

    Examples
    --------
    >>> duration_words(45.0), duration_words(5400.0), duration_words(200_000.0)
    ('45 s', '90 min', '55.6 h')
    """
    for size, unit in ((259_200.0, "days"), (7_200.0, "h"), (120.0, "min")):
        if isfinite(seconds) and abs(seconds) >= size:
            length = {"days": 86_400.0, "h": 3_600.0, "min": 60.0}[unit]
            return f"{number_words(seconds / length, digits)} {unit}"
    return f"{number_words(seconds, digits)} s"


def against(there: str, expected: str | None, *, same: bool = False) -> str:
    """Return what is there beside what was expected; `same`: nothing else was.

    Examples
    --------
    >>> against("7", "about 3"), against("7", None)
    ('7 where about 3 was expected', '7 where none was expected')
    """
    if same:
        return f"{there} is unusual together with the rest of the row"
    return f"{there} where {expected or 'none'} was expected"


def missing_words(share: float, expected: str = "") -> str:
    """Return words about a missing value, where a share of the training rows had none.

    Examples
    --------
    >>> missing_words(0.0)
    'is missing, which it never was in training'
    """
    if share == 0:
        return "is missing, which it never was in training"
    if share <= _RARELY:
        return f"is missing, as in only {100 * share:.2g} % of the training rows"
    return f"is missing where {expected or 'a value'} was expected"


def short(value: str, most: int = 40) -> str:
    """Return a text that is not too long to be read."""
    return value if len(value) <= most else value[: most - 3] + "..."
