"""Numbers as people write them."""

from __future__ import annotations

import math

__all__ = ["count", "duration", "number", "percent"]


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1200, "row"), count(1, "row"), count(2, "anomaly", "anomalies")
    ('1,200 rows', '1 row', '2 anomalies')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def duration(minutes: float) -> str:
    """Return a time in a unit that people can picture.

    Examples
    --------
    >>> duration(2.24), duration(90), duration(1293), duration(40_000)
    ('2.2 minutes', '90 minutes', '22 hours', '28 days')
    """
    if minutes < 120:
        return f"{minutes:.0f} minutes" if minutes >= 10 else f"{minutes:.1f} minutes"
    hours = minutes / 60
    return f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:,.0f} days"


def number(value: float, digits: int = 3) -> str:
    """Return a number with a few digits.

    Examples
    --------
    >>> number(0.012345), number(12345.6), number(float("inf"))
    ('0.0123', '12,346', 'inf')
    """
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    if abs(value) >= 10**digits and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def percent(share: float) -> str:
    r"""Return a share in percent; only all is 100 %, and only none is 0 %.

    Examples
    --------
    >>> percent(0.5), percent(0.98765), percent(0.00123), percent(0.99999), percent(1e-9)
    ('50\xa0%', '98.8\xa0%', '0.12\xa0%', '>\xa099.9\xa0%', '<\xa00.01\xa0%')
    """
    value = 100 * float(share)
    if 0 < value < 0.01:
        return "<\u00a00.01\u00a0%"
    if 99.95 <= value < 100:
        return ">\u00a099.9\u00a0%"
    text = f"{value:.2f}" if value < 0.995 else f"{value:.1f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "\u00a0%"
