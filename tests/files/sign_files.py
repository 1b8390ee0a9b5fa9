"""What points, commas, signs and units in numbers mean, in doubt and beyond it."""

from __future__ import annotations

from stating import (
    amounts,
    bare,
    de,
    integers,
    labels,
    left_out,
    numbers,
    signed,
    table,
    us,
    words,
)


def signs() -> None:
    table(
        "three-decimals.csv",
        "English measures with three decimals; another column leaves no doubt",
        {
            "mass": numbers([v / 1000 for v in integers(42, 1000, 9000)], lambda v: bare(v, 3)),
            "ratio": numbers([v / 100 for v in integers(43, 1, 99)], bare),
        },
    )
    table(
        "three-decimals-alone.csv",
        "The same without the other column",
        {"mass": numbers([v / 1000 for v in integers(42, 1000, 9000)], lambda v: bare(v, 3))},
        asks=["'mass'", "--thousands .", "--decimal ."],
    )
    table(
        "three-decimals-large.csv",
        "Three decimals, and numbers of a thousand and more that have no other sign",
        {
            "mass": numbers(
                [v / 1000 for v in integers(44, 1000, 9_000_000)], lambda v: bare(v, 3)
            )
        },
    )
    table(
        "whole-and-decimals.csv",
        "1.234 beside 12345: where thousands have no sign, the point is a decimal one",
        {
            "level": numbers(
                [
                    *integers(45, 10_000, 99_999, 20),
                    *(v / 1000 for v in integers(46, 1001, 9000, 20)),
                ],
                lambda v: f"{v:.0f}" if v >= 1000 else bare(v, 3),
                said="without a separator",
            )
        },
    )
    table(
        "en-thousands.csv",
        "English thousands, and decimals in another column",
        {
            "Visits": numbers(integers(47, 1000, 99_000), lambda v: us(v, 0)),
            "Rate": numbers([v / 10 for v in integers(48, 0, 99)], lambda v: bare(v, 1)),
        },
    )
    table(
        "en-thousands-alone.csv",
        "English thousands alone",
        {"Visits": numbers(integers(47, 1000, 99_000), lambda v: us(v, 0))},
        asks=["'Visits'", "--thousands ,", "--decimal ,"],
    )
    half = [bare(v) if i % 2 else bare(v, 2, ",") for i, v in enumerate(amounts(49))]
    table(
        "mixed-signs.csv",
        "Half of the numbers have a decimal point, half a comma",
        {"Wert": (half, {})},
        delimiter=";",
        asks=["'Wert'", "mixes", "--decimal Wert=,"],
    )
    table(
        "wrong-sign-said.csv",
        "The user says comma, and the values say point",
        {"Wert": numbers(amounts(50), bare)},
        delimiter=";",
        options={"decimal": ","},
        refuses=["'Wert'", "can only be read with '.'", "--decimal Wert=."],
    )
    table(
        "sign-by-column.csv",
        "Two columns from two programs, and the user says which is which",
        {
            "Alt": numbers(integers(51, 1000, 9000), lambda v: de(v, 0)),
            "Neu": numbers(amounts(52), bare),
        },
        delimiter=";",
        options={"thousands": {"Alt": "."}},
    )
    table(
        "scientific-comma.csv",
        "Powers of ten with a decimal comma",
        {
            "Wert": numbers(
                [float(f"{v:.3e}") for v in signed(53)],
                lambda v: f"{v:.3E}".replace(".", ","),
            )
        },
        delimiter=";",
    )
    table(
        "scientific.csv",
        "Powers of ten as programs write them",
        {"value": numbers([float(f"{v:.4e}") for v in signed(54)], lambda v: f"{v:.4e}")},
    )
    table(
        "signs-of-all-sorts.csv",
        "A typographic minus, plus signs, and a space behind the minus",
        {
            "change": numbers(
                signed(55),
                lambda v: (
                    f"\u2212{bare(-v)}"
                    if v < -50
                    else f"- {bare(-v)}"
                    if v < 0
                    else f"+{bare(v)}"
                ),
            )
        },
    )
    table(
        "prices-with-a-dash.csv",
        "12,- is 12,00",
        {
            "Preis": numbers(
                [float(v) if i % 3 else v / 10 for i, v in enumerate(integers(56, 10, 900))],
                lambda v: f"{v:.0f},-" if v == int(v) else bare(v, 2, ","),
            )
        },
        delimiter=";",
    )
    table(
        "percent.csv",
        "Percent with a decimal comma: 12,5 % is 12.5",
        {
            "Anteil": numbers(
                [v / 10 for v in integers(57, 0, 999)],
                lambda v: bare(v, 1, ",") + " %",
                unit="%",
            )
        },
        delimiter=";",
    )
    mixed = [bare(v, 1) + ("%" if i % 2 else "") for i, v in enumerate(amounts(58))]
    table(
        "percent-and-bare.csv",
        "Half of the shares have a percent sign: they are no one number",
        {
            "share": left_out(mixed, "numbers with % (20) and without (20)"),
            "n": numbers(integers(59, 0, 50), lambda v: f"{v:.0f}"),
        },
        warns=["'share'"],
    )
    table(
        "units.csv",
        "One unit in each column",
        {
            "weight": numbers(amounts(60), lambda v: f"{bare(v)} kg", unit="kg"),
            "latency": numbers(integers(61, 1, 900), lambda v: f"{v:.0f}ms", unit="ms"),
            "temp": numbers(
                [v / 10 for v in integers(62, -90, 400)], lambda v: f"{v:.1f} °C", unit="°C"
            ),
            "size": numbers(integers(63, 1, 500), lambda v: f"{v:.0f} MB", unit="MB"),
        },
    )
    kilos = [value / 100 for value in integers(64, 5, 300)]
    grams = [(v, "kg") if v >= 1 else (v * 1000, "g") for v in kilos]
    table(
        "units-that-convert.csv",
        "Grams and kilograms: all become the more frequent",
        {
            "weight": (
                [f"{v:.2f} {unit}" if unit == "kg" else f"{v:.0f} {unit}" for v, unit in grams],
                {
                    "kind": "number",
                    "values": [v if unit == "kg" else v / 1000 for v, unit in grams],
                    "unit": "kg",
                },
            )
        },
    )
    table(
        "currencies-mixed.csv",
        "Euros and dollars: no one number",
        {
            "price": left_out(
                [f"{'€' if i % 2 else '$'}{us(v)}" for i, v in enumerate(amounts(65))],
                "different units: ",
            ),
            "n": numbers(integers(66, 0, 50), lambda v: f"{v:.0f}"),
        },
    )
    table(
        "millions.csv",
        "Millions of euros in words",
        {
            "Umsatz": numbers(
                [v / 10 for v in integers(67, 5, 999)],
                lambda v: bare(v, 1, ",") + " Mio. €",
                unit="Mio EUR",
            )
        },
        delimiter=";",
    )
    values = amounts(68)
    gaps = ["#N/A", "k.A.", "", "n/a", "#DIV/0!", "-", "NULL", "—"]
    table(
        "gaps.csv",
        "Words that mean nothing is here",
        {
            "Wert": (
                [gaps[i // 5] if i % 5 == 0 else de(v) for i, v in enumerate(values)],
                {
                    "kind": "number",
                    "values": [None if i % 5 == 0 else v for i, v in enumerate(values)],
                },
            ),
            "Art": labels(words(116, "a b c")),
        },
        delimiter=";",
    )
    table(
        "said-number-that-is-none.csv",
        "The user says number, and the values are words",
        {"code": labels(words(69, "red green blue")), "n": numbers(integers(70, 0, 9), bare)},
        options={"kinds": {"code": "number"}},
        refuses=["'code' cannot be read as numbers", "in line 2"],
    )
    table(
        "some-words-between.csv",
        "A few words between numbers are counted, and said",
        {
            "x": (
                ["see note" if i == 7 else bare(v) for i, v in enumerate(values)],
                {
                    "kind": "number",
                    "values": [None if i == 7 else v for i, v in enumerate(values)],
                },
            )
        },
        warns=["1 value cannot be read as numbers ('see note')"],
    )
