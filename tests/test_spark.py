from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import aloof
import aloof.spark
from aloof.exceptions import TableError
from aloof.models.table import TableModel, fit

if "ALOOF_ENGINES" not in os.environ:
    pytest.skip("starts Spark, which takes a minute; make engines", allow_module_level=True)
pytest.importorskip("pyspark", reason="pyspark is not installed (aloof[spark])")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)
pytestmark = pytest.mark.filterwarnings("ignore")


def rows(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n)
    if seed:
        amount[::17] *= 1e6
    return pa.table(
        {
            "key": np.arange(n),
            "amount": pa.array(amount, mask=rng.random(n) < 0.1),
            "city": rng.choice([*"ABC"], n),
            "time": pa.array(rng.integers(1.7e9, 1.71e9, n) * 1_000_000).cast(
                pa.timestamp("us", "UTC")
            ),
        }
    )


@pytest.fixture(scope="module")
def model() -> TableModel:
    tiny = {"members": 1, "max_epochs": 3, "hidden": (8,), "latent_dim": 2}
    return fit(rows(600, 0), method="vae", id="key", **tiny).set_threshold(share=0.05)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "37")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


def test_a_data_frame_is_scored_as_the_model_scores_it(
    spark: Any, model: TableModel, tmp_path: Path
) -> None:
    table = rows(300, 1)
    (tmp_path / "new").mkdir()
    pq.write_table(table, tmp_path / "new" / "1.parquet")
    frame = spark.read.parquet(str(tmp_path / "new")).repartition(2)
    model.save(tmp_path / "model")
    text = (Path(__file__).parents[1] / "docs" / "scaling.md").read_text()
    (block,) = re.findall(r"```python spark\n(.*?)```", text, re.DOTALL)
    for old, new in (("s3://bucket", str(tmp_path)), ("country", "time")):
        block = block.replace(old, new)
    block = block.replace('"model"', repr(str(tmp_path / "model")))
    exec(block, {"spark": spark})
    found = spark.read.parquet(str(tmp_path / "scores")).toArrow().sort_by("key")
    expected = model.score(table, keep=["time"])
    assert found.column_names == expected.column_names
    for name in expected.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    assert sum(expected["is_anomaly"].to_pylist()) > 10
    everything = aloof.spark.score(frame, model, keep_all=True, reasons=0)
    assert everything.columns == [*table.column_names, *expected.column_names[2:5]]
    assert [f.dataType for f in everything.schema][:4] == [f.dataType for f in frame.schema]


def test_a_folder_is_scored_to_the_same_bytes(
    spark: Any, model: TableModel, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    for seed in (1, 2):
        pq.write_table(rows(80, seed), tmp_path / "data" / f"{seed}.parquet")
    model.score_folder(tmp_path / "data", tmp_path / "here")
    done = model.score_folder(
        tmp_path / "data", tmp_path / "there", pool=aloof.spark.folder_pool(spark)
    )
    assert done.n_files == 2
    for path in (tmp_path / "here").glob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "there" / path.name).read_bytes()


def test_what_does_not_fit_is_said_before_anything_runs(spark: Any, model: TableModel) -> None:
    frame = spark.createDataFrame([(1, 2.0)], "key long, amount double")
    with pytest.raises(TableError, match="city"):
        aloof.spark.score(frame, model)
    with pytest.raises(TableError, match="no column 'cty'"):
        aloof.spark.score(frame, model, keep=["cty"])
