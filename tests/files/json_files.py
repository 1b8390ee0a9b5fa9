"""JSON as programs log it: an object in a line, or an array of objects."""

from __future__ import annotations

import json
from typing import Any

from stating import N, amounts, bare, days, raw, words


def joined(rows: list[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def jsons() -> None:
    values, dates, countries = amounts(201), days(202), words(203, "NO SE DK")
    whole = [i % 17 for i in range(N)]
    flags = [i % 3 == 0 for i in range(N)]
    truth: dict[str, Any] = {
        "amount": {"kind": "number", "values": values},
        "items": {"kind": "number", "values": [float(n) for n in whole]},
        "at": {"kind": "timestamp", "values": [d.isoformat() for d in dates]},
        "card.country": {"kind": "category", "values": countries},
        "card.online": {"kind": "boolean", "values": ["true" if f else "false" for f in flags]},
    }
    rows = [
        f'{{"amount": {bare(v)}, "items": {n}, "at": "{d.date().isoformat()}", "card": '
        f'{{"country": "{c}", "online": {"true" if f else "false"}}}}}'
        for v, n, d, c, f in zip(values, whole, dates, countries, flags, strict=True)
    ]
    inner = ["objects inside objects as columns such as 'card.country'"]
    raw(
        "events.jsonl",
        "A log: an object in a line, with objects inside",
        joined(rows),
        rows=N,
        understood=inner,
        columns=truth,
    )
    raw(
        "events-as-array.jsonl",
        "The same in an array over many lines, as a web service answers",
        json.dumps([json.loads(row) for row in rows], indent=2).encode(),
        rows=N,
        understood=["an array of objects", *inner],
        columns=truth,
    )
    some = [None if i % 5 == 0 else v for i, v in enumerate(values)]
    gaps = [
        f'{{"country": "{c}"' + ("}" if v is None else f', "amount": {bare(v)}}}')
        for v, c in zip(some, countries, strict=True)
    ]
    raw(
        "events-with-gaps.jsonl",
        "Objects without a value do not have the key",
        joined(gaps),
        rows=N,
        columns={
            "country": {"kind": "category", "values": countries},
            "amount": {"kind": "number", "values": some},
        },
    )
    thirds = [round(1.001 + 0.257 * i, 3) for i in range(N)]
    mixed = [
        f'{{"country": "{c}", "amount": '
        + (f'"{bare(v, 3)}"' if i % 4 == 0 else f"{bare(v, 3)}")
        + "}"
        for i, (v, c) in enumerate(zip(thirds, countries, strict=True))
    ]
    raw(
        "events-mixed.jsonl",
        "Some numbers are text, with three digits behind the point; those of JSON are sure",
        joined(mixed),
        asks=["'1.001' could be 1001 or 1.001", "all 10 values with a point"],
    )
    raw(
        "events-cut.jsonl",
        "The last line was not written to its end",
        joined(rows)[:-30],
        refuses=[f"line {N}", "not JSON", "each whole in a line"],
    )
    raw(
        "events-key-twice.jsonl",
        "An object has a key twice",
        joined([*rows, '{"amount": 1, "amount": 2}']),
        refuses=[f"line {N + 1}", "'amount' is there twice"],
    )
    raw(
        "events-with-list.jsonl",
        "A value is a list",
        joined([*rows, '{"amount": [1, 2]}']),
        refuses=[f"'amount' holds a list in line {N + 1}", "--drop amount"],
    )
