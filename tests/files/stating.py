"""What a file of this folder holds, and what must be understood of it.

Nothing here comes from aloof: numbers and dates are written by hand, so the truth is known.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from typing import Any

N = 40  # rows
FILES: dict[str, tuple[bytes | None, dict[str, Any]]] = {}
SEMICOLONS = {"delimiter": ";", "encoding": "cp1252", "end": "\r\n"}
ENGLISH = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"


# Numbers and dates, as people write them.


def grouped(value: float, places: int, thousands: str, decimal: str, sizes: str = "3") -> str:
    sign = "-" if value < 0 else ""
    whole, _, part = f"{abs(value):.{places}f}".partition(".")
    groups, size = [], 3
    while whole:
        groups.append(whole[-size:])
        whole = whole[:-size]
        size = 2 if sizes == "indian" else 3
    return sign + thousands.join(reversed(groups)) + (decimal + part if part else "")


def de(value: float, places: int = 2) -> str:
    return grouped(value, places, ".", ",")


def us(value: float, places: int = 2) -> str:
    return grouped(value, places, ",", ".")


def bare(value: float, places: int = 2, decimal: str = ".") -> str:
    return f"{value:.{places}f}".replace(".", decimal)


def dated(pattern: str) -> Callable[[dt.datetime], str]:
    return lambda day: day.strftime(pattern)


def named(pattern: str, months: str) -> Callable[[dt.datetime], str]:
    return lambda day: day.strftime(pattern.replace("MONTH", months.split()[day.month - 1]))


# The truth.


def amounts(seed: int, low: float = 3, spread: float = 2.2, n: int = N) -> list[float]:
    rng = random.Random(seed)
    return [round(rng.lognormvariate(low, spread) + 0.01, 2) for _ in range(n)]


def signed(seed: int) -> list[float]:
    rng = random.Random(seed)
    return [value * rng.choice([1, 1, -1]) for value in amounts(seed)]


def integers(seed: int, low: int, high: int, n: int = N) -> list[float]:
    rng = random.Random(seed)
    return [float(rng.randrange(low, high)) for _ in range(n)]


def days(seed: int, last: int = 365, n: int = N) -> list[dt.datetime]:
    rng = random.Random(seed)
    start = dt.datetime(2024, 1, 1)
    return [start + dt.timedelta(days=rng.randrange(last)) for _ in range(n)]


def early_days(seed: int, n: int = N) -> list[dt.datetime]:
    """None of them is above the 12th."""
    rng = random.Random(seed)
    return [dt.datetime(2024, rng.randint(1, 12), rng.randint(1, 12)) for _ in range(n)]


def moments(seed: int, n: int = N) -> list[dt.datetime]:
    rng = random.Random(seed)
    return [day + dt.timedelta(seconds=rng.randrange(86_400)) for day in days(seed, n=n)]


def words(seed: int, choice: str, n: int = N) -> list[str]:
    rng = random.Random(seed)
    return [rng.choice(choice.split()) for _ in range(n)]


# Columns: name -> (written, statement).


def numbers(values: list[float], write: Callable[[float], str], **more: Any) -> Any:
    return [write(value) for value in values], {"kind": "number", "values": values, **more}


def times(values: list[dt.datetime], write: Callable[[dt.datetime], str], **more: Any) -> Any:
    truth = [value.isoformat() for value in values]
    return [write(value) for value in values], {"kind": "timestamp", "values": truth, **more}


def labels(values: list[str], **more: Any) -> Any:
    return values, {"kind": "category", "values": values, **more}


def cell(text: str, delimiter: str) -> str:
    if delimiter in text or '"' in text or "\n" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def lines(columns: dict[str, Any], delimiter: str) -> list[str]:
    rows = [list(columns)]
    rows += [
        list(row) for row in zip(*(written for written, _ in columns.values()), strict=True)
    ]
    return [delimiter.join(cell(value, delimiter) for value in row) for row in rows]


def table(
    name: str,
    says: str,
    columns: dict[str, Any],
    *,
    delimiter: str = ",",
    encoding: str = "utf8",
    above: list[str] | None = None,
    below: list[str] | None = None,
    end: str = "\n",
    pack: Callable[[bytes], bytes] = bytes,
    **more: Any,
) -> None:
    text = end.join([*(above or []), *lines(columns, delimiter), *(below or [])]) + end
    statement: dict[str, Any] = {"says": says, **more}
    if not {"asks", "refuses"} & set(more):
        kinds = {column: said for column, (_, said) in columns.items()}
        statement["columns"] = {c: said for c, said in kinds.items() if "left_out" not in said}
        left = {c: said["left_out"] for c, said in kinds.items() if "left_out" in said}
        statement |= {"left_out": left} if left else {}
        statement["rows"] = len(next(iter(columns.values()))[0])
    FILES[name] = (pack(text.encode(encoding)), statement)


def raw(name: str, says: str, content: bytes, **more: Any) -> None:
    FILES[name] = (content, {"says": says, **more})


def book(name: str, says: str, cells: dict[str, list[list[Any]]], **more: Any) -> None:
    """Make a workbook: the test does, from cells; {"date": ...} is a real date."""
    FILES[name] = (None, {"says": says, "cells": cells, **more})


def left_out(values: list[str], called: str) -> Any:
    return values, {"left_out": called}
