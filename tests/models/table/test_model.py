from __future__ import annotations

import datetime as dt
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import aloof
from aloof import DualPriorVAE
from aloof.exceptions import (
    CalibrationWarning,
    LabelError,
    LabelWarning,
    ModelError,
    TableError,
    TableWarning,
)
from aloof.models.table import TableEncoder, TableModel, fit, open_source, to_table, write_table

# Small and short: what is tested are facts that hold for any model.
SHORT = {"method": "dp", "members": 2, "max_epochs": 12, "hidden": (32,), "latent_dim": 6}


def orders(n: int, seed: int) -> pa.Table:
    """Return rows of every kind of column, with two common causes."""
    rng = np.random.default_rng(seed)
    size, habit = rng.normal(size=n), rng.random(n) < 0.4
    clock = np.clip(rng.normal(13, 1.5, n) + 3 * habit, 8, 20)
    start = dt.datetime(2024, 1, 1)
    days = np.sort(rng.integers(0, 80, n))
    return pa.table(
        {
            "order": [f"A{i:05d}" for i in range(n)],
            "time": [
                start + dt.timedelta(days=int(d), hours=float(h))
                for d, h in zip(days, clock, strict=True)
            ],
            "amount": np.exp(4 + 0.8 * size + 0.1 * rng.normal(size=n)).round(2),
            "items": np.clip(np.rint(5 + 2 * size + rng.normal(size=n)), 1, None).astype(int),
            "weight": 2 + size + habit + 0.3 * rng.normal(size=n),
            "country": np.where(habit, "NO", rng.choice(["SE", "DK", "FI"], n)),
            "member": pa.array(habit ^ (rng.random(n) < 0.05)),
            "age": pa.array(rng.normal(45, 12, n).round(), mask=rng.random(n) < 0.1),
            "bad": pa.nulls(n, pa.int64()),
        }
    )


def labelled(n: int, n_bad: int, seed: int) -> pa.Table:
    """Return rows of which the first few are labelled as bad: huge and at night."""
    table = orders(n, seed)
    bad = np.arange(n) < n_bad
    amount = np.where(bad, 40 * table["amount"].to_numpy(), table["amount"].to_numpy())
    table = table.set_column(2, "amount", pa.array(amount))
    return table.set_column(
        table.num_columns - 1, "bad", pa.array([1 if b else None for b in bad], pa.int64())
    )


@pytest.fixture(scope="module")
def fitted() -> TableModel:
    """A model nobody may change."""
    return fit(labelled(900, 9, seed=0), label="bad", id="order", **SHORT)


@pytest.fixture
def model(fitted: TableModel, tmp_path: Path) -> TableModel:
    """A model of one's own."""
    fitted.save(tmp_path / "own")
    return TableModel.load(tmp_path / "own")


def changed(table: pa.Table, name: str, values: Any) -> pa.Table:
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.array(values, table[name].type))


def test_what_it_was_made_from(fitted: TableModel) -> None:
    assert fitted.columns == ("time", "amount", "items", "weight", "country", "member", "age")
    assert fitted.training == {
        "source": None,
        "n_rows": 900,
        "n_used": 900,
        "n_anomalies": 9,
        "n_labelled_normal": 0,
        "n_unlabelled": 891,
        "n_training": 713,
        "n_calibration": 178,
        "seed": 0,
        "warnings": [],
        "made": {
            "data": None,
            "options": {"label": "bad", "method": "dp", "id": "order", "members": 2},
            "parameters": {"hidden": [32], "latent_dim": 6, "max_epochs": 12},
        },
    }
    assert isinstance(fitted.detector, DualPriorVAE)
    assert len(fitted.detector.member_seeds_) == 2
    assert str(fitted.threshold) == "1 % of normal rows"


def test_it_is_the_detector_over_the_encoder_calibrated_with_rows_held_out() -> None:
    """Written out by hand, it gives the same scores, p-values and decisions."""
    table = labelled(600, 6, seed=1)
    model = fit(table, label="bad", id="order", seed=3, **SHORT)
    scores = model.detector.anomaly_score(model.encode(table))
    assert np.array_equal(model.anomaly_score(table), scores)
    held = model.detector.calibration_scores_
    assert held is not None
    assert len(held) == 119
    in_calibration = np.isin(scores, held)
    assert in_calibration.sum() == 119
    assert not in_calibration[:6].any()  # labelled anomalies
    train = table.filter(pa.array(~in_calibration))
    y = np.array([1.0 if v else np.nan for v in train["bad"].to_pylist()])
    names = ["order", "bad"]
    encoder = TableEncoder.fit(train.drop_columns(names), np.where(y == 1, 1, -1))
    assert encoder == model.encoder
    detector = DualPriorVAE(
        n_members=2,
        max_epochs=12,
        hidden=(32,),
        latent_dim=6,
        standardize=False,
        random_state=3,
    )
    detector.fit(encoder.transform(train.drop_columns(names)), y)
    detector.calibrate(
        encoder.transform(table.filter(pa.array(in_calibration)).drop_columns(names))
    )
    assert np.array_equal(
        detector.anomaly_score(encoder.transform(table.drop_columns(names))), scores
    )
    X = encoder.transform(table.drop_columns(names))
    assert np.array_equal(model.p_values(table), detector.p_values(X))
    assert np.array_equal(model.is_anomaly(table), detector.predict(X) == -1)
    model.set_threshold(fdr=0.2)
    detector.set_threshold(fdr=0.2)
    assert np.array_equal(model.is_anomaly(table), detector.predict(X) == -1)


FLAVOURS = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "arrow": lambda table: table,
    "dict": lambda table: {name: table[name] for name in table.column_names},
}


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_score_gives_back_the_callers_flavour(fitted: TableModel, flavour: str) -> None:
    table = orders(60, seed=2)
    table = changed(table, "country", ["XX", *table["country"].to_pylist()[1:]])
    frame = FLAVOURS[flavour](table)
    scored = fitted.score(frame, reasons=2)
    assert type(scored) is type(frame)
    names = ["order", "anomaly_score", "p_value", "is_anomaly", "reason_1", "reason_2"]
    assert list(to_table(scored).column_names) == names
    assert np.array_equal(np.asarray(scored["anomaly_score"]), fitted.anomaly_score(table))
    assert np.array_equal(np.asarray(scored["p_value"]), fitted.p_values(table))
    flagged = np.asarray(scored["is_anomaly"])
    assert flagged[0]
    assert str(scored["reason_1"][0]) == "`country` 'XX', never seen in training"
    told = ~pd.isna(pd.Series(list(np.asarray(scored["reason_1"]))))
    assert np.array_equal(told.to_numpy(), flagged)


def test_a_pandas_index_is_kept(fitted: TableModel) -> None:
    frame = orders(20, seed=3).to_pandas()
    frame.index = pd.Index([f"row {i}" for i in range(20)])
    assert fitted.score(frame).index.equals(frame.index)


def test_an_array_can_be_fitted_and_scored() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    with pytest.warns(LabelWarning, match="plain VAE"):
        model = fit(X, **SHORT)
    assert model.columns == ("x0", "x1", "x2", "x3")
    X[0, 2] = 25
    scored = model.score(X)
    assert scored["reason_1"][0].startswith("`x2` 25 where about")


def test_names_of_no_use_may_be_there_or_not_and_in_any_order(fitted: TableModel) -> None:
    table = orders(30, seed=4)
    scores = fitted.anomaly_score(table)
    without = table.drop_columns(["bad", "order"])
    assert np.array_equal(fitted.anomaly_score(without), scores)
    assert np.array_equal(
        fitted.anomaly_score(without.select(without.column_names[::-1])), scores
    )
    with pytest.warns(TableWarning, match="'extra'"):
        fitted.anomaly_score(table.append_column("extra", table["age"]))
    with pytest.raises(TableError, match=r"no column 'amount'.*did you mean 'amounts'"):
        fitted.anomaly_score(
            table.rename_columns([n.replace("amount", "amounts") for n in table.column_names])
        )
    with pytest.raises(TableError, match=r"no column 'order' for the id"):
        fitted.score(without)


def test_dropped_columns_play_no_part() -> None:
    table = labelled(600, 5, seed=5)
    model = fit(table, label="bad", id="order", drop=["age", "time"], **SHORT)
    assert "age" not in model.columns
    other = changed(table, "age", [1e6] * 600)
    assert np.array_equal(model.anomaly_score(other), model.anomaly_score(table))


def test_no_rows_no_scores(fitted: TableModel) -> None:
    nothing = orders(3, seed=0).slice(0, 0)
    assert fitted.anomaly_score(nothing).shape == (0,)
    assert fitted.score(nothing).num_rows == 0


PLANTED: dict[str, Any] = {
    "amount": lambda rows: [60 * v for v in rows],
    "items": lambda rows: [40] * len(rows),
    "weight": lambda rows: [v + 9 for v in rows],
    "country": lambda rows: ["XX"] * len(rows),
    "age": lambda rows: [160.0] * len(rows),
    "time": lambda rows: [v.replace(hour=3) for v in rows],
    "member": lambda rows: [None] * len(rows),
}


@pytest.mark.parametrize("name", PLANTED)
@pytest.mark.parametrize("method", ["dp", "vae"])
def test_a_planted_column_is_the_first_reason(
    name: str, method: str, planted: dict[str, TableModel]
) -> None:
    table = orders(200, seed=6)
    table = changed(table, name, PLANTED[name](table[name].to_pylist()))
    found = planted[method].explain(table)
    first = [found.columns[i] for i in found.order(1)[:, 0]]
    assert first.count(name) >= 0.9 * len(first)
    assert all(told[0].startswith(f"`{name}` ") for told in found.reasons() if name == told[0])
    assert np.abs(found.contributions.sum(axis=1) - found.score).max() < 1e-6
    assert np.array_equal(found.score, planted[method].anomaly_score(table))


@pytest.fixture(scope="module")
def planted() -> dict[str, TableModel]:
    table = labelled(1200, 12, seed=0)
    settings = {**SHORT, "max_epochs": 40}
    return {
        method: fit(table, label="bad", id="order", **{**settings, "method": method})  # type: ignore[arg-type]
        for method in ("dp", "vae")
    }


def test_what_was_expected_is_what_the_row_had_before(planted: dict[str, TableModel]) -> None:
    """Not what the networks make of the planted value, which they follow."""
    before = orders(200, seed=6)
    table = changed(before, "items", [40] * 200)
    model = planted["dp"]
    found = model.explain(table)
    error = np.abs(found.expected["items"] - before["items"].to_numpy())
    assert np.median(error) < 2  # their standard deviation is 2.2
    assert found.values["items"].tolist() == [40.0] * 200


def test_explanations_of_a_row_do_not_depend_on_the_others(fitted: TableModel) -> None:
    table = orders(40, seed=7)
    whole = fitted.explain(table)
    alone = fitted.explain(table.slice(11, 1))
    assert np.array_equal(whole.contributions[11], alone.contributions[0])
    assert whole.reasons()[11] == alone.reasons()[0]


def test_columns_of_little_weight_are_no_reasons(fitted: TableModel) -> None:
    table = orders(50, seed=8)
    table = changed(table, "amount", [1e7] * 50)
    found = fitted.explain(table)
    for told, size in zip(found.reasons(7), found.contributions, strict=True):
        assert len(told) == (np.sort(size)[::-1] >= 0.1 * size.max()).sum()
        assert len(told) < 7


def test_evaluate_agrees_with_scikit_learn(model: TableModel) -> None:
    table = orders(300, seed=9)
    truth = np.arange(300) < 20
    amount = np.where(truth, 9.0, 1.0) * table["amount"].to_numpy()
    table = changed(table, "amount", amount)
    labels = [int(t) if i % 3 else None for i, t in enumerate(truth)]
    found = model.set_threshold(share=0.05).evaluate(changed(table, "bad", labels))
    known = np.arange(300) % 3 > 0
    scores = model.anomaly_score(table)
    assert found.auroc == roc_auc_score(truth[known], scores[known])
    assert found.average_precision == average_precision_score(truth[known], scores[known])
    flagged = model.is_anomaly(table)
    assert found.true_positives == (flagged & truth & known).sum()
    assert found.false_positives == (flagged & ~truth & known).sum()
    assert found.false_negatives == (~flagged & truth & known).sum()
    assert found.true_negatives == (~flagged & ~truth & known).sum()
    assert found.n_unlabelled == 100
    assert found.recall == found.true_positives / found.n_anomalies
    assert json.loads(json.dumps(found.as_dict())) == found.as_dict()


def test_evaluate_needs_labels_of_both_kinds(fitted: TableModel) -> None:
    table = orders(20, seed=0)
    with pytest.raises(LabelError, match="no rows labelled as anomalies"):
        fitted.evaluate(table)
    with pytest.raises(LabelError, match="no rows labelled as normal"):
        fitted.evaluate(changed(table, "bad", [1] * 3 + [None] * 17))
    with pytest.raises(TableError, match="no column 'bad' for the labels"):
        fitted.evaluate(table.drop_columns("bad"))
    with pytest.raises(LabelError, match="without labels"):
        replace(fitted, label=None).evaluate(table)
    words = pa.array(["odd"] * 5 + ["fine"] * 15)
    other = fitted.with_label("verdict", "odd")
    assert other.evaluate(table.append_column("verdict", words)).n_anomalies == 5


def test_one_folder_holds_it_all(fitted: TableModel, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["manifest.json", "model.safetensors"]
    table = orders(50, seed=10)
    for back in (aloof.load(tmp_path / "model"), TableModel.load(tmp_path / "model")):
        assert isinstance(back, TableModel)
        assert back.encoder == fitted.encoder
        for name in ("label", "id", "drop", "anomaly_value", "training", "threshold"):
            assert getattr(back, name) == getattr(fitted, name)
        assert back.score(table).equals(fitted.score(table))
    back.save(tmp_path / "again")
    for name in names:
        again = (tmp_path / "again" / name).read_bytes()
        assert again == (tmp_path / "model" / name).read_bytes()


def test_the_table_in_the_manifest_is_sealed_and_the_threshold_is_not(
    fitted: TableModel, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["threshold"]["rule"] = {"budget": "50/1000"}
    path.write_text(json.dumps(manifest))
    assert str(TableModel.load(tmp_path / "model").threshold) == "50 alerts in 1,000 rows"
    manifest["table"]["encoder"]["columns"][1]["scale"] *= 2
    path.write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="was changed"):
        aloof.load(tmp_path / "model")


def test_a_folder_of_another_kind_is_said(fitted: TableModel, tmp_path: Path) -> None:
    fitted.detector.save(tmp_path / "detector")
    assert isinstance(aloof.load(tmp_path / "detector"), DualPriorVAE)
    with pytest.raises(ModelError, match=r"not hold a model of a table.*aloof fit"):
        TableModel.load(tmp_path / "detector")
    fitted.save(tmp_path / "table")
    with pytest.raises(ModelError, match="without encoder"):
        aloof.load(tmp_path / "table", encoder=lambda *_: None, decoder=lambda *_: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match=r"not an aloof model.*Name the folder"):
        aloof.load(tmp_path)


def test_one_seed_one_model_to_the_byte_whatever_the_checkpoint(tmp_path: Path) -> None:
    table = labelled(600, 4, seed=11)
    for name, checkpoint in (("a", None), ("b", tmp_path / "fit.ckpt")):
        fit(table, label="bad", id="order", checkpoint=checkpoint, **SHORT).save(
            tmp_path / name
        )
    for file in ("manifest.json", "model.safetensors"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    other = fit(table, label="bad", id="order", seed=1, **SHORT)
    assert not np.array_equal(
        other.anomaly_score(table), TableModel.load(tmp_path / "a").anomaly_score(table)
    )


def test_a_file_is_fitted_as_the_frame_is(tmp_path: Path) -> None:
    table = labelled(600, 5, seed=12)
    path = tmp_path / "train.parquet"
    write_table(path, table)
    of_frame = fit(table, label="bad", id="order", **SHORT)
    for source in (path, str(path), open_source(path)):
        of_file = fit(source, label="bad", id="order", **SHORT)
        assert of_file.encoder == of_frame.encoder
        assert np.array_equal(of_file.anomaly_score(table), of_frame.anomaly_score(table))
        assert of_file.training["source"] == str(path)
    text = tmp_path / "train.csv"
    write_table(text, table)
    of_text = fit(text, label="bad", id="order", **SHORT)
    assert of_text.columns == of_frame.columns
    kinds = [column.kind for column in of_text.encoder.columns]
    assert kinds == [column.kind for column in of_frame.encoder.columns]
    read = of_text.anomaly_score(open_source(text).read())
    assert np.allclose(read, of_text.anomaly_score(table), rtol=1e-5)


def test_of_a_file_too_large_a_sample_with_all_labelled_anomalies_is_used(
    tmp_path: Path,
) -> None:
    write_table(tmp_path / "train.csv", labelled(900, 9, seed=13))
    model = fit(tmp_path / "train.csv", label="bad", id="order", max_rows=600, **SHORT)
    facts = model.training
    assert (facts["n_rows"], facts["n_used"], facts["n_anomalies"]) == (900, 609, 9)
    assert facts["n_training"] + facts["n_calibration"] == 600


def test_few_rows_leave_few_to_calibrate_with_and_say_so() -> None:
    table = labelled(60, 3, seed=14)
    with pytest.warns(CalibrationWarning, match="11 calibration rows are too few"):
        model = fit(table, label="bad", id="order", **SHORT)
    assert any("too few" in words for words in model.training["warnings"])
    tiny = {"a": [1.0, 2.0], "b": ["x", "y"], "bad": [0, 0]}
    with pytest.warns() as caught:
        model = fit(tiny, label="bad", **SHORT)
    assert any("hold any out" in str(w.message) for w in caught)
    assert list(model.score(tiny)) == ["anomaly_score", "is_anomaly", "reason_1", "reason_2"]
    for refused in (lambda: model.p_values(tiny), lambda: model.set_threshold(fdr=0.1)):
        with pytest.raises(TableError, match="no calibration rows"):
            refused()
    with pytest.raises(TableError, match=r"labelled as anomalies \(better 1,000\); got 1 row"):
        fit({"a": [1.0, 2.0], "bad": [1, 0]}, label="bad")


def test_without_calibration_all_rows_are_trained_on() -> None:
    model = fit(labelled(600, 4, seed=15), label="bad", id="order", calibration=0, **SHORT)
    assert model.training["n_calibration"] == 0
    assert model.detector.calibration_scores_ is None
    assert "p_value" not in model.score(orders(5, seed=0)).column_names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": "bda"}, r"no column 'bda' for the labels \(did you mean 'bad'"),
        ({"id": "ordr"}, r"no column 'ordr' for the id \(did you mean 'order'"),
        ({"drop": ["agee"]}, r"no column 'agee' for the drop \(did you mean 'age'"),
        ({"method": "svm"}, "one of vae, mml, dp, mml-dp.*; got 'svm'"),
        ({"calibration": 1.0}, "less than 1"),
        ({"label": "country"}, r"Cannot read the labels in column 'country': 'DK', 'FI', 'SE'"),
        ({"n_members": 3}, "set 'n_members': here it is called members"),
        ({"epochs": 3}, "set 'epochs': here it is called max_epochs"),
        ({"max_epoch": 3}, r"has no parameter 'max_epoch' \(did you mean 'max_epochs'"),
        ({"encoder": print, "decoder": print}, "its own networks"),
        ({"anomaly_value": "1"}, "needs the column"),
        ({"kinds": {"agee": "number"}}, r"'agee' \(did you mean 'age'"),
        ({"label": "bad", "anomaly_value": "2"}, r"No row has the label '2'.*'1'"),
    ],
)
def test_what_cannot_be_fitted_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TableError, LabelError), match=message):
        fit(labelled(50, 3, seed=0), **options)


def test_what_is_odd_about_a_table_is_said_and_kept() -> None:
    table = labelled(600, 4, seed=16).append_column(
        "note", pa.array([f"n{i}" for i in range(600)])
    )
    with pytest.warns(TableWarning, match="'note' holds ids") as told:
        model = aloof.fit(table, label="bad", id="order", **SHORT)
    assert {warning.filename for warning in told} == {__file__}  # where it was called
    assert any("'note'" in words for words in model.training["warnings"])
    assert "note" not in model.columns
    kept = {"note": "category"}
    assert "note" in fit(table, label="bad", id="order", kinds=kept, **SHORT).columns  # type: ignore[arg-type]


def test_labels_of_any_spelling_train_the_same_model() -> None:
    table = labelled(600, 4, seed=17)
    bad = [i < 4 for i in range(600)]
    spellings: list[tuple[list[Any], str | None]] = [
        ([1.0 if b else 0.0 for b in bad], None),
        (["Yes" if b else "no" for b in bad], None),
        (["fraud" if b else "ok" for b in bad], "fraud"),
        (bad, None),
    ]
    place = table.column_names.index("bad")
    models = [
        fit(
            table.set_column(place, "bad", pa.array(values)),
            label="bad",
            id="order",
            anomaly_value=value,
            **SHORT,
        )
        for values, value in spellings
    ]
    for model in models:
        assert model.training["n_anomalies"] == 4
        assert model.training["n_labelled_normal"] == 596
        assert np.array_equal(model.anomaly_score(table), models[0].anomaly_score(table))


def test_tables_are_found_in_the_package_and_only_loaded_when_used() -> None:
    assert aloof.TableModel is TableModel
    assert {"fit", "TableModel"} <= set(dir(aloof))
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        aloof.fitt  # noqa: B018


def test_nothing_is_left_of_a_save_that_fails(fitted: TableModel, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="left alone"):
        fitted.save(tmp_path / "precious")
    shutil.rmtree(tmp_path / "precious")
    assert list(tmp_path.iterdir()) == []


def test_reconstructions_are_what_the_detector_expects(fitted: TableModel) -> None:
    encoded = fitted.encode(orders(30, seed=18))
    reconstructed = fitted.detector.reconstruct(encoded)
    expected = fitted.detector.explain(encoded).expected
    assert np.allclose(reconstructed, expected, rtol=1e-5, atol=1e-6)  # float32
    assert np.array_equal(fitted.detector.reconstruct(encoded[7:8])[0], reconstructed[7])


def test_another_label_is_told() -> None:
    rng = np.random.default_rng(0)
    bad = np.arange(200) % 20 == 0
    table = {"x": rng.normal(size=200), "y": bad.astype(int), "is_bad": np.where(bad, "j", "n")}
    with pytest.warns(TableWarning) as caught:
        fit(table, label="y", method="dp", members=1, max_epochs=1, contamination=0.05)
    (told,) = [str(one.message) for one in caught if "another label" in str(one.message)]
    assert "'is_bad' is 'j' in all rows labelled as anomalies and 'n' in all others" in told
