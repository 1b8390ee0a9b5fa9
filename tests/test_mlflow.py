from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import aloof
from aloof.exceptions import ModelError
from aloof.models.table import TableModel, fit

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed (aloof[mlflow])")
# Warnings of MLflow and what it imports are not ours.
pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"members": 1, "max_epochs": 2, "hidden": (4,), "latent_dim": 2}


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    amount[:3] *= 1e5
    return pd.DataFrame(
        {
            "payment": [f"p{i}" for i in range(n)],
            "amount": amount,
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 90, n)),
            "city": rng.choice(["Oslo", "Bern"], n),
            "online": rng.random(n) < 0.5,
            "time": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9e6, n), "s"),
            "fraud": np.arange(n) < 3,
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    return fit(rows(300, 0), label="fraud", id="payment", method="dp", **TINY)


@pytest.fixture
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    before, drawn = mlflow.get_tracking_uri(), random.getstate()
    mlflow.set_tracking_uri(tmp_path / "runs")
    yield
    mlflow.set_tracking_uri(before)
    random.setstate(drawn)  # MLflow draws names of runs


@pytest.mark.usefixtures("_store")
def test_a_logged_model_predicts_what_the_model_says(model: TableModel, tmp_path: Path) -> None:
    with mlflow.start_run():
        info = aloof.mlflow.log_model(model, "payments")
    frame = rows(40, 1).drop(columns="fraud")
    loaded = mlflow.pyfunc.load_model(info.model_uri)
    pd.testing.assert_frame_equal(loaded.predict(frame), model.score(frame))
    few = loaded.predict(frame.drop(columns="payment"), params={"reasons": 1})
    assert [*few] == ["anomaly_score", "p_value", "is_anomaly", "reason_1"]
    again = aloof.mlflow.load_model(info.model_uri)
    assert isinstance(again, TableModel)
    pd.testing.assert_frame_equal(again.score(frame), model.score(frame))
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=info.model_uri))
    kept = {path.name for path in folder.rglob("*") if path.is_file()}
    assert {"MLmodel", "manifest.json", "model.safetensors"} <= kept
    assert not any(name.endswith((".pkl", ".pickle", ".joblib")) for name in kept)


@pytest.mark.usefixtures("_store")
def test_the_signature_has_the_columns_of_the_model(model: TableModel) -> None:
    signature = aloof.mlflow.signature_of(model)
    assert signature.inputs.input_names() == ["payment", *model.columns]
    types = {c["name"]: c["type"] for c in signature.inputs.to_dict()}
    assert types["amount"] == types["age"] == "double"
    assert types["city"] == "any"
    names = signature.outputs.input_names()
    assert names == [*model.score(rows(5, 1).drop(columns=["payment"]).assign(payment=0))][1:]


def test_mlflow_models_predict(model: TableModel, tmp_path: Path) -> None:
    """The command of MLflow, in a process of its own, from JSON to JSON."""
    aloof.mlflow.save_model(model, tmp_path / "saved")
    frame = rows(6, 1).drop(columns=["fraud"])
    frame["time"] = frame["time"].astype(str)
    text = json.dumps({"dataframe_split": json.loads(frame.to_json(orient="split"))})
    (tmp_path / "in.json").write_text(text)
    words = ["models", "predict", "-m", str(tmp_path / "saved"), "--env-manager", "local"]
    words += ["-i", str(tmp_path / "in.json"), "-o", str(tmp_path / "out.json")]
    done = subprocess.run(
        [sys.executable, "-m", "mlflow", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "MLFLOW_ALLOW_FILE_STORE": "true"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())["predictions"]
    expected = model.score(frame)
    assert [row["anomaly_score"] for row in found] == expected["anomaly_score"].tolist()
    assert [row["payment"] for row in found] == frame["payment"].tolist()


def test_a_detector_of_arrays(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    detector = aloof.VAE(n_members=1, max_epochs=1, random_state=0).fit(X)
    aloof.mlflow.save_model(detector, tmp_path / "saved")
    loaded = mlflow.pyfunc.load_model(str(tmp_path / "saved"))
    found = loaded.predict(X)
    np.testing.assert_array_equal(found["anomaly_score"], detector.anomaly_score(X))


def test_what_was_not_logged_by_us_is_refused(tmp_path: Path) -> None:
    other = mlflow.models.Model()
    other.add_flavor("python_function", loader_module="json")
    (tmp_path / "other").mkdir()
    other.save(tmp_path / "other" / "MLmodel")
    with pytest.raises(ModelError, match="not logged by aloof"):
        aloof.mlflow.load_model(str(tmp_path / "other"))


@pytest.mark.usefixtures("_store")
def test_the_code_of_the_document() -> None:
    text = (Path(__file__).parents[1] / "docs" / "tracking.md").read_text()
    blocks = re.findall(r"```python(?: mlflow)?\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec("\n".join(blocks), names)
    assert names["again"].score(names["frame"]).equals(names["model"].score(names["frame"]))
    assert [*names["scores"]][-1] == "reason_1"
