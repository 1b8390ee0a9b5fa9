"""Rows that the tests of the server score."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa


def rows(n: int, seed: int, strange: int = 6) -> pa.Table:
    """Return rows of text, as a CSV file has them; so many amounts are strange."""
    rng = np.random.default_rng(seed)
    amount = rng.normal(50, 5, n)
    amount[:strange] += 60
    weight = [f"{x:.3f}" if x > -1.2 else None for x in rng.normal(0, 1, n)]
    days = np.datetime64("2024-01-01T08:00:00") + rng.integers(0, 9_000_000, n)
    return pa.table(
        {
            "id": [f"r{seed}-{i}" for i in range(n)],
            "amount": [f"{x:.4f}" for x in amount],
            "weight": weight,
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
            "code": rng.integers(1, 6, n).astype(str),
            "open": rng.choice(["true", "false"], n),
            "when": [str(day).replace("T", " ") for day in days],
        }
    )


def in_types(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows of text as JSON would have them: numbers and booleans are what they are."""
    told = []
    for row in table.to_pylist():
        for name in ("amount", "weight"):
            row[name] = None if row[name] is None else float(row[name])
        row["open"] = row["open"] == "true"
        row["code"] = int(row["code"])
        told.append(row)
    return told


class Held:
    """Keeps the scoring thread busy until it is let go."""

    def __init__(self, client: Any) -> None:
        served = next(iter(client.server.slots.values())).served
        self._score, self._served = served.score, served
        self.began, self._go = threading.Event(), threading.Event()
        served.score = self._wait

    def _wait(self, requests: Any) -> Any:
        self.began.set()
        assert self._go.wait(30)
        return self._score(requests)

    def let_go(self) -> None:
        self._served.score = self._score
        self._go.set()
