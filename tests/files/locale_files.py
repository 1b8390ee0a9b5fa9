"""Numbers, dates and money as countries write them."""

from __future__ import annotations

from stating import (
    ENGLISH,
    SEMICOLONS,
    amounts,
    bare,
    dated,
    days,
    de,
    grouped,
    integers,
    labels,
    moments,
    named,
    numbers,
    signed,
    table,
    times,
    us,
    words,
)

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
