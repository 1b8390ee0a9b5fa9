"""Values that look like numbers or dates and are codes."""

from __future__ import annotations

import random

from stating import N, integers, labels, left_out, numbers, table, words


def codes() -> None:
    rng = random.Random(98)
    count = numbers(integers(99, 0, 50), lambda v: f"{v:.0f}")

    def digits(n: int) -> str:
        return str(rng.randrange(10 ** (n - 1), 10**n))

    table(
        "codes.csv",
        "Codes that look like numbers, and are called what they are",
        {
            "plz": left_out(
                [f"{rng.randrange(1000, 99999):05}" for _ in range(N)], "leading zeros"
            ),
            "kontonummer": left_out([digits(8) for _ in range(N)], "codes of 8 digits"),
            "iban": left_out(
                [
                    f"DE{digits(2)} {digits(4)} {digits(4)} {digits(4)} {digits(4)} {digits(2)}"
                    for _ in range(N)
                ],
                "IBAN",
            ),
            "telefon": left_out([f"+49 30 {digits(7)}" for _ in range(N)], "phone numbers"),
            "karte": left_out([digits(16) for _ in range(N)], "digits too long"),
            "beleg": left_out([f"RE-2024-{digits(6)}" for _ in range(N)], "ids"),
            "n": count,
        },
        delimiter=";",
    )
    table(
        "addresses.csv",
        "Addresses of people and machines",
        {
            "mail": left_out([f"user{i}@example.org" for i in range(N)], "e-mail"),
            "url": left_out(
                [f"https://example.org/{digits(5)}" for _ in range(N)], "web addresses"
            ),
            "uuid": left_out(
                [
                    f"{rng.getrandbits(32):08x}-1234-4abc-8def-{rng.getrandbits(48):012x}"
                    for _ in range(N)
                ],
                "UUIDs",
            ),
            "note": left_out(
                [
                    " ".join(
                        rng.choice("door pump valve opened closed again twice".split())
                        for _ in range(6)
                    )
                    for _ in range(N)
                ],
                "free text",
            ),
            "always": (["EUR"] * N, {"kind": "constant", "values": ["EUR"] * N}),
            "n": count,
        },
    )
    table(
        "few-codes.csv",
        "A few codes with leading zeros are categories",
        {"branch": labels(words(100, "001 002 010")), "n": count},
    )
    table(
        "versions.csv",
        "Versions are neither dates nor numbers",
        {"version": labels(words(101, "1.10.24 2.3.11 1.9.2 2.0.0")), "n": count},
    )
