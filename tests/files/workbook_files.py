"""Workbooks, as cells that the test writes."""

from __future__ import annotations

from stating import N, amounts, book, days, de, words


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
