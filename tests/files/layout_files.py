"""What is around the values: encodings, delimiters, lines above and below, archives."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

from stating import (
    FILES,
    SEMICOLONS,
    N,
    amounts,
    bare,
    dated,
    days,
    de,
    labels,
    left_out,
    lines,
    numbers,
    raw,
    signed,
    table,
    times,
    words,
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
