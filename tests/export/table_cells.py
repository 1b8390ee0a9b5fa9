"""A small table with every kind of column, as the cells of a CSV file."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

N = 260


def cells(seed: int, n: int = N) -> dict[str, list[str]]:
    """Return the columns of a CSV file as text."""
    rng = np.random.default_rng(seed)
    begin = dt.datetime(2024, 3, 1)
    times = [begin + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 200_000, n)]
    amounts = np.exp(rng.normal(4, 2, n))
    ratios = [f"{r:.4f}" for r in rng.normal(size=n)]
    gaps = rng.uniform(size=n) < 0.1
    return {
        "id": [f"r{i}" for i in range(n)],
        "amount": [f"{a:,.2f}".translate(str.maketrans(",.", ".,")) + " €" for a in amounts],
        "age": [str(a) for a in rng.integers(18, 90, n)],
        "ratio": ["" if gap else r for gap, r in zip(gaps, ratios, strict=True)],
        "city": [str(c) for c in rng.choice(["Oslo", "Bern", "Rom", ""], n)],
        "many": [f"k{k}" for k in rng.geometric(0.05, n)],
        "active": [str(c) for c in rng.choice(["Yes", "no"], n)],
        "when": [f"{t:%d.%m.%Y %H:%M}" for t in times],
        "clock": [f"{t:%H:%M}" for t in times],
        "zoned": [f"{t:%Y-%m-%dT%H:%M:%S}+02:00" for t in times],
        "unit": ["7"] * n,
        "sometimes": [str(c) for c in rng.choice(["on", ""], n)],
        "never": [""] * n,
        "label": ["1" if i % 26 == 0 else "0" for i in range(n)],
    }


def odd_cells() -> dict[str, list[str]]:
    """Return rows as no training row was: missing, unknown, unreadable, far off."""
    found = cells(9, 24)
    put = {
        "amount": {0: "", 1: "n/a", 2: "abc", 3: "99.999.999,00 €", 4: "-5,00 €", 5: "12 kg"},
        "age": {0: "1e300", 1: "-1e300", 2: "inf", 3: "nan", 6: "?", 7: "1_000"},
        "ratio": {4: "-inf", 5: "77", 8: "1,5"},
        "city": {0: "Atlantis", 1: " ", 2: " Oslo", 3: "oslo"},
        "many": {0: "k9999", 1: ""},
        "active": {0: "TRUE", 1: " f ", 2: "maybe", 3: ""},
        "when": {0: "31.02.2024", 1: "01.01.1930 00:00", 2: "", 3: "soon", 4: "01.01.2099"},
        "clock": {0: "25:00", 1: "", 2: "5 pm"},
        "zoned": {0: "2024-05-01T10:00:00Z", 1: "", 2: "2024-05-01 10:00"},
        "unit": {0: "7.0", 1: "8", 2: "", 3: "7,0", 4: "07"},
        "sometimes": {0: "off", 1: "On"},
        "never": {0: "something", 1: " "},
    }
    for name, values in put.items():
        for row, text in values.items():
            found[name][row] = text
    return found


def as_table(columns: dict[str, list[str]]) -> pa.Table:
    """Return the table that a CSV file with these cells holds."""
    return pa.table({k: pa.array([v or None for v in c]) for k, c in columns.items()})


def write_csv(path, columns: dict[str, list[str]]) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [";".join(columns), *(";".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
