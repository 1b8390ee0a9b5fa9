"""Models of tables as ONNX files: from the text of a cell to the decision."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import aloof
from aloof.exceptions import ModelError, TableError

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

from table_cells import as_table, cells, odd_cells  # noqa: E402

from aloof.export import export, to_onnx  # noqa: E402
from aloof.lite import load  # noqa: E402

SMALL = {"method": "vae", "members": 1, "max_epochs": 2, "seed": 0, "calibration": 0}
METHODS = {"vae": {}, "mml": {}, "dp": {}, "mml-dp": {}, "committee": {"n_trees": 20}}


def scored(model, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.score(table, reasons=0)
    return {name: found[name].to_numpy(zero_copy_only=False) for name in found.column_names}


@pytest.mark.parametrize("method", METHODS)
def test_cells_have_the_scores_that_the_model_gives_them(method, fit_table, tmp_path):
    model = fit_table(method, **METHODS[method])
    kinds = {column.kind for column in model.encoder.columns}
    assert kinds == {"number", "category", "boolean", "timestamp", "constant"}
    done = export(model, tmp_path / "model.onnx")
    assert done.off < 1e-5
    assert done.n_tried >= 1000
    lite = load(tmp_path / "model.onnx")
    for columns in (cells(1), odd_cells(), {k: v[:1] for k, v in cells(2).items()}):
        found, wanted = lite.score(columns), scored(model, as_table(columns))
        np.testing.assert_allclose(
            found["anomaly_score"], wanted["anomaly_score"], rtol=1e-5, err_msg=method
        )
        assert (found["is_anomaly"] == wanted["is_anomaly"]).all()
        step = 1 / (lite.notes["n_calibration"] + 1)
        assert np.abs(found["p_value"] - wanted["p_value"]).max() <= 1.01 * step
    assert wanted["p_value"].max() <= 1


def test_what_cannot_be_read_is_told(table_model, tmp_path):
    export(table_model, tmp_path / "model.onnx")
    unread = {}
    load(tmp_path / "model.onnx").score(odd_cells(), unread=unread)
    assert set(unread) == {"amount", "age", "ratio", "when", "clock"}
    assert str(unread["amount"]) == (
        "Column 'amount': 2 values cannot be read as numbers ('abc', '12 kg'), treated as "
        "missing."
    )
    assert unread["when"].examples == ["31.02.2024", "soon"]


def test_values_need_not_be_text(tmp_path):
    rng = np.random.default_rng(0)
    times = np.datetime64("2024-01-01T00:00:00") + rng.integers(0, 10**7, 120)
    table = pa.table(
        {
            "x": rng.normal(size=120),
            "n": rng.integers(0, 5, 120),
            "flag": rng.uniform(size=120) < 0.5,
            "code": rng.choice([1.0, 2.0, 12.5], 120).astype(str),
            "at": pa.array(times),
            "day": pa.array(times.astype("datetime64[D]")),
        }
    )
    model = aloof.fit(table, kinds={"code": "category"}, **SMALL)
    export(model, tmp_path / "model.onnx")
    lite, rows = load(tmp_path / "model.onnx"), table.to_pydict()
    wanted = model.anomaly_score(table)
    np.testing.assert_allclose(lite.score(rows)["anomaly_score"], wanted, rtol=1e-5)
    arrays = {**rows, "x": np.array(rows["x"]), "n": np.array(rows["n"])}
    np.testing.assert_allclose(lite.score(arrays)["anomaly_score"], wanted, rtol=1e-5)


def test_any_runtime_can_call_the_graph_by_the_names_of_the_columns(table_model, tmp_path):
    export(table_model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    kinds = {each.name: (each.type, each.shape) for each in session.get_inputs()}
    assert kinds["amount"] == ("tensor(double)", ["rows"])
    assert kinds["when"] == ("tensor(double)", ["rows"])
    assert kinds["city"] == ("tensor(string)", ["rows"])
    assert set(kinds) == set(table_model.columns)
    outputs = {each.name: (each.type, each.shape) for each in session.get_outputs()}
    assert outputs == {
        "anomaly_score": ("tensor(double)", ["rows"]),
        "p_value": ("tensor(double)", ["rows"]),
        "is_anomaly": ("tensor(bool)", ["rows"]),
    }
    one = {
        name: np.array([""], object) if kind == "tensor(string)" else np.array([np.nan])
        for name, (kind, _) in kinds.items()
    }
    (score, *_) = session.run(None, one)
    nothing = pa.table({name: pa.nulls(1, pa.string()) for name in table_model.columns})
    np.testing.assert_allclose(score, table_model.anomaly_score(nothing), rtol=1e-5)


def test_no_rows_and_columns_that_lack(table_model, tmp_path):
    export(table_model, tmp_path / "model.onnx")
    lite = load(tmp_path / "model.onnx")
    assert len(lite.score({name: [] for name in table_model.columns})["is_anomaly"]) == 0
    columns = cells(1)
    del columns["city"]
    with pytest.raises(TableError, match="no column 'city', which the model was trained with"):
        lite.score(columns)
    with pytest.raises(TableError, match="The model takes a table"):
        lite.score(np.zeros((2, 3)))
    with pytest.raises(TableError, match="different lengths"):
        lite.score({**cells(1), "city": ["Oslo"]})


def test_columns_may_be_called_anything(tmp_path):
    rng = np.random.default_rng(0)
    names = ["rows", "encode/Concat_1", "aloof.digest\x12@" + "0" * 64, "größe [m²]", "a b"]
    table = pa.table({name: rng.normal(size=60) for name in names})
    model = aloof.fit(table, **SMALL)
    export(model, tmp_path / "model.onnx")
    found = load(tmp_path / "model.onnx").score(table.to_pydict())
    np.testing.assert_allclose(found["anomaly_score"], model.anomaly_score(table), rtol=1e-5)


def test_columns_that_a_graph_cannot_hold_are_refused_by_name():
    from aloof.models.table.columns import NumberColumn, TextColumn

    rng = np.random.default_rng(0)
    table = pa.table({"p_value": rng.normal(size=60), "x": rng.normal(size=60)})
    model = aloof.fit(table, **SMALL)
    with pytest.raises(ModelError, match="'p_value' has the name of an answer"):
        to_onnx(model)

    class Own(NumberColumn):
        kinds = ("own",)

    model = aloof.fit(table.rename_columns(["y", "x"]), **SMALL)
    first = model.encoder.columns[0]
    object.__setattr__(first, "__class__", Own)
    with pytest.raises(ModelError, match="'y' is of the kind 'own', which is not aloof's own"):
        to_onnx(model)
    text = TextColumn("note", "hash", "AAAA", "AAAA", (1.0,), 0.0, 0.0, 0.0)
    object.__setattr__(model.encoder, "columns", (text,))
    with pytest.raises(ModelError, match=r"'note' is text.*Fit again without it: drop="):
        to_onnx(model)


def test_the_same_model_makes_the_same_bytes(table_model):
    assert to_onnx(table_model) == to_onnx(table_model)
