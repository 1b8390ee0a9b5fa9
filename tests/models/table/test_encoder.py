from __future__ import annotations

import datetime as dt
import hashlib
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from aloof.exceptions import ModelError, TableError, TableWarning
from aloof.models.table import TableEncoder
from aloof.models.table.columns import CategoryColumn, NumberColumn

N = 2000


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def table(rng: np.random.Generator) -> pa.Table:
    age = rng.normal(40, 10, N)
    return pa.table(
        {
            "age": pa.array(age, mask=rng.random(N) < 0.1),
            "amount": rng.lognormal(3, 1.5, N),
            "country": rng.choice(["NO", "SE", "DK", "FI"], N, p=[0.5, 0.3, 0.15, 0.05]),
            "member": rng.random(N) < 0.3,
            "when": pa.array(
                (1_700_000_000 + rng.integers(0, 10**7, N)), pa.timestamp("s", "Europe/Oslo")
            ),
        }
    )


def changed(table: pa.Table, name: str, values: list) -> pa.Table:
    return table.slice(0, len(values)).set_column(
        table.column_names.index(name), name, pa.array(values)
    )


def block(encoder: TableEncoder, encoded: np.ndarray, name: str) -> np.ndarray:
    return encoded[:, encoder.owners == encoder.names.index(name)] / encoder.gain


def test_every_column_has_about_the_variance_of_one_number(table) -> None:
    encoder = TableEncoder.fit(table)
    encoded = encoder.transform(table)
    for name in table.column_names:
        variance = block(encoder, encoded, name).var(axis=0).sum()
        # The flag of a missing value adds up to 1.
        assert 0.9 < variance < (2.1 if name == "age" else 1.1), name
    total = (encoded - encoded.mean(axis=0)) ** 2
    per_column = encoder.sum_by_column(total).sum(axis=1) / encoder.gain**2
    np.testing.assert_allclose(total.mean(axis=1), per_column / len(encoder.columns), rtol=1e-5)


def test_plain_numbers_become_one_feature_each_with_gain_1(rng) -> None:
    X = rng.normal(5, 3, (N, 4))
    encoder = TableEncoder.fit(X)
    assert (encoder.n_features, encoder.gain) == (4, 1.0)
    reference = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(encoder.transform(X), reference, atol=0.1)


def test_heavy_tails_are_scaled_as_logarithms_and_others_are_not(rng) -> None:
    table = {
        "normal": rng.normal(size=N),
        "uniform": rng.random(N),
        "exponential": rng.exponential(size=N),
        "lognormal": rng.lognormal(0, 2, N),
        "both sides": rng.standard_cauchy(N),
        "normal with an anomaly": np.append(rng.normal(size=N - 1), 1e6),
    }
    encoder = TableEncoder.fit(table)
    bent = {column.name for column in encoder.columns if column.bend is not None}
    assert bent == {"lognormal", "both sides"}
    # One wild value has no say in the scale.
    assert 0.9 < encoder.columns[-1].scale < 1.1


def test_order_is_kept_up_to_the_limit(rng) -> None:
    encoder = TableEncoder.fit({"x": rng.normal(size=N)})
    values = np.linspace(-29, 29, 101)
    encoded = encoder.transform({"x": values})[:, 0]
    assert (np.diff(encoded) > 0).all()
    assert encoder.transform({"x": [1e300, -1e300]})[:, 0].tolist() == [30, -30]


@pytest.mark.parametrize("values", [[1e200, 1e300], [-1.7e308, 1.7e308], [1e16, 1e16 + 2]])
def test_numbers_of_any_size_are_told_apart(values) -> None:
    encoded = TableEncoder.fit({"x": values * 30}).transform({"x": values})
    assert encoded[1, 0] - encoded[0, 0] == pytest.approx(2)


def test_infinities_are_the_farthest_values_or_flagged(rng) -> None:
    x = rng.normal(size=N)
    encoder = TableEncoder.fit({"x": x})
    assert encoder.transform({"x": [np.inf, -np.inf]})[:, 0].tolist() == [30, -30]
    x[:100] = np.inf
    encoder = TableEncoder.fit({"x": x})
    assert [feature.name for feature in encoder.features] == ["value", "infinite"]
    encoded = encoder.transform({"x": [np.inf, 0.0]})
    assert encoded[0, 0] < 7
    assert encoded[0, 1] > 3
    assert encoded[1, 1] == 0


def test_missing_is_information(table, rng) -> None:
    encoder = TableEncoder.fit(table)
    encoded = encoder.transform(changed(table, "age", [None, 40.0]))
    age = block(encoder, encoded, "age")
    assert age[0, 1] == pytest.approx(1 / 0.3, rel=0.1)
    assert age[1, 1] == 0
    # Never missing in training: as far out as anything never seen.
    for name, none in (("amount", np.nan), ("country", None), ("when", None)):
        values = [none, table[name][0].as_py()]
        odd = block(encoder, encoder.transform(changed(table, name, values)), name)
        assert np.abs(odd[0]).max() == pytest.approx(6)
        assert np.abs(odd[1]).max() < 5


def test_unseen_rare_and_frequent_categories(rng) -> None:
    words = rng.choice([f"c{i}" for i in range(200)], 20_000, p=np.arange(200) / 19_900)
    encoder = TableEncoder.fit({"c": words})
    (column,) = encoder.columns
    assert len(column.categories) == 30
    assert column.features[-2:] == ("rare values", "never seen")
    rare = column.rare[0]
    encoded = encoder.transform({"c": [column.categories[0], rare, "new"]}) / encoder.gain
    assert [int(np.argmax(row)) for row in encoded] == [0, 30, 31]
    assert encoded[2, 31] == pytest.approx(6)
    assert (np.count_nonzero(encoded, axis=1) == 1).all()
    assert column.is_known(rare)
    assert not column.is_known("new")


def test_a_rarer_category_weighs_more(table) -> None:
    encoder = TableEncoder.fit(table)
    rows = changed(table, "country", ["NO", "SE", "DK", "FI"])
    sizes = block(encoder, encoder.transform(rows), "country").max(axis=1)
    assert (np.diff(sizes) > 0).all()
    shares = dict(zip(encoder.columns[2].categories, encoder.columns[2].shares, strict=True))
    assert sizes[0] == pytest.approx(1 / np.sqrt(3 * shares["NO"]))


def test_columns_may_be_reordered_and_extra_ones_warn(table) -> None:
    encoder = TableEncoder.fit(table)
    expected = encoder.transform(table)
    np.testing.assert_array_equal(
        encoder.transform(table.select(table.column_names[::-1])), expected
    )
    with pytest.warns(
        TableWarning, match="not trained on these columns and ignores them: 'more'"
    ):
        encoder.transform(table.append_column("more", table["age"]))
    said: list[str] = []
    encoder.transform(table.append_column("more", table["age"]), warn=said.append)
    assert len(said) == 1


def test_a_missing_column_is_named_with_the_nearest(table) -> None:
    encoder = TableEncoder.fit(table)
    renamed = table.rename_columns(["age", "Amuont", "country", "member", "when"])
    with pytest.raises(TableError, match=r"no column 'amount'.*did you mean 'Amuont'"):
        encoder.transform(renamed)
    fewer = table.drop_columns(["amount", "country"]).append_column("sum", table["amount"])
    with pytest.raises(
        TableError, match=r"no columns 'amount', 'country', .* New in it: 'sum'"
    ):
        encoder.transform(fewer)


def test_numbers_with_units_of_a_laboratory_are_numbers(rng) -> None:
    values = rng.integers(40, 160, N)
    encoder = TableEncoder.fit(
        {
            "creatinine": [f"{v} µmol/l" for v in values],
            "dose": [f"{v} drops" for v in values],
        }
    )
    creatinine, dose = encoder.columns
    assert isinstance(creatinine, NumberColumn)
    assert creatinine.middle == np.median(values)
    assert isinstance(dose, CategoryColumn)
    (words,) = encoder.warnings
    assert "If they are numbers in 'drops': kinds={'dose': 'number'} (--kind dose=numb" in words
    said = TableEncoder.fit(
        {"dose": [f"{v} drops" for v in values]}, kinds={"dose": "number"}
    ).columns
    assert isinstance(said[0], NumberColumn)


def test_text_in_a_number_column_counts_as_missing_with_a_warning(rng) -> None:
    encoder = TableEncoder.fit({"x": rng.normal(size=N)})
    with pytest.warns(TableWarning, match=r"'x': 2 of 3 values .* as numbers \('abc', 'x'\)"):
        encoded = encoder.transform({"x": ["1.5", "abc", "x"]})
    assert encoded[1:, 0].tolist() == [6, 6]
    with pytest.raises(TableError, match=r"'x' was read as numbers .* none of its 30 values"):
        encoder.transform({"x": ["abc"] * 30})
    with pytest.raises(
        TableError, match="'x' was read as numbers in training, but now has the type"
    ):
        encoder.transform({"x": [dt.datetime(2024, 1, 1)]})


def test_numbers_and_times_in_text_are_read(rng) -> None:
    values = rng.normal(size=N)
    text = [str(v) for v in values]
    text[:3] = ["NA", " 1.5 ", "n/a"]
    values[:3] = [np.nan, 1.5, np.nan]
    encoder = TableEncoder.fit({"x": text})
    assert encoder.columns[0].kind == "number"
    np.testing.assert_allclose(encoder.read({"x": text})["x"], values)
    np.testing.assert_array_equal(
        encoder.transform({"x": text}), encoder.transform({"x": values})
    )
    stamps = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 10**7, N)
    for layout in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d"):
        text = [f"{stamp:{layout}}" for stamp in stamps.tolist()]
        encoder = TableEncoder.fit({"t": [*text, "soon"]})
        assert encoder.columns[0].kind == "timestamp"
        assert any("'soon'" in words for words in encoder.warnings)
        read = encoder.read({"t": text})["t"].tolist()
        assert [f"{stamp:{layout}}" for stamp in read] == text


def test_codes_with_leading_zeros_are_categories() -> None:
    encoder = TableEncoder.fit({"zip": ["01234", "00501", "12345", "01234"] * 20})
    assert encoder.columns[0].kind == "category"


def test_booleans_are_the_same_in_every_spelling() -> None:
    encoder = TableEncoder.fit({"b": [True, False, False, True]})
    expected = encoder.transform({"b": [True, False]})
    for values in (["yes", "no"], ["True", "FALSE"], [1, 0], [1.0, 0.0], ["t", " f "]):
        np.testing.assert_array_equal(encoder.transform({"b": values}), expected)
    again = TableEncoder.fit({"b": ["TRUE", "false", "FALSE", "True"]})
    assert again.columns[0].kind == "boolean"
    np.testing.assert_array_equal(again.transform({"b": [True, False]}), expected)


def test_times_with_a_zone_are_the_same_in_every_zone(table) -> None:
    encoder = TableEncoder.fit(table)
    moved = table.set_column(4, "when", table["when"].cast(pa.timestamp("us", "Asia/Tokyo")))
    np.testing.assert_array_equal(encoder.transform(moved), encoder.transform(table))
    wall = encoder.read(table)["when"][0]
    local = table["when"][0].as_py().replace(tzinfo=None)
    assert wall == np.datetime64(local)


def test_time_that_goes_on_does_not_stand_out_but_1970_does(table) -> None:
    encoder = TableEncoder.fit(table)
    low, high = encoder.columns[4].low, encoder.columns[4].high
    times = [high, high + 200 * 86_400, 0.0, 4e9]
    stamps = pa.array(np.array(times).astype(np.int64), pa.timestamp("s"))
    rows = table.slice(0, 4).set_column(4, "when", stamps)
    position = block(encoder, encoder.transform(rows), "when")[:, 0]
    assert position[1] == pytest.approx(position[0])
    assert position[2:].tolist() == pytest.approx([-6, 6])
    assert low < high


def test_time_of_day_is_a_circle(rng) -> None:
    hours = rng.integers(0, 24, N)
    encoder = TableEncoder.fit({"t": [dt.time(int(h)) for h in hours]})
    assert encoder.n_features == 2
    late, early, noon = encoder.transform({"t": [dt.time(23, 59), dt.time(0, 1), dt.time(12)]})
    assert np.linalg.norm(late - early) < 0.05
    assert np.linalg.norm(late - noon) > 1
    decoded = encoder.decode(np.stack([late, noon]))["t"]
    np.testing.assert_allclose(decoded.astype(int), [86_340, 43_200], atol=1)


def test_constant_and_empty_columns_are_checks(rng) -> None:
    table = {"x": rng.normal(size=N), "same": ["EUR"] * N, "one": [5] * N, "none": [None] * N}
    encoder = TableEncoder.fit(table)
    assert [column.kind for column in encoder.columns] == ["number", *["constant"] * 3]
    assert len(encoder.warnings) == 3
    assert (encoder.transform(table)[:, 1:] == 0).all()
    odd = {
        "x": [0.0] * 3,
        "same": ["USD", None, "EUR"],
        "one": [6, 5.0, None],
        "none": [1, None, "a"],
    }
    encoded = encoder.transform(odd)[:, 1:] / encoder.gain
    np.testing.assert_allclose(encoded.T, [[6, 6, 0], [6, 0, 6], [6, 0, 6]], rtol=1e-6)
    assert encoder.decode(encoder.transform(odd))["same"].tolist() == ["EUR"] * 3


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(N)),
        ("row", np.arange(N)[::-1] * 17),
        ("user_id", np.random.default_rng(1).integers(0, 2**60, N)),
        ("customerId", np.random.default_rng(1).permutation(N * 10)[:N]),
        ("shuffled", np.random.default_rng(1).permutation(N)),
        ("in text", [str(i) for i in range(N)]),
        ("words", [f"user {i}" for i in range(N)]),
        ("many words", [f"user {i % (N // 3)}" for i in range(N)]),
    ],
)
def test_ids_and_free_text_are_left_out_unless_wanted(name, values, rng) -> None:
    table = {"x": rng.normal(size=N), name: values}
    encoder = TableEncoder.fit(table)
    assert list(encoder.dropped) == [name]
    (words,) = encoder.warnings
    assert repr(name) in words
    assert "kinds=" in words
    encoder.transform(table)  # a dropped column is no extra one
    kept = TableEncoder.fit(table, kinds={name: "category"})
    assert kept.names == ("x", name)


def test_measures_in_whole_numbers_are_no_ids(rng) -> None:
    table = {"cents": rng.integers(100, 10**7, N), "age": rng.integers(18, 90, N)}
    assert TableEncoder.fit(table).names == ("cents", "age")


def test_labelled_anomalies_take_no_part(rng) -> None:
    table = pd.DataFrame({"x": rng.normal(size=N), "c": rng.choice(["a", "b"], N)})
    labels = np.zeros(N, int)
    labels[:20] = 1
    odd = table.copy()
    odd.loc[:19, "x"] = 1e9
    odd.loc[:19, "c"] = "fraud"
    assert TableEncoder.fit(odd, labels) == TableEncoder.fit(table.iloc[20:])
    with pytest.raises(TableError, match="one label for each"):
        TableEncoder.fit(table, labels[:5])


@pytest.mark.parametrize(
    "values", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"x", b"y"]], ids=["list", "struct", "bytes"]
)
def test_nested_values_are_refused_by_name(values) -> None:
    with pytest.raises(TableError, match="'deep' holds values of type"):
        TableEncoder.fit({"x": [1.0, 2.0], "deep": values})


def test_tables_without_anything_to_learn_are_refused() -> None:
    with pytest.raises(TableError, match="no rows"):
        TableEncoder.fit({"x": []})
    with pytest.raises(TableError, match="no columns"):
        TableEncoder.fit(pa.table({}))
    with pytest.raises(
        TableError, match="No column is left to learn from: 'id' looks like an id"
    ):
        TableEncoder.fit({"id": np.arange(N)})
    with pytest.raises(TableError, match=r"no column 'agee' \(did you mean 'age'"):
        TableEncoder.fit({"age": [1, 2]}, kinds={"agee": "number"})


def test_a_broken_state_is_a_model_error(table) -> None:
    state = TableEncoder.fit(table).state()
    (age, *_) = state["columns"]
    for broken, words in (
        ({**state, "columns": [{"kind": "number"}]}, "name is missing"),
        (
            {**state, "columns": [{**age, "scale": 0.0}]},
            r"'age': scale must be greater",
        ),
        ({**state, "columns": [{**age, "kind": "numbr"}]}, "no kind 'numbr'; did you mean"),
        ({**state, "columns": [{**age, "kind": ["number"]}]}, r"no kind \['number'\]"),
        ({**state, "columns": [age, age]}, "a column appears twice"),
        ({**state, "dropped": {"age": "is dull"}}, "a column appears twice"),
        ({**state, "columns": []}, "columns must have at least 1"),
        ({**state, "n_rows": 1.5}, "n_rows must be a whole number"),
        ({}, "columns is missing"),
    ):
        with pytest.raises(ModelError, match=words):
            TableEncoder.from_state(broken)


def changes(state: Any) -> Iterator[Any]:
    """Yield what is left when one thing in a state is gone, or another value."""
    if isinstance(state, dict):
        for key, value in state.items():
            yield {other: state[other] for other in state if other != key}
            yield from ({**state, key: changed} for changed in changes(value))
    if isinstance(state, list | tuple):
        for i, value in enumerate(state[:3]):
            yield [*state[:i], *state[i + 1 :]]
            yield from ([*state[:i], changed, *state[i + 1 :]] for changed in changes(value))
    yield from (None, True, -1, 0, 3, 0.5, 1e308, -1e308, float("nan"), 10**400)
    yield from ("", "x", "AAAA", "s", [], [1.0], ["x"], {}, {"x": 1})


def test_a_changed_state_is_refused_or_works(table, rng) -> None:
    """Whatever stands in a model, scoring never ends in an error of another library."""
    words = rng.choice(["a b", "b c", "c d e", ""], N)
    whole = table.append_column("said", pa.array(words)).append_column("x", pa.array([1] * N))
    encoder = TableEncoder.fit(whole, kinds={"said": "text"}, embedder="hashing")
    assert {column.kind for column in encoder.columns} == {
        *("number", "category", "boolean", "timestamp", "text", "constant")
    }
    rows, n_loaded, n_refused = whole.slice(0, 20), 0, 0
    for place, own in enumerate(encoder.state()["columns"]):
        state = {**encoder.state(), "columns": [own]}
        for changed in changes(own):
            try:
                found = TableEncoder.from_state({**state, "columns": [changed]})
            except ModelError:
                n_refused += 1
                continue
            n_loaded += 1
            (column,) = found.columns
            assert column.summary() is not None
            if own["kind"] == "text" and column.embedder != "hashing":
                continue
            named = rows.select([place]).rename_columns([column.name])
            try:
                encoded = found.transform(named, warn=lambda words: None)
                expected = found.decode(encoded)
            except (TableError, ModelError):
                continue
            assert np.isfinite(encoded).all()
            blame = np.ones((len(encoded), found.n_features))
            column.reasons(found.read(named)[column.name], expected[column.name], blame, blame)
    assert n_loaded > 100
    assert n_refused > 1000


def test_no_rows_give_no_rows(table) -> None:
    encoder = TableEncoder.fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.transform(table.slice(0, 0)).shape == (0, encoder.n_features)


def test_encoded_rows_decode_to_what_was_read(table) -> None:
    encoder = TableEncoder.fit(table)
    decoded, read = encoder.decode(encoder.transform(table)), encoder.read(table)
    there = ~np.isnan(read["age"])
    np.testing.assert_allclose(decoded["age"][there], read["age"][there], rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(decoded["amount"], read["amount"], rtol=1e-4)
    for name in ("country", "member"):
        assert (decoded[name] == read[name]).all()
    (when,) = (column for column in encoder.columns if column.name == "when")
    first, last = (np.datetime64(int(at), "s") for at in when.bounds)
    inner = np.clip(read["when"], first, last)  # at the ends of the period, days are alike
    assert 0.4 < (inner == read["when"]).mean() < 0.6
    assert np.abs(decoded["when"] - inner).astype(int).max() <= 86_400


def test_the_last_quarter_of_the_period_goes_on() -> None:
    """What comes later has company: it must not stand out by when it is."""
    day = np.timedelta64(1, "D")
    days = np.datetime64("2026-01-01T08:00") + np.arange(200) * day
    encoder = TableEncoder.fit({"at": days, "x": np.zeros(200)})
    position = encoder.transform({"at": days, "x": np.zeros(200)})[:, 0]
    later = encoder.transform({"at": days[-1:] + 300 * day, "x": np.zeros(1)})[0, 0]
    assert (position[150:] == later).all()
    assert (position[:50] == position[0]).all()
    assert (np.diff(position[50:150]) > 0).all()
    assert later < 6, "that would be never seen"


@pytest.mark.parametrize(
    ("days", "sides"),
    [
        (0.3, ()),
        (3, ("time of day",)),
        (20, ("time of day", "weekday")),
    ],
)
def test_rows_after_a_short_period_do_not_stand_out(rng, days, sides) -> None:
    start = np.datetime64("2026-03-02T00:00:00", "s")
    seconds = (np.linspace(0, days, N) * 86_400).astype("timedelta64[s]")
    encoder = TableEncoder.fit({"at": start + seconds, "x": rng.normal(size=N)})
    at = encoder.columns[0]
    assert tuple(dict.fromkeys(n.partition(" (")[0] for n in at.features)) == (
        "position",
        *sides,
    )
    later = start + seconds + np.timedelta64(7 * 52, "D")
    found = encoder.transform({"at": later, "x": np.zeros(N)})[:, : len(at.features)]
    assert (found[:, 0] == 0).all()
    century = encoder.transform({"at": [dt.datetime(2126, 3, 2)], "x": [0.0]})
    assert century[0, 0] > 5
    assert TableEncoder.from_state(encoder.state()).columns == encoder.columns


@pytest.mark.parametrize("days", [3, 20, 100])
def test_times_in_milliseconds_survive_a_file(rng, days) -> None:
    """Means of them round, so that what is constant may seem to vary."""
    for _ in range(20):
        after = (rng.random(300) * days * 86_400_000).astype("m8[ms]")
        encoder = TableEncoder.fit({"at": np.datetime64("2026-03-02", "ms") + after})
        (at,) = encoder.columns
        assert at.scale > 3600
        assert TableEncoder.from_state(encoder.state()).columns == encoder.columns


def test_periods_of_pandas_are_times() -> None:
    months = pd.period_range("2020-01", periods=40, freq="M")
    encoder = TableEncoder.fit(pd.DataFrame({"month": months}))
    assert encoder.read(pd.DataFrame({"month": months}))["month"][1] == np.datetime64(
        "2020-02-01"
    )


def test_hashes_and_codes_are_no_free_text() -> None:
    encoder = TableEncoder.fit(
        {
            "sha": [hashlib.sha256(bytes([i % 256, i // 256])).hexdigest() for i in range(N)],
            "code": [f"v{i // 2}" for i in range(N)],
            "note": [f"the customer called {i} times and was sad" for i in range(N)],
            "x": np.arange(N) / 7,
        }
    )
    assert encoder.dropped == {
        "sha": "holds hashes",
        "code": "holds codes",
        "note": "is free text",
    }
