"""
An export to try the commands on, as a German accounting program might write it.

It has semicolons between values, Windows encoding, numbers such as 1.234,56, dates such as
31/12/2026, the company's name above the table and a total below it. In januar.csv, a few
bookings are known to be wrong ("ja"); februar.csv is the next month, saved by someone else in
another encoding. In maerz.csv, the columns have moved, one is gone, and there is a
new account.

Run it with: python examples/bookings.py [FOLDER] [--rows 3000]
"""

from __future__ import annotations

import argparse
import datetime as dt
from pathlib import Path

import numpy as np

KONTEN = {"Miete": 7.2, "Waren": 5.5, "Reisen": 4.8, "Büro": 3.6, "Löhne": 8.0}
NAMES = ["Beleg", "Buchung", "Konto", "Betrag", "Menge", "Ort", "Fehler"]


def german(value: float, places: int = 2) -> str:
    """Write a number with points between thousands and a decimal comma."""
    text = f"{value:,.{places}f}"
    return text.translate(str.maketrans(",.", ".,"))


def bookings(n: int, month: int, wrong: int, seed: int) -> list[list[str]]:
    """Return the rows of a month, of which some are wrong: ten times the amount."""
    rng = np.random.default_rng(seed)
    bad = {*rng.choice(n, wrong, replace=False).tolist()}
    rows = []
    for i in range(n):
        konto = str(rng.choice(list(KONTEN)))
        amount = float(np.exp(rng.normal(KONTEN[konto], 0.4)))
        menge = float(np.round(amount * rng.uniform(9, 11)))
        day = dt.date(2026, month, int(rng.integers(1, 29)))
        rows.append(
            [
                f"R{month}-{i:05}",
                day.strftime("%d/%m/%Y"),
                konto,
                german(amount * 10 if i in bad else amount),
                german(menge, 0),
                str(rng.choice(["Köln", "Münster", "Ulm"])),
                "ja" if i in bad else "",
            ]
        )
    return rows


def write(folder: Path, n: int) -> list[Path]:
    """Write the three files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{month}.csv" for month in ("januar", "februar", "maerz")]
    first, second = bookings(n, 1, n // 100, seed=1), bookings(n // 3, 2, n // 150, seed=2)
    above = ["Muster & Söhne GmbH", "Journal;01.01.2026 - 31.01.2026", ""]
    lines = [";".join(row) for row in (NAMES, *first)]
    text = "\r\n".join([*above, *lines, f"Summe;;;{german(12_345_678.9)}", ""])
    files[0].write_bytes(text.encode("cp1252"))
    lines = [";".join(row) for row in (NAMES, *second)]
    files[1].write_text("\n".join(lines) + "\n", encoding="utf-16")
    moved = ["Betrag", "Beleg", "Konto", "Menge", "Buchung"]
    third = [dict(zip(NAMES, row, strict=True)) for row in bookings(n // 3, 3, n // 150, 3)]
    for row in third[::20]:
        row["Konto"] = "Spenden"
    lines = [";".join(moved), *(";".join(row[name] for name in moved) for row in third)]
    files[2].write_bytes("\n".join([*lines, ""]).encode("cp1252"))
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description="Write three German exports.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("bookings"))
    parser.add_argument("--rows", type=int, default=3000)
    options = parser.parse_args()
    for path in write(options.folder, options.rows):
        print(path)


if __name__ == "__main__":
    main()
