from __future__ import annotations

import datetime as dt
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import aloof
from aloof.exceptions import AloofWarning, DriftWarning, TableError
from aloof.models.table import TableModel, fit
from aloof.models.table import streaming as module
from aloof.models.table.drift import (
    NumberProfile,
    Profile,
    RowSample,
    find_drift,
    flagged_drift,
)
from aloof.models.table.encoder import TableEncoder

START = dt.datetime(2025, 1, 1)
pytestmark = pytest.mark.filterwarnings("ignore::aloof.exceptions.LabelWarning")


def rows(n: int, seed: int, *, days: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    at = zip(rng.integers(0, 90, n), rng.normal(13, 3, n) % 24, strict=True)
    return pa.table(
        {
            "key": np.arange(n),
            "amount": rng.lognormal(2.5, 1, n),
            "fee": np.where(rng.random(n) < 0.9, 0, rng.lognormal(1, 0.5, n)),
            "age": pa.array(rng.integers(18, 90, n), mask=rng.random(n) < 0.1),
            "city": rng.choice(["Oslo", "Bern", "Rome"], n, p=[0.6, 0.3, 0.1]),
            "shop": [f"s{k}" for k in rng.zipf(1.6, n) % 40],
            "currency": ["EUR"] * n,
            "time": [START + dt.timedelta(days=days + int(d), hours=float(h)) for d, h in at],
        }
    )


def put(name: str, values: Any, seed: int = 1, n: int = 1000) -> pa.Table:
    table = rows(n, seed)
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def numbers(name: str, n: int = 1000) -> Any:
    return rows(n, 1)[name].to_numpy()


@pytest.fixture(scope="module")
def model() -> TableModel:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AloofWarning)
        return fit(
            rows(2500, 0),
            id="key",
            kinds={"shop": "category"},
            members=2,
            max_epochs=12,
        )


def said(model: TableModel, table: pa.Table, **options: Any) -> list[str]:
    """Return what `score` warns of."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        model.score(table, reasons=0, **options)
    return [str(each.message) for each in issued if isinstance(each.message, DriftWarning)]


def test_fresh_rows_of_the_same_source_rarely_warn(model: TableModel) -> None:
    sizes = (12, 40, 150, 600, 2500)
    warned = [seed for seed in range(100) if model.drift(rows(sizes[seed % 5], 1000 + seed))]
    assert len(warned) <= 5, warned


def test_shifts_by_chance_are_told_apart_from_gross_ones(model: TableModel) -> None:
    """Other random columns: each model has splits of its own data as fresh files."""
    rng = np.random.default_rng(5)
    warned = 0
    for _ in range(8):
        whole = pa.table(
            {
                "gamma": rng.gamma(0.3, 5, 900),
                "few": rng.integers(0, 4, 900),
                "normal": rng.normal(size=900),
                "letters": rng.choice(list("abcdefghijklmnop"), 900),
                "codes": [f"c{k}" for k in rng.zipf(1.4, 900)],
            }
        )
        order = rng.permutation(900)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AloofWarning)
            tiny = {"members": 1, "max_epochs": 1, "hidden": (4,), "latent_dim": 2}
            model = fit(
                whole.take(order[:400]), method="vae", kinds={"codes": "category"}, **tiny
            )
        for part in (order[400:450], order[450:600], order[600:]):
            warned += bool(model.drift(whole.take(part)))
    assert warned <= 1  # of 24


GROSS = {
    "another unit": (
        put("amount", 100 * numbers("amount")),
        "unit",
        r"`amount`: the median is 1,\d\d\d \(1\d\.\d* in training\), about 100 times as much",
    ),
    "another unit, mostly zeros": (
        put("fee", numbers("fee") / 1000),
        "unit",
        r"`fee`: the median \(without zeros\) is 0\.00\d+ \(2\.\d+ in training\), about 1/1,0",
    ),
    "the other sign": (put("amount", -numbers("amount")), "unit", "the sign has flipped"),
    "another level": (
        put("amount", 40 + numbers("amount")),
        "values",
        r"`amount`: the median is 5\d\.\d* \(1\d",
    ),
    "a longer tail": (
        put("amount", np.where(np.arange(1000) % 5 == 0, 1e6, numbers("amount"))),
        "values",
        r"`amount`: 20 % of the values are above [\d,.]+, the largest in training",
    ),
    "fewer zeros": (
        put("fee", np.random.default_rng(3).lognormal(1, 0.5, 1000)),
        "values",
        r"`fee`: 0 % of the values are 0; in training, 9\d.* % were",
    ),
    "all missing": (
        put("age", [None] * 1000),
        "missing",
        "`age`: all values are missing",
    ),
    "some missing for the first time": (
        put("amount", pa.array(numbers("amount"), mask=np.arange(1000) % 10 == 0)),
        "missing",
        r"`amount`: 10 % of the values are missing; in training, none were",
    ),
    "new categories": (
        put("city", np.where(np.arange(1000) % 20 == 0, "Graz", "Oslo")),
        "new values",
        r"`city`: [45].* % of the values were never seen in training: 'Graz'",
    ),
    "other shares": (
        put("city", np.where(np.arange(1000) % 10 == 0, "Oslo", "Bern")),
        "shares",
        r"`city`: 'Bern' makes up (89|90).* % of the values \((29|3\d).* in training\)",
    ),
    "no longer constant": (
        put("currency", np.where(np.arange(1000) % 10 == 0, "USD", "EUR")),
        "new values",
        r"`currency`: .* % of the rows have another value, such as 'USD'; in training it",
    ),
    "another dialect": (
        put(
            "amount", [f"{x:.2f}" + " or so" * (i % 2) for i, x in enumerate(numbers("amount"))]
        ),
        "unreadable",
        r"`amount`: .* of the values cannot be read, such as '[\d.]+ or so'",
    ),
    "later": (
        rows(1000, 1, days=500),
        "times",
        r"`time`: times are 15 months later than in training \(2025-01-01 to 2025-03-31\)",
    ),
    "much earlier": (rows(1000, 1, days=-2000), "times", r"times are 5 years earlier"),
}


@pytest.mark.parametrize("case", GROSS)
def test_gross_changes_are_named(model: TableModel, case: str) -> None:
    table, what, words = GROSS[case]
    found = model.drift(table)
    assert [each.what for each in found] == [what], found
    assert found[0].column is not None
    assert re.search(words, found[0].words), found[0].words
    assert "\n" not in found[0].words


@pytest.mark.parametrize("n", [30, 100, 5000])
def test_another_unit_is_seen_in_files_of_any_size(model: TableModel, n: int) -> None:
    table = put("amount", 100 * numbers("amount", n), n=n)
    assert [each.what for each in model.drift(table)] == ["unit"]


def test_a_year_later_is_no_cliff(model: TableModel) -> None:
    shares = {}
    for days in (0, 330, 365, 1000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DriftWarning)
            scored = model.score(rows(2000, 7, days=days), reasons=0)
        shares[days] = float(np.mean(scored["is_anomaly"].to_numpy()))
    assert max(shares.values()) < 0.03, shares  # the threshold is 1 %
    assert max(shares.values()) - min(shares.values()) < 0.01


def test_a_wrong_century_stands_out_and_nothing_jumps(model: TableModel) -> None:
    table = rows(300, 3)
    times = table["time"].to_pylist()
    times[0], times[1] = dt.datetime(1970, 1, 1), dt.datetime(2099, 12, 31)
    table = table.set_column(table.column_names.index("time"), "time", pa.array(times))
    flagged = model.score(table, reasons=1)
    assert flagged["is_anomaly"].to_pylist()[:2] == [True, True]
    assert "outside the training period" in flagged["reason_1"].to_pylist()[0]
    column = next(c for c in model.encoder.columns if c.name == "time")
    days = np.arange(0, 4000).astype("timedelta64[D]") + np.datetime64("2025-04-01T12:00:00")
    out = np.empty((4000, len(column.features)), np.float32)
    column.encode(pa.array(days), out, lambda values, what: None)
    assert np.abs(np.diff(out[:, 0])).max() < 0.02


def test_a_column_that_is_gone(model: TableModel) -> None:
    table = rows(1000, 1)
    with pytest.raises(TableError, match=r"no column 'city'.*--missing-columns fill") as error:
        model.score(table.drop_columns("city"))
    assert "did you mean" not in str(error.value)  # nothing is like it
    account = table.rename_columns(["key", "account", *table.column_names[2:]])
    with pytest.raises(TableError, match="no column 'amount'") as error:
        model.score(account)
    assert "did you mean" not in str(error.value)
    renamed = table.rename_columns([n.replace("city", "City ") for n in table.column_names])
    with pytest.raises(TableError, match="did you mean 'City '"):
        model.score(renamed)
    for name in ("city", "amount", "age", "time", "currency", "shop"):
        words = said(model, table.drop_columns(name), missing_columns="fill")
        assert words == [
            f"`{name}`: the column is gone; its values count as "
            + ("missing" if name == "age" else "typical")
        ]
        with pytest.warns(DriftWarning):
            filled = model.score(table.drop_columns(name), missing_columns="fill")
        assert np.mean(filled["is_anomaly"].to_numpy()) < 0.05
    with pytest.raises(TableError, match="none of the columns"):
        model.score(pa.table({"x": [1], "key": [1]}), missing_columns="fill")
    with pytest.raises(TableError, match="refused or filled"):
        model.score(table, missing_columns="drop")  # type: ignore[arg-type]


def test_a_new_column_is_said_once(model: TableModel) -> None:
    table = rows(50, 1)
    table = table.append_column("extra", table["age"])
    with pytest.warns(aloof.exceptions.TableWarning, match="'extra'") as issued:
        model.score(table)
    assert len(issued) == 1
    assert [(each.column, each.what) for each in model.drift(table)] == [
        ("extra", "new column")
    ]


def test_more_flagged_than_the_threshold_explains() -> None:
    def words(n: int, k: int, rate: float | None, **options: Any) -> list[str]:
        given = {"anomalies": 0.0, "together": False} | options
        return [each.words for each in flagged_drift(n, k, rate, **given)]

    assert words(8000, 1200, 0.01)[0].startswith("1,200 of 8,000 rows are flagged (15")
    assert "aims at 1 % of normal rows" in words(8000, 1200, 0.01)[0]
    assert words(8000, 400, 0.01) == []  # some anomalies may be real
    assert words(8000, 1200, 0.01, anomalies=0.1) == []  # as in training
    assert words(10, 2, 0.01) == []  # chance
    assert words(8000, 1200, None) == []
    assert words(8000, 1200, 0.0, together=True) == []
    assert words(8000, 4000, 0.0, together=True)[0].startswith("4,000 of 8,000")
    assert words(8000, 3, 0.01)[0].startswith("only 3 of 8,000 rows are flagged")
    assert words(100, 0, 0.01) == []


def test_a_file_is_compared_as_a_frame_is_also_after_a_killed_run(
    model: TableModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = put("amount", 100 * numbers("amount", 3000), n=3000)
    pq.write_table(table, tmp_path / "new.parquet")
    monkeypatch.setattr(module, "_ROWS", 700)
    with pytest.warns(DriftWarning):
        whole = model.score_file(tmp_path / "new.parquet", tmp_path / "a.parquet")
    assert {(each.column, each.what) for each in whole.drift} == {
        ("amount", "unit"),
        (None, "flagged"),
    }
    assert pq.read_schema(tmp_path / "a.parquet").metadata is None

    done: list[int] = []

    def killed(rows_done: int, total: int | None) -> None:
        done.append(rows_done)
        if rows_done >= 1400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.score_file(tmp_path / "new.parquet", tmp_path / "b.parquet", progress=killed)
    with pytest.warns(DriftWarning):
        again = model.score_file(tmp_path / "new.parquet", tmp_path / "b.parquet", resume=True)
    assert again.n_resumed == 1400
    assert again.drift == whole.drift
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_every_way_to_score_says_it(model: TableModel) -> None:
    table = put("amount", 100 * numbers("amount"))
    assert len(said(model, table)) == 2  # the unit, and the share that is flagged
    with pytest.warns(DriftWarning, match="another unit"):
        model.most_anomalous(table, 3)


def test_a_sample_is_the_same_in_parts_and_bounded(model: TableModel) -> None:
    once, parts = RowSample(model.encoder), RowSample(model.encoder)
    table = rows(9000, 4)
    once.add(table)
    for begin in range(0, 9000, 1000):
        parts.add(table.slice(begin, 1000))
    assert once.n_rows == parts.n_rows == 9000
    assert once.rows().num_rows == parts.rows().num_rows == 2048
    assert "key" not in once.rows().column_names


def test_the_distance_of_numbers_is_that_of_kolmogorov_and_smirnov() -> None:
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(0)
    learned = rng.normal(size=100_000)
    profile = NumberProfile.of(learned)
    assert profile is not None
    for shift in (0.0, 0.3, 2.0):
        new = rng.normal(shift, 1, 3000)
        reference = ks_2samp(learned, new).statistic
        assert profile.distance(new) == pytest.approx(reference, abs=0.035)
        assert profile.distance(new) <= reference + 0.01
    few = np.repeat([1.0, 2.0, 3.0], 1000)
    tied = NumberProfile.of(few)
    assert tied is not None
    assert tied.distance(few) == 0.0
    assert tied.median == 2.0


def test_a_profile_is_kept_and_read_strictly(model: TableModel, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    loaded = TableModel.load(tmp_path / "model")
    assert loaded.profile == model.profile
    table = put("amount", 100 * numbers("amount"))
    assert loaded.drift(table) == model.drift(table)
    assert model.profile is not None
    state = json.loads(json.dumps(model.profile.state()))
    assert Profile.from_state(state) == model.profile
    state["numbers"]["amount"]["quantiles"].reverse()
    with pytest.raises(ValueError, match="must be in order"):
        Profile.from_state(state)
    with pytest.raises(ValueError, match="n_rows"):
        Profile.from_state({"n_rows": 0})


def test_older_models_have_no_profile(model: TableModel) -> None:
    older = replace(model, profile=None)
    assert [each.what for each in older.drift(put("age", [None] * 1000))] == ["missing"]
    assert older.drift(put("amount", 100 * numbers("amount"))) == ()


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_halves_of_real_data(load: Any) -> None:
    """One half is learned from; parts of the other are said to be the same, times 100 not."""
    table = pa.table({f"x{i}": values for i, values in enumerate(load().data.T)})
    half, warned, n_files = table.num_rows // 2, 0, 0
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(table.num_rows)
        learned = table.take(order[:half])
        encoder = TableEncoder.fit(learned)
        profile = Profile.of(encoder, learned)
        for n in (20, 80, half):
            fresh = table.take(order[half : half + n])
            warned += bool(find_drift(encoder, profile, fresh, names=fresh.column_names))
            n_files += 1
    assert warned <= n_files / 20
    column = "x2"
    values = pa.array(100 * fresh[column].to_numpy())
    moved = fresh.set_column(2, column, values)
    found = find_drift(encoder, profile, moved, names=moved.column_names)
    assert [(each.column, each.what) for each in found] == [(column, "unit")]
