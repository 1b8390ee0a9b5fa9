"""
A table of payments to try the commands on.

It has numbers, categories, gaps and a time, and one payment in a hundred is labelled as fraud.
Two kinds of fraud are known and labelled in train.csv: *stolen* cards (large amounts at night)
and *testing* of cards (many small payments). The new payments in new.parquet hold two more
kinds that nobody has seen: *laundering* (a faraway country, with another country's currency)
and *broken* terminals (the fee does not match the amount). There, every fraud is labelled.

Run it with: python examples/payments.py [FOLDER] [--rows 5000]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

COUNTRIES = ["NO", "SE", "DK", "DE", "GB", "US", "PL", "NL"]
CURRENCY = {"NO": "NOK", "SE": "SEK", "DK": "DKK", "DE": "EUR", "GB": "GBP", "US": "USD"}
CURRENCY |= {"PL": "PLN", "NL": "EUR"}
SHOPS = ["grocery", "travel", "fuel", "clothes", "games", "pharmacy"]
DAY = 86_400


def payments(n: int, kinds: tuple[str, ...], share: float, first: int, seed: int) -> pa.Table:
    """Return `n` payments from number `first` on; a share of them is fraud of these kinds."""
    rng = np.random.default_rng(seed)
    kind = np.full(n, "", dtype=object)
    fraud = rng.choice(n, round(share * n), replace=False)
    kind[fraud] = [kinds[i % len(kinds)] for i in range(len(fraud))]

    shop = rng.choice(SHOPS, n, p=[0.4, 0.08, 0.17, 0.15, 0.1, 0.1])
    country = rng.choice(COUNTRIES, n, p=[0.45, 0.15, 0.1, 0.1, 0.08, 0.06, 0.03, 0.03])
    size = np.select([shop == "travel", shop == "fuel"], [6.0, 4.2], 3.4)
    amount = np.exp(rng.normal(size, 0.6))
    online = rng.random(n) < np.where(np.isin(shop, ["travel", "games"]), 0.8, 0.1)
    recent = rng.poisson(1.5, n).astype(float)
    age = np.clip(rng.normal(45, 16, n), 18, 95).round()
    clock = np.clip(rng.normal(14.5, 3.2, n), 6.5, 23.5)

    stolen, testing = kind == "stolen", kind == "testing"
    amount[stolen] *= rng.uniform(8, 20, stolen.sum())
    clock[stolen] = rng.uniform(1, 4.5, stolen.sum())
    amount[testing] = rng.uniform(0.5, 1.5, testing.sum())
    recent[testing] = rng.integers(15, 40, testing.sum())
    online[testing] = True
    fee = 0.25 + 0.011 * amount * np.exp(rng.normal(0, 0.05, n))
    broken = kind == "broken"
    fee[broken] *= rng.choice([0.05, 12.0], broken.sum())
    currency = np.array([CURRENCY[name] for name in country], dtype=object)
    laundering = kind == "laundering"
    country = country.astype(object)
    country[laundering] = rng.choice(["KY", "VG", "PA"], laundering.sum())
    currency[laundering] = "PLN"

    day = np.sort(rng.integers(0, 90, n)) + first // 60
    seconds = 1_704_067_200 + day * DAY + (clock * 3600).astype(np.int64)
    return pa.table(
        {
            "payment": [f"P{number:07d}" for number in range(first, first + n)],
            "time": pa.array(seconds, pa.timestamp("s")),
            "amount": amount.round(2),
            "fee": fee.round(3),
            "currency": currency,
            "country": country,
            "shop": shop,
            "online": online,
            "payments_last_hour": recent,
            "age": pa.array(age, mask=rng.random(n) < 0.15),
            "terminal": pa.array(
                rng.choice(["T1", "T2", "T3"], n), mask=online | (rng.random(n) < 0.02)
            ),
            "fraud": pa.array((kind != "").astype(np.int8)),
        }
    )


def write(folder: Path, rows: int = 5_000, seed: int = 0) -> tuple[Path, Path]:
    """Write train.csv, and new.parquet with half as many rows."""
    folder.mkdir(parents=True, exist_ok=True)
    train, new = folder / "train.csv", folder / "new.parquet"
    known = payments(rows, ("stolen", "testing"), 0.01, 1, seed)
    # Somebody looked at the labelled frauds, and at none of the other payments.
    labels = pa.array([1 if label else None for label in known["fraud"].to_pylist()])
    known = known.set_column(known.num_columns - 1, "fraud", labels)
    pa_csv.write_csv(known, train)
    every = ("stolen", "testing", "laundering", "broken")
    pq.write_table(payments(rows // 2, every, 0.02, rows + 1, seed + 1), new)
    return train, new


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("payments"))
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for path in write(options.folder, options.rows, options.seed):
        print(path)
