"""Days and times, where the order of day and month is in doubt and where it is not."""

from __future__ import annotations

import datetime as dt

from stating import (
    ENGLISH,
    N,
    amounts,
    bare,
    dated,
    days,
    de,
    early_days,
    integers,
    labels,
    left_out,
    moments,
    named,
    numbers,
    table,
    times,
    words,
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
