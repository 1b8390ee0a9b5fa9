"""Makes the files of this folder, each with a statement of what must be understood.

``python tests/files/make.py`` writes ``NAME`` and ``NAME.json`` beside each other. A statement
holds the values that were written, so that reading them back can be compared with the truth.
Nothing here comes from aloof: numbers and dates are written by hand.

In a statement:

- ``says``: what the file is, in a sentence
- ``options``: what the user says, as for `aloof.fit`
- ``understood``: parts of what must be said about the file
- ``columns``: kind, values (null for gaps), unit, and parts of what must be said about each
- ``left_out``: what columns that are not used are called
- ``warns``: parts of warnings
- ``asks``: parts of the question that must be asked
- ``refuses``: parts of the error
- ``cells``: of a workbook, which the test makes
"""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import json
import lzma
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
N = 40
FILES: dict[str, tuple[bytes | None, dict[str, Any]]] = {}

NARROW, NO_BREAK, THIN = "\u202f", "\u00a0", "\u2009"
GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
SPANISH = "ene feb mar abr may jun jul ago sep oct nov dic"
ITALIAN = "gen feb mar apr mag giu lug ago set ott nov dic"
PORTUGUESE = (
    "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro"
)
FRENCH = "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."
POLISH = (
    "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października "
    "listopada grudnia"
)
SWEDISH = "jan feb mars april maj juni juli aug sept okt nov dec"
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


SEMICOLONS = {"delimiter": ";", "encoding": "cp1252", "end": "\r\n"}


def locales() -> None:
    table(
        "de-export.csv",
        "A German export: semicolons, Windows, decimal comma, dd/mm/yyyy",
        {
            "Betrag": numbers(signed(1), de, said="decimal comma"),
            "Menge": numbers(
                integers(2, 1000, 9000), lambda v: de(v, 0), said="because column"
            ),
            "Preis": numbers(amounts(3), lambda v: de(v) + " €", unit="EUR"),
            "Datum": times(days(4), dated("%d/%m/%Y"), said="day above 12"),
            "Region": labels(words(5, "Süd Nord Köln")),
        },
        **SEMICOLONS,
        understood=["separated by semicolons", "written in cp1252"],
    )
    table(
        "de-integers.csv",
        "German integers with a point between thousands, and nothing that says so",
        {"Menge": numbers(integers(6, 1000, 900_000), lambda v: de(v, 0))},
        **SEMICOLONS,
        asks=["'Menge'", "--thousands .", "--decimal ."],
    )
    table(
        "de-integers-said.csv",
        "The same, and the user says what the point is",
        {"Menge": numbers(integers(6, 1000, 900_000), lambda v: de(v, 0), said="as you said")},
        **SEMICOLONS,
        options={"thousands": "."},
    )
    table(
        "de-decimals-said.csv",
        "Numbers of the same look, and the user says the opposite",
        {
            "Menge": numbers(
                [value / 1000 for value in integers(6, 1000, 900_000)],
                lambda v: bare(v, 3),
                said="as you said",
            )
        },
        **SEMICOLONS,
        options={"decimal": "."},
    )
    table(
        "de-millions.csv",
        "German integers, some of a million and more: these can be read in one way only",
        {"Umsatz": numbers(integers(7, 1000, 5_000_000), lambda v: de(v, 0))},
        **SEMICOLONS,
    )
    table(
        "us-export.csv",
        "An American export: dollars, brackets for negatives, month first",
        {
            "Amount": numbers(
                signed(8),
                lambda v: f"(${us(-v)})" if v < 0 else f"${us(v)}",
                unit="USD",
            ),
            "Posted": times(days(9), dated("%m/%d/%Y"), said="month first"),
            "State": labels(words(10, "CA NY TX")),
        },
        encoding="utf-8-sig",
    )
    table(
        "us-excel.csv",
        "Excel in America: dates without zeros and years of two digits",
        {
            "Opened": times(
                days(11), lambda d: f"{d.month}/{d.day}/{d.year % 100:02}", said="month first"
            ),
            "Cost": numbers(amounts(12), lambda v: f"${us(v)}", unit="USD"),
        },
        end="\r\n",
    )
    table(
        "uk-statement.csv",
        "A British bank: pounds, day first",
        {
            "Date": times(days(13), dated("%d/%m/%Y"), said="day first"),
            "Amount": numbers(signed(14), lambda v: f"{'-' if v < 0 else ''}£{us(abs(v))}"),
        },
    )
    for name, space, encoding in (
        ("fr-windows.csv", NO_BREAK, "cp1252"),
        ("fr-narrow.csv", NARROW, "utf8"),
        ("fr-thin.csv", THIN, "utf8"),
        ("fr-space.csv", " ", "utf8"),
    ):
        table(
            name,
            f"French numbers with the space U+{ord(space):04X} between thousands",
            {
                "Montant": numbers(
                    signed(15), lambda v, s=space: grouped(v, 2, s, ",") + s + "€", unit="EUR"
                ),
                "Opération": times(days(16), named("%d MONTH %Y", FRENCH)),
            },
            delimiter=";",
            encoding=encoding,
        )
    for name, mark in (("ch-apostrophe.csv", "'"), ("ch-typographic.csv", "\u2019")):
        table(
            name,
            "Swiss francs with an apostrophe between thousands",
            {
                "Betrag": numbers(
                    amounts(17), lambda v, m=mark: "CHF " + grouped(v, 2, m, "."), unit="CHF"
                ),
                "Valuta": times(days(18), dated("%d.%m.%Y")),
            },
            delimiter=";",
        )
    table(
        "se-kronor.csv",
        "Swedish crowns behind the number, ISO dates",
        {
            "Belopp": numbers(signed(19), lambda v: grouped(v, 2, NO_BREAK, ",") + " kr"),
            "Datum": times(days(20), dated("%Y-%m-%d")),
        },
        delimiter=";",
    )
    table(
        "pl-zloty.csv",
        "Polish zloty in cp1250, which the user names",
        {
            "Kwota": numbers(
                amounts(21), lambda v: grouped(v, 2, NO_BREAK, ",") + " zł", unit="PLN"
            ),
            "Data": times(days(22), named("%d MONTH %Y", POLISH)),
        },
        delimiter=";",
        encoding="cp1250",
        options={"encoding": "cp1250"},
        understood=["written in cp1250"],
    )
    table(
        "in-lakh.csv",
        "Indian rupees in groups of two",
        {
            "Amount": numbers(
                amounts(23, 11), lambda v: "₹" + grouped(v, 2, ",", ".", "indian"), unit="INR"
            ),
            "Date": times(days(24), dated("%d-%m-%Y")),
        },
    )
    table(
        "br-reais.csv",
        "Brazilian reais, months by name",
        {
            "Valor": numbers(signed(25), lambda v: f"R$ {de(v)}", unit="BRL"),
            "Data": times(days(26), named("%d de MONTH de %Y", PORTUGUESE)),
        },
        delimiter=";",
    )
    table(
        "jp-yen.csv",
        "Japanese yen in Shift-JIS, which the user names",
        {
            "金額": numbers(
                integers(27, 100, 9_000_000), lambda v: us(v, 0) + "円", unit="JPY"
            ),
            "日付": times(days(28), dated("%Y/%m/%d")),
        },
        encoding="shift-jis",
        options={"encoding": "shift-jis"},
    )
    arabic = [*map(chr, range(0x660, 0x66A)), "\u066b", "\u066c"]
    digits = str.maketrans("0123456789.,", "".join(arabic))
    table(
        "ar-digits.csv",
        "Arabic digits and signs",
        {"المبلغ": numbers(amounts(29), lambda v: us(v).translate(digits))},
    )
    table(
        "nl-euro.csv",
        "Dutch euros before the number, dates without zeros",
        {
            "Bedrag": numbers(amounts(30), lambda v: f"€ {de(v)}", unit="EUR"),
            "Datum": times(days(31), lambda d: f"{d.day}-{d.month}-{d.year}", said="day first"),
        },
        delimiter=";",
    )
    table(
        "es-meses.csv",
        "Spanish months",
        {
            "Importe": numbers(signed(32), de),
            "Fecha": times(days(33), named("%d MONTH %Y", SPANISH)),
        },
        delimiter=";",
    )
    table(
        "it-mesi.csv",
        "Italian months with dashes",
        {
            "Importo": numbers(signed(34), lambda v: bare(v, 2, ",")),
            "Data": times(days(35), named("%d-MONTH-%Y", ITALIAN)),
        },
        delimiter=";",
    )
    table(
        "de-monate.csv",
        "German months and hours, integers with a minus behind",
        {
            "Wann": times(
                [t.replace(second=0) for t in moments(36)], named("%d. MONTH %Y %H:%M", GERMAN)
            ),
            "Saldo": numbers(signed(37), lambda v: de(abs(v)) + ("-" if v < 0 else "")),
        },
        delimiter=";",
    )
    table(
        "se-month-names.tsv",
        "Swedish months in a TSV file",
        {
            "När": times(days(38), named("%d MONTH %Y", SWEDISH)),
            "Antal": numbers(integers(39, 0, 90), lambda v: f"{v:.0f}"),
        },
        delimiter="\t",
    )
    table(
        "en-month-names.csv",
        "English months with the day behind, twelve hours",
        {
            "When": times(
                [t.replace(second=0) for t in moments(40)],
                lambda t: named("MONTH %d, %Y ", ENGLISH)(t) + t.strftime("%I:%M %p"),
            ),
            "Load": numbers(amounts(41), bare),
        },
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


def calendars() -> None:
    count = numbers(integers(71, 0, 50), lambda v: f"{v:.0f}")
    table(
        "days-below-13.csv",
        "No day above 12, and nothing that says what comes first",
        {"date": times(early_days(72), dated("%d/%m/%Y")), "n": count},
        asks=["'date'", "--day-first", "--month-first"],
    )
    table(
        "days-below-13-day-first.csv",
        "The same, and the user says day first",
        {"date": times(early_days(72), dated("%d/%m/%Y"), said="as you said"), "n": count},
        options={"day_first": True},
    )
    table(
        "days-below-13-month-first.csv",
        "The same look, and the user says month first",
        {"date": times(early_days(72), dated("%m/%d/%Y"), said="as you said"), "n": count},
        options={"day_first": False},
    )
    table(
        "days-below-13-other-column.csv",
        "Another column of dates tells",
        {
            "due": times(early_days(73), dated("%d/%m/%Y"), said="because column 'paid'"),
            "paid": times(days(74), dated("%d/%m/%Y"), said="day above 12"),
        },
    )
    table(
        "days-below-13-decimal-comma.csv",
        "Where decimals stand behind a comma, days come first",
        {
            "Datum": times(early_days(75), dated("%d/%m/%Y"), said="decimal comma"),
            "Betrag": numbers(amounts(76), de),
        },
        delimiter=";",
    )
    table(
        "days-mixed.csv",
        "Half with the day first, half with the month",
        {
            "date": (
                [
                    d.strftime("%d/%m/%Y" if i % 2 else "%m/%d/%Y")
                    for i, d in enumerate(days(77))
                ],
                {},
            ),
            "n": count,
        },
        asks=["'date' mixes", "--drop date"],
    )
    table(
        "day-first-wrongly-said.csv",
        "The user says day first, and the values say month",
        {"date": times(days(78), dated("%m/%d/%Y")), "n": count},
        options={"day_first": True},
        refuses=["'date' cannot have the day first"],
    )
    table(
        "short-years.csv",
        "Years of two digits, with points: from 69 on they are of the last century",
        {
            "Datum": times(
                [d.replace(year=1969 + i * 2) for i, d in enumerate(days(79))],
                dated("%d.%m.%y"),
            ),
            "n": count,
        },
        delimiter=";",
    )
    table(
        "short-years-with-dashes.csv",
        "24-01-15 may begin with the year or the day",
        {"date": times(days(80), dated("%y-%m-%d")), "n": count},
        asks=["'date'", "--date-format date=%d-%m-%y"],
    )
    table(
        "short-years-with-dashes-said.csv",
        "The same, and the user says how it is written",
        {"date": times(days(80), dated("%y-%m-%d")), "n": count},
        options={"date_formats": {"date": "%y-%m-%d"}},
    )
    table(
        "format-of-a-spreadsheet.csv",
        "The user says how dates are written as a spreadsheet does",
        {
            "at": times([t.replace(second=0) for t in moments(81)], dated("%d-%m-%y %H:%M")),
            "n": count,
        },
        options={"date_formats": {"at": "DD-MM-YY HH:MM"}},
    )
    table(
        "epoch-seconds.csv",
        "Seconds since 1970 under a name that says so",
        {
            "timestamp": times(
                moments(82),
                lambda t: f"{t.replace(tzinfo=dt.UTC).timestamp():.0f}",
                said="seconds since 1970",
            ),
            "n": count,
        },
    )
    table(
        "epoch-milliseconds.csv",
        "Milliseconds since 1970",
        {
            "created_at": times(
                moments(83),
                lambda t: f"{t.replace(tzinfo=dt.UTC).timestamp() * 1000:.0f}",
                said="milliseconds since 1970",
            ),
            "n": count,
        },
    )
    table(
        "no-epoch.csv",
        "Numbers of the same size under another name stay numbers",
        {
            "bytes_sent": numbers(
                integers(84, 1_600_000_000, 1_800_000_000), lambda v: f"{v:.0f}"
            ),
            "n": count,
        },
    )
    table(
        "sap-dates.csv",
        "Dates of eight digits",
        {"BUDAT": times(days(85), dated("%Y%m%d"), said="20240131"), "n": count},
        delimiter=";",
    )
    impossible = {3: "31.02.2026", 11: "00.00.0000", 20: "30.02.2024"}
    dates = days(86)
    table(
        "impossible-dates.csv",
        "Days that no calendar has are gaps, and counted",
        {
            "Datum": (
                [impossible.get(i, d.strftime("%d.%m.%Y")) for i, d in enumerate(dates)],
                {
                    "kind": "timestamp",
                    "values": [
                        None if i in impossible else d.isoformat() for i, d in enumerate(dates)
                    ],
                },
            ),
            "n": count,
        },
        warns=["3 dates do not exist ('31.02.2026'"],
    )
    table(
        "iso-with-zones.csv",
        "ISO 8601 with zones: one clock, that of UTC",
        {
            "at": (
                [
                    t.isoformat() + "Z"
                    if i % 2
                    else (t + dt.timedelta(hours=2)).isoformat() + "+02:00"
                    for i, t in enumerate(moments(87))
                ],
                {"kind": "timestamp", "values": [t.isoformat() for t in moments(87)]},
            ),
            "n": count,
        },
    )
    table(
        "python-log.csv",
        "A log of Python: a comma before the fraction of a second",
        {
            "asctime": times(
                moments(88),
                lambda t: t.strftime("%Y-%m-%d %H:%M:%S") + ",123",
                whole_seconds=True,
            ),
            "level": labels(words(89, "INFO WARN ERROR")),
        },
        delimiter=";",
    )
    table(
        "web-log.tsv",
        "A web server's log: times in brackets, bytes, addresses",
        {
            "ip": left_out([f"10.0.{i}.{i * 7 % 250}" for i in range(N)], "network addresses"),
            "time": times(
                moments(90),
                lambda t: named("[%d/MONTH/%Y:%H:%M:%S +0000]", ENGLISH)(t),
            ),
            "status": numbers([200.0, 200.0, 404.0, 500.0] * 10, lambda v: f"{v:.0f}"),
            "bytes": numbers(integers(91, 100, 90_000), lambda v: f"{v:.0f}"),
        },
        delimiter="\t",
    )
    table(
        "mail-dates.csv",
        "Dates as in e-mail",
        {
            "Date": times(
                moments(92), lambda t: named("%a, %d MONTH %Y %H:%M:%S +0000", ENGLISH)(t)
            ),
            "n": count,
        },
        delimiter=";",
    )
    clocks = [t.time() for t in moments(93)]
    table(
        "times-of-day.csv",
        "Times of day",
        {
            "clock": (
                [f"{t:%H:%M:%S}" for t in clocks],
                {
                    "kind": "timestamp",
                    "values": [t.hour * 3600 + t.minute * 60 + t.second for t in clocks],
                },
            ),
            "n": count,
        },
    )
    table(
        "durations.csv",
        "How long calls took looks like times of day, and is none",
        {
            "duration": left_out([f"00:{i:02}:{59 - i:02}" for i in range(N)], ""),
            "n": count,
        },
        warns=["looks like durations"],
    )
    table(
        "slashes-year-first.csv",
        "The year first, with slashes",
        {"day": times(days(94), dated("%Y/%m/%d")), "n": count},
    )
    table(
        "sensor.csv",
        "A sensor: times with fractions, measures with a few gaps",
        {
            "ts": times(moments(95), lambda t: t.isoformat(timespec="milliseconds")),
            "temp_c": numbers([v / 100 for v in integers(96, 1500, 3500)], bare),
            "ok": (
                words(97, "true false"),
                {"kind": "boolean", "values": words(97, "true false")},
            ),
        },
    )


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


def layouts() -> None:
    plain = {"amount": numbers(amounts(103), bare), "country": labels(words(104, "NO SE DK"))}
    german = {
        "Buchungstag": times(days(105), dated("%d.%m.%Y")),
        "Betrag": numbers(signed(106), de),
        "Waehrung": (["EUR"] * N, {"kind": "constant", "values": ["EUR"] * N}),
    }
    table(
        "bank-statement.csv",
        "A bank: the account above, a blank line, then the table",
        german,
        **SEMICOLONS,
        above=["Umsatzanzeige;;", "Konto;DE12 3456;", "Kunde;Müller;", ""],
        understood=["column names in line 5"],
    )
    table(
        "bank-statement-narrow.csv",
        "A bank with two columns: the lines above look like rows, but for the blank line",
        {
            "Buchungstag": times(days(107), dated("%d.%m.%Y")),
            "Betrag": numbers(signed(108), de),
        },
        delimiter=";",
        above=["Kontoinhaber;Max Müller", "IBAN;DE12 3456", ""],
        understood=["column names in line 4"],
    )
    table(
        "totals-below.csv",
        "Totals below the table have fewer values, and are left out in words",
        german,
        **SEMICOLONS,
        below=["Summe;12.345,67", "Erstellt am 31.12.2024"],
        warns=["ignored 2 lines at the end without 3 values"],
    )
    table(
        "total-with-gaps.csv",
        "A total as a row of the table, with gaps",
        german,
        **SEMICOLONS,
        below=["Summe:;12.345,67;"],
        warns=["the last line is a total and left out: 'Summe:;12.345,67;'"],
    )
    table(
        "sap-list.txt",
        "A list of SAP with bars, lines of dashes and a title",
        {
            "": ([""] * N, {"left_out": ""}),
            " Beleg ": ([f" {i + 5100} " for i in range(N)], {"left_out": ""}),
            " Datum ": ([f" {d:%d.%m.%Y} " for d in days(109)], {}),
            " Betrag": ([f" {de(abs(v))}{'-' if v < 0 else ' '}" for v in signed(110)], {}),
            "  ": ([""] * N, {"left_out": ""}),
        },
        delimiter="|",
        encoding="cp1252",
        above=["Einzelposten                  31.12.2024", ""],
        options={"format": "csv"},
        asks=[],
    )
    content, statement = FILES["sap-list.txt"]
    rows = content.decode("cp1252").split("\n")  # type: ignore[union-attr]
    rule = "-" * 40
    rows = [*rows[:2], rule, rows[2], rule, *rows[3:-1], rule, ""]
    del statement["asks"]
    statement |= {
        "understood": ["separated by bars", "column names in line 4"],
        "rows": N,
        "columns": {
            "Datum": {"kind": "timestamp", "values": [d.isoformat() for d in days(109)]},
            "Betrag": {"kind": "number", "values": signed(110)},
        },
    }
    FILES["sap-list.txt"] = ("\n".join(rows).encode("cp1252"), statement)
    table(
        "sap-export.txt",
        "A text file of SAP with tabs: is it a table, or one text in a line?",
        german,
        delimiter="\t",
        encoding="utf-16",
        asks=["looks like a table", "--format csv", "--format txt"],
    )
    table(
        "sap-export.tsv",
        "The same under another name, in UTF-16",
        german,
        delimiter="\t",
        encoding="utf-16",
        understood=["separated by tabs", "utf-16"],
    )
    table(
        "utf16-without-mark.csv",
        "UTF-16 that does not say so",
        plain,
        encoding="utf-16-le",
        understood=["utf-16-le"],
    )
    table("bars.csv", "Bars between values", plain, delimiter="|")
    table(
        "sep-line.csv",
        "Excel's line about the separator",
        german,
        delimiter=";",
        above=["sep=;"],
        understood=["column names in line 2"],
    )
    table("old-mac.csv", "Lines end as on an old Mac", plain, end="\r")
    table(
        "blank-lines.csv",
        "Blank lines at the beginning and between header and rows",
        plain,
        above=["", ""],
        understood=["column names in line 3"],
    )
    table(
        "comments-above.csv",
        "Comments above the table",
        plain,
        above=["# exported 2024-12-31 by somebody", "# all rights reserved"],
        understood=["column names in line 3"],
    )
    notes = [f'say "{i % 4}",\nand more' for i in range(N)]
    table(
        "line-ends-in-values.csv",
        "Values with commas, quotation marks and line ends",
        {"note": labels(notes), **plain},
    )
    first, *rest = lines(plain, ",")
    half, mark = len(rest) // 2, "\ufeff"
    for name, says, again, warns in (
        ("put-together.csv", "Two files put together, with the names again", [first], True),
        ("put-together-without-names.csv", "The same without: an unseen mark", [], False),
    ):
        text = "\n".join([first, *rest[:half]]) + "\n" + mark
        text = mark + text + "\n".join([*again, *rest[half:]]) + "\n"
        raw(
            name,
            says,
            text.encode(),
            rows=N,
            columns={column: said for column, (_, said) in plain.items()},
            **({"warns": ["1 line with the column names again, left out"]} if warns else {}),
        )
    table(
        "kept-as-text.csv",
        "Numbers as spreadsheets write them that are to stay text, and codes",
        {
            "formula": numbers(amounts(201), lambda v: f'="{v:.2f}"'),
            "apostrophe": numbers(amounts(202), lambda v: f"'{v:.2f}"),
            "equals": numbers(signed(203), lambda v: f"={v:.2f}"),
            "quoted": numbers(amounts(204), lambda v: f"\u201c{v:.2f}\u201d"),
            "code": left_out([f'="00{i}"' for i in range(N)], "leading zeros"),
        },
    )
    text = "\n".join(lines(plain, ",")[1:]) + "\n"
    raw(
        "no-header.csv",
        "Rows without column names",
        text.encode(),
        refuses=["no line of column names", "--no-header"],
    )
    raw(
        "no-header-said.csv",
        "The same, and the user says so",
        text.encode(),
        options={"header": False},
        understood=["without column names"],
        rows=N,
        columns={
            "column_1": plain["amount"][1],
            "column_2": plain["country"][1],
        },
    )
    table(
        "years-as-names.csv",
        "Columns named by years",
        {str(year): numbers(amounts(year), bare) for year in (2021, 2022, 2023)},
    )
    table(
        "unnamed-index.csv",
        "A column without name, as pandas writes its index",
        {"": (["a", "b"] * (N // 2), {}), **plain},
        asks=[],
    )
    _, statement = FILES["unnamed-index.csv"]
    del statement["asks"]
    statement |= {
        "rows": N,
        "columns": {
            "column_1": {"kind": "category", "values": ["a", "b"] * (N // 2)},
            "amount": plain["amount"][1],
        },
    }
    names, *rows = lines(german, ";")
    raw(
        "trailing-delimiter.csv",
        "Each row ends with a delimiter, and the header does not",
        "\n".join([names, *(row + ";" for row in rows), ""]).encode(),
        rows=N,
        columns={name: said for name, (_, said) in german.items()},
    )
    raw(
        "twice-the-same-name.csv",
        "Two columns of one name",
        b"a,b,a\n1,2,3\n4,5,6\n",
        refuses=["more than one column named 'a'"],
    )
    broken = [names, *rows]
    broken[17] += ";4"
    raw(
        "a-row-too-long.csv",
        "One value too many in line 18",
        "\n".join(broken).encode(),
        refuses=["line 18 has 4 values, but the header has 3"],
    )
    broken = [names, *rows]
    broken[17] = broken[17].rpartition(";")[0]
    raw(
        "a-row-too-short.csv",
        "One value too few in line 18, in the middle of the file",
        "\n".join(broken).encode(),
        refuses=["line 18 has 2 values, but the header has 3"],
    )
    raw(
        "a-name-too-many.csv",
        "The header has more names than rows have values",
        "\n".join([names + ";Notiz", *rows]).encode(),
        refuses=["rows have 3 values", "no line above them has as many"],
    )
    raw("empty.csv", "Nothing at all", b"", refuses=["is empty"])
    raw("names-only.csv", "Names and no rows", b"a,b\n", refuses=["no rows"])
    raw(
        "not-text.csv",
        "Something else under the name of a CSV file",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)),
        refuses=["not a text file"],
    )
    raw(
        "spaces.csv",
        "Columns of fixed width",
        b"time   temp   load\n1.5    20.1   0.7\n2.5    20.4   0.8\n3.5    20.3   0.9\n",
        refuses=["separated by spaces"],
    )
    raw(
        "open-quotation.csv",
        "A quotation mark that is never closed",
        b'a,b\n1,2\n3,"4\n' + b"5,6\n" * 30,
        refuses=["open-quotation.csv"],
    )
    raw(
        "two-encodings.csv",
        "UTF-8 in the beginning, Latin-1 at the end",
        "name,x\nGröße,1\n".encode() + "Größe,2\n".encode("latin-1"),
        refuses=["mixes UTF-8 with another encoding", "--encoding"],
    )
    raw(
        "old-excel.xls",
        "A workbook of an old Excel",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        refuses=["Save it as .xlsx"],
    )
    raw("unknown-ending.dat", "An ending nobody knows", text.encode(), refuses=["--format csv"])
    for ending, pack in (
        ("gz", lambda content: gzip.compress(content, mtime=0)),
        ("bz2", bz2.compress),
        ("xz", lzma.compress),
        ("zip", lambda content: zipped({"export.csv": content})),
    ):
        table(f"packed.csv.{ending}", f"Packed as .{ending}", german, **SEMICOLONS, pack=pack)
    table(
        "export.zip",
        "An archive with one table",
        german,
        **SEMICOLONS,
        pack=lambda content: zipped({"export.csv": content}),
    )
    raw(
        "two-tables.csv.zip",
        "An archive with two tables",
        zipped({"a.csv": b"a\n1\n", "b.csv": b"a\n1\n"}),
        refuses=["an archive without exactly one CSV"],
    )
    table(
        "header-with-spaces.csv",
        "Spaces around names and values",
        {
            " amount ": (
                [f" {bare(v)} " for v in amounts(111)],
                {},
            ),
            " country": ([f" {w}" for w in words(112, "NO SE DK")], {}),
        },
        asks=[],
    )
    _, statement = FILES["header-with-spaces.csv"]
    del statement["asks"]
    statement |= {"rows": N, "columns": {"amount": {"kind": "number", "values": amounts(111)}}}


def zipped(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return out.getvalue()


def workbooks() -> None:
    values, dates, regions = amounts(113), days(114), words(115, "Süd Nord")
    cells = [
        [v, {"date": d.isoformat()}, r] for v, d, r in zip(values, dates, regions, strict=True)
    ]
    statement = {
        "rows": N,
        "columns": {
            "Betrag": {"kind": "number", "values": values},
            "Datum": {"kind": "timestamp", "values": [d.isoformat() for d in dates]},
            "Region": {"kind": "category", "values": regions},
        },
    }
    header = ["Betrag", "Datum", "Region"]
    book(
        "book.xlsx",
        "A workbook: real numbers and real dates",
        {"Daten": [header, *cells]},
        **statement,
    )
    book(
        "book-with-title.xlsx",
        "A title and a blank row above the table, which begins in the second column",
        {
            "Bericht": [
                ["Umsatzbericht 2024"],
                [],
                [None, *header],
                *([None, *row] for row in cells),
            ],
            "Notizen": [["nichts"]],
        },
        understood=["sheet 'Bericht', one of 2", "column names in row 3"],
        **statement,
    )
    book(
        "book-second-sheet.xlsx",
        "The table is in the second sheet, which the user names",
        {"Deckblatt": [["Bericht"]], "Daten": [header, *cells]},
        options={"sheet": "Daten"},
        **statement,
    )
    book(
        "book-wrong-sheet.xlsx",
        "The user names a sheet that is not there",
        {"Deckblatt": [["Bericht"]], "Daten": [header, *cells]},
        options={"sheet": "Date"},
        refuses=["no sheet 'Date'", "did you mean 'Daten'"],
    )
    texts = [
        [de(v) if i % 2 else v, {"date": d.isoformat()}]
        for i, (v, d) in enumerate(zip(values, dates, strict=True))
    ]
    book(
        "book-numbers-as-text.xlsx",
        "Half of the numbers are text with a decimal comma",
        {"Daten": [["Betrag", "Datum"], *texts]},
        rows=N,
        columns={"Betrag": {"kind": "number", "values": values}},
    )
    book(
        "book-with-errors.xlsx",
        "Errors in cells are gaps",
        {
            "Daten": [
                ["Betrag", "Region"],
                *(
                    ["#DIV/0!" if i == 5 else v, r]
                    for i, (v, r) in enumerate(zip(values, regions, strict=True))
                ),
            ]
        },
        rows=N,
        columns={
            "Betrag": {
                "kind": "number",
                "values": [None if i == 5 else v for i, v in enumerate(values)],
            }
        },
    )
    book(
        "book-without-names.xlsx",
        "Rows without column names",
        {"Daten": cells},
        refuses=["no row of column names", "--no-header"],
    )


def make(folder: Path) -> None:
    """Write all files and their statements."""
    for name, (content, statement) in FILES.items():
        if content is not None:
            (folder / name).write_bytes(content)
        text = json.dumps(statement, ensure_ascii=False, separators=(", ", ": "))
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf8")


for part in (locales, signs, calendars, codes, layouts, workbooks):
    part()

if __name__ == "__main__":
    make(HERE)
    print(len(FILES), "files")
