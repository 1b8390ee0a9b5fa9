"""What is written in some dialect is read back as it was meant, or asked for; never otherwise.

`ALOOF_TABLES` says how many tables are made of each sort, others every time; a table has about
seven cells, so that 4,000 are more than 100,000 cells in all. Without it, they are few and the
same every time.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import aloof
from aloof.exceptions import TableError
from aloof.models.table import TableEncoder, open_source
from aloof.models.table.dialects import NumberDialect, TimeDialect, Wishes
from aloof.models.table.dialects.cells import clean
from aloof.models.table.dialects.numbers import read_numerals
from aloof.models.table.dialects.times import read_moments
from aloof.persistence import _manifest_digest
from aloof.written.months import month_of
from aloof.written.units import find_unit, name_unit

N_TABLES = int(os.environ.get("ALOOF_TABLES", "60"))
MANY = settings(
    max_examples=N_TABLES,
    deadline=None,
    derandomize="ALOOF_TABLES" not in os.environ,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ASKED = ("--decimal", "--thousands", "--day-first", "--date-format")


@st.composite
def decimals(draw: st.DrawFn) -> list[Decimal]:
    """Numbers of one column: all with as many decimals, or each with its own."""
    places = draw(st.sampled_from([0, 0, 1, 2, 2, 3, 3, 4]))
    largest = draw(st.sampled_from([9, 999, 99_999, 10**7]))
    n = draw(st.integers(2, 12))
    numbers = draw(
        st.lists(st.integers(-largest, largest * 10**places), min_size=n, max_size=n)
    )
    values = [Decimal(number).scaleb(-places) for number in numbers]
    return [v.normalize() for v in values] if draw(st.booleans()) else values


@st.composite
def ways(draw: st.DrawFn) -> dict[str, Any]:
    """A way to write numbers that people have."""
    decimal = draw(st.sampled_from([".", ","]))
    signs = ["", " ", "'", "\u00a0", "\u202f", "\u2019", "," if decimal == "." else "."]
    units = ["", "", "", " €", " EUR", "kg", " %", "$*", "CHF *", "£*", " ms"]
    return {
        "decimal": decimal,
        "thousands": draw(st.sampled_from(signs)),
        "unit": draw(st.sampled_from(units)),
        "negative": draw(st.sampled_from(["-*", "\u2212*", "(*)", "*-", "- *"])),
    }


def written(value: Decimal, way: dict[str, Any]) -> str:
    """Write a number by hand."""
    whole, _, part = f"{abs(value):f}".partition(".")
    groups = []
    while whole:
        groups.append(whole[-3:])
        whole = whole[:-3]
    text = way["thousands"].join(reversed(groups)) + (way["decimal"] + part if part else "")
    unit = way["unit"]
    text = unit.replace("*", text) if "*" in unit else text + unit
    return way["negative"].replace("*", text) if value < 0 else text


def understood(table: dict[str, list[str]], **wishes: Any) -> TableEncoder | None:
    """Return what was understood; None: it was asked, or nothing was left."""
    try:
        return TableEncoder.fit(table, wishes=Wishes(**wishes))
    except TableError as error:
        said = str(error)
        assert any(option in said for option in ASKED) or "No column is left" in said, said
        return None


def never_otherwise(encoder: TableEncoder, name: str, cells: list[str], truth: Any) -> None:
    """Check that a column of numbers or times holds those that were meant, or gaps."""
    for column in encoder.columns:
        if column.name == name and column.kind in ("number", "timestamp"):
            read = encoder.read({name: cells})[name]
            for cell, value, meant in zip(cells, read, truth, strict=True):
                if value == value:
                    assert value == meant, (cell, value, meant, column)


@MANY
@given(decimals(), ways(), st.data())
def test_numbers_are_read_as_meant_or_asked_for(
    values: list[Decimal], way: dict[str, Any], data: st.DataObject
) -> None:
    cells, truth = [written(v, way) for v in values], [float(v) for v in values]
    encoder = understood({"x": cells})
    if encoder is not None:
        never_otherwise(encoder, "x", cells, truth)
        later = data.draw(decimals())
        if encoder.names == ("x",) and encoder.columns[0].kind == "number":
            more = [written(v, way) for v in later]
            never_otherwise(encoder, "x", more, [float(v) for v in later])
    # Who says how it is written is not asked again.
    signs = {"decimal": way["decimal"]}
    if way["thousands"] in (".", ","):
        signs["thousands"] = way["thousands"]
    table = {"x": cells, "y": ["a", *["b"] * (len(cells) - 1)]}
    told = TableEncoder.fit(table, wishes=Wishes(**signs))
    kinds = {column.name: column.kind for column in told.columns}
    if kinds.get("x") == "number":
        assert told.read(table)["x"].tolist() == truth


@MANY
@given(decimals(), decimals(), ways(), ways())
def test_a_table_has_one_locale(
    first: list[Decimal], second: list[Decimal], way: dict[str, Any], other: dict[str, Any]
) -> None:
    """A column that leaves no doubt tells about the other, and rightly so."""
    other = {**other, "decimal": way["decimal"], "thousands": way["thousands"]}
    n = min(len(first), len(second))
    columns = {
        "a": [written(v, way) for v in first[:n]],
        "b": [written(v, other) for v in second[:n]],
    }
    encoder = understood(columns)
    if encoder is None:
        return
    for name, truth in (("a", first), ("b", second)):
        if name in encoder.names:
            table = {c: columns[c] for c in columns}
            read = encoder.read(table)[name]
            kind = encoder.columns[encoder.names.index(name)].kind
            for value, meant in zip(read, truth[:n], strict=True):
                if kind == "number" and value == value:
                    assert value == float(meant)


PATTERNS = [
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%Y/%m/%d"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%y", "%y-%m-%d", "%d %b %Y", "%b %d, %Y"),
    *("%d. %B %Y", "%Y%m%d", "%a, %d %b %Y", "%d-%b-%Y", "%d/%m/%Y %H:%M", "%m/%d/%Y %I:%M %p"),
    *("%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d/%b/%Y:%H:%M:%S"),
]


@MANY
@given(
    st.lists(
        st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2067, 1, 1)), min_size=2, max_size=12
    ),
    st.sampled_from(PATTERNS),
    st.booleans(),
)
def test_dates_are_read_as_meant_or_asked_for(
    moments: list[dt.datetime], pattern: str, bare: bool
) -> None:
    cells, truth = [], []
    for moment in moments:
        text = moment.strftime(pattern)
        if bare and pattern in ("%d/%m/%Y", "%m/%d/%Y"):
            text = "/".join(part.lstrip("0") for part in text.split("/"))
        cells.append(text)
        clock = 6 if "%S" in pattern else 5 if "%M" in pattern else 3
        truth.append(np.datetime64(dt.datetime(*moment.timetuple()[:clock])))
    encoder = understood({"x": cells})
    if encoder is not None:
        never_otherwise(encoder, "x", cells, truth)
    if len(set(cells)) > 1:
        said = TableEncoder.fit({"x": cells}, wishes=Wishes(layouts={"x": pattern}))
        never_otherwise(said, "x", cells, truth)
        assert not np.isnat(said.read({"x": cells})["x"]).any()


CELLS = st.text("0123456789.,'- ()+eE€$%kgmsh:/TZ\u00a0\u2212abc", max_size=12)


@MANY
@given(st.lists(CELLS | st.none(), min_size=1, max_size=10), st.lists(CELLS, max_size=6))
def test_any_cells_are_fitted_and_scored_or_refused(
    cells: list[str | None], more: list[str]
) -> None:
    try:
        encoder = TableEncoder.fit({"x": pa.array(cells, pa.string())})
    except TableError:
        return
    for values in (cells, more):
        table = {"x": pa.array(values, pa.string())}
        assert np.isfinite(encoder.transform(table, warn=lambda words: None)).all()
        encoder.read(table)
    restored = TableEncoder.from_state(encoder.state())
    assert restored == encoder


LINES = st.lists(st.text("abcdefg019.,;|\t \"'-/€ä\n\r", max_size=24), min_size=0, max_size=12)


@MANY
@given(
    LINES,
    st.sampled_from(["utf8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be"]),
    st.sampled_from(["\n", "\r\n"]),
    st.binary(max_size=6),
)
def test_any_file_is_read_or_refused(
    lines: list[str], encoding: str, end: str, noise: bytes
) -> None:
    content = end.join(lines).encode(encoding, "ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.csv"
        for raw in (content, content + noise, noise + content):
            path.write_bytes(raw)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    table = open_source(path).read()
                    encoder = TableEncoder.fit(table)
                except TableError:
                    continue
                encoder.transform(table, warn=lambda words: None)


@MANY
@given(
    st.lists(
        st.tuples(st.text("abc,;\t\"' \n€", min_size=1, max_size=8), decimals()),
        min_size=2,
        max_size=3,
    ),
    ways(),
    st.sampled_from(["utf8", "utf-8-sig", "cp1252", "utf-16"]),
    st.sampled_from([",", ";", "\t", "|"]),
)
def test_what_is_written_to_a_file_is_read_from_it(
    columns: list[tuple[str, list[Decimal]]], way: dict[str, Any], encoding: str, delimiter: str
) -> None:
    """Names and cells come back as they are, or the file is refused."""
    import csv

    n = min(len(values) for _, values in columns)
    names = [f"{name.strip()}x{place}" for place, (name, _) in enumerate(columns)]
    rows = [[written(values[i], way) for _, values in columns] for i in range(n)]
    try:
        [cell.encode(encoding) for row in [names, *rows] for cell in row]
    except UnicodeEncodeError:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.csv"
        with path.open("w", encoding=encoding, newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([names, *rows])
        try:
            table = open_source(path).read()
        except TableError:
            return
        assert table.column_names == names
        assert [list(row.values()) for row in table.to_pylist()] == rows


@pytest.mark.parametrize(
    ("cell", "dialect", "value"),
    [
        ("1.234,56", NumberDialect(",", "."), 1234.56),
        ("1.234", NumberDialect(",", "."), 1234),
        ("1.234", NumberDialect(",", ""), None),
        ("1.234", NumberDialect(".", ""), 1.234),
        ("1.234", NumberDialect("", ""), None),
        ("1.234.567", NumberDialect("", ""), 1234567),
        ("12,5", NumberDialect("", ""), 12.5),
        ("1,234.5", NumberDialect(".", ""), 1234.5),
        ("1,234", NumberDialect(".", ""), None),
        ("12,34,567", NumberDialect(".", ","), 1234567),
        ("0.123", NumberDialect(",", "."), None),
        ("12.50", NumberDialect(",", "."), None),
        ("(1.234,56 €)", NumberDialect(",", ".", "EUR"), -1234.56),
        ("-€ 5,00", NumberDialect(",", ".", "EUR"), -5),
        ("$(5.00)", NumberDialect(".", ",", "USD"), -5),
        ("5-", NumberDialect(), -5),
        ("--5", NumberDialect(), None),
        ("(5", NumberDialect(), None),
        ("18+", NumberDialect(), None),
        ("12,-", NumberDialect(","), 12),
        ("1,5E+03", NumberDialect(","), 1500),
        ("5 kg", NumberDialect(), None),
        ("5", NumberDialect(unit="kg", bare=False), None),
        ("500 g", NumberDialect(unit="kg", bare=False), 0.5),
        ("5 %", NumberDialect(unit="%", bare=False), 5),
        ("5", NumberDialect(unit="%", bare=False), None),
        ("5 $", NumberDialect(unit="EUR"), None),
        ("3 Mio. €", NumberDialect(unit="EUR"), 3e6),
        ("-inf", NumberDialect(","), -math.inf),
    ],
)
def test_one_cell(cell: str, dialect: NumberDialect, value: float | None) -> None:
    (read,) = read_numerals(clean(pa.array([cell])), dialect)
    assert read == value if value is not None else math.isnan(read)


@pytest.mark.parametrize(
    ("cell", "order", "day"),
    [
        ("03/04/2024", "dmy", "2024-04-03"),
        ("03/04/2024", "mdy", "2024-03-04"),
        ("03/04/2024", "", None),
        ("13/04/2024", "", "2024-04-13"),
        ("04/13/2024", "", "2024-04-13"),
        ("05/05/2024", "", "2024-05-05"),
        ("03.04.2024", "", "2024-04-03"),
        ("24-01-15", "ymd", "2024-01-15"),
        ("24-01-15", "dmy", "2015-01-24"),
        ("24-01-15", "", None),
        ("01.02.68", "dmy", "2068-02-01"),
        ("01.02.69", "dmy", "1969-02-01"),
        ("1.10.24", "dmy", None),
        ("2024-02-30", "", None),
        ("3. März 2024", "", "2024-03-03"),
        ("Mar 3, 2024", "", "2024-03-03"),
        ("3rd of March 2024", "", "2024-03-03"),
        ("1er août 2024", "", "2024-08-01"),
        ("15 de enero de 2024", "", "2024-01-15"),
        ("3 foo 2024", "", None),
        ("Room 3/4/2024", "dmy", None),
        ("20240131", "", None),
    ],
)
def test_one_date(cell: str, order: Any, day: str | None) -> None:
    (read,) = read_moments(clean(pa.array([cell])), TimeDialect(order=order)).seconds
    if day is None:
        assert math.isnan(read)
    else:
        assert np.datetime64(int(read), "s") == np.datetime64(day)


def test_a_month_has_one_meaning_in_all_languages() -> None:
    assert month_of("mar") == 3  # March, mars, marzo, março; not the Finnish November
    assert month_of("juin") == month_of("Jun") == 6
    assert month_of("juillet") == month_of("juil") == 7
    assert month_of("jui") is None
    assert month_of("Listopad") == month_of("nov") == 11
    assert {month_of(word) for word in ("Mai", "May", "maj", "mei", "mayo", "maio")} == {5}


def test_units_are_called_by_one_name() -> None:
    for words in (("€", ""), ("", "EUR"), ("", "Euro"), ("eur", "")):
        found = find_unit(*words)
        assert found is not None
        assert found.name == "EUR"
    kilo, gram = name_unit("kg"), name_unit("g")
    assert kilo.family == gram.family
    assert kilo.size / gram.size == pytest.approx(1000)
    assert find_unit("user", "") is None


def test_one_unit_in_another_is_a_unit() -> None:
    micro, milli, large = name_unit("µmol/l"), name_unit("mmol/l"), name_unit("mmol/L")
    assert micro.family == milli.family
    assert milli == large
    assert milli.size / micro.size == pytest.approx(1000)
    assert name_unit(micro.name) == micro
    assert find_unit("", "kg/m²") is not None
    assert find_unit("", "a/b") is None


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"decimal": ";"}, "decimal .--decimal. must be one of"),
        ({"thousands": "_"}, "thousands .--thousands. must be one of"),
        ({"decimal": ".", "thousands": "."}, "cannot both be"),
        ({"day_first": "yes"}, "day_first must be True"),
    ],
)
def test_wishes_that_mean_nothing_are_refused(wishes: dict[str, Any], words: str) -> None:
    with pytest.raises(TableError, match=words):
        Wishes(**wishes)


def test_wishes_about_what_is_no_text_are_refused() -> None:
    with pytest.raises(
        TableError, match=r"decimal \(--decimal\) describes how text is written"
    ):
        TableEncoder.fit({"x": [1.5, 2.5]}, wishes=Wishes(decimal=","))
    with pytest.raises(TableError, match="Column 'x' does not hold text"):
        TableEncoder.fit({"x": [1.5, 2.5], "y": ["a", "b"]}, wishes=Wishes(decimal={"x": ","}))
    with pytest.raises(TableError, match=r"no column 'z'"):
        TableEncoder.fit({"x": [1.5, 2.5]}, wishes=Wishes(decimal={"z": ","}))
    with pytest.raises(TableError, match="a date format, so its kind cannot be 'number'"):
        TableEncoder.fit(
            {"x": ["1", "2"]}, kinds={"x": "number"}, wishes=Wishes(layouts={"x": "%d"})
        )


@pytest.mark.filterwarnings("ignore::aloof.exceptions.AloofWarning")
def test_a_model_from_before_dialects_is_read_as_it_was(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = [f"{day:02}.{month:02}.2024" for day, month in rng.integers(1, 13, (60, 2))]
    table = {"x": [f"{v:.4f}" for v in rng.normal(size=60)], "d": days}
    model = aloof.fit(table, method="vae", members=1, max_epochs=1)
    model.save(tmp_path / "m")
    path = tmp_path / "m" / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["table"]["reading"]
    del manifest["table"]["encoder"]["readings"]
    for column in manifest["table"]["encoder"]["columns"]:
        del column["dialect"]
        if column["name"] == "d":
            column["layout"] = "%d.%m.%Y"
    manifest["manifest_sha256"] = _manifest_digest(manifest)
    path.write_text(json.dumps(manifest))
    old = aloof.load(tmp_path / "m", device="cpu")
    np.testing.assert_array_equal(old.anomaly_score(table), model.anomaly_score(table))
    assert old.understood == []
