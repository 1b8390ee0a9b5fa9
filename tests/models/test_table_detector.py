"""Mixed frames in pipelines and searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

import aloof
from aloof import DualPriorVAE, TableDetector
from aloof.exceptions import LabelError, TableError
from aloof.metrics import scorer

SHORT: dict[str, Any] = {"n_members": 1, "max_epochs": 5, "hidden": (16,), "random_state": 0}
SHORT |= {"contamination": 0.05}
FOLDS = StratifiedKFold(2, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def data() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    n = 400
    bad = np.arange(n) % 20 == 0
    frame = pd.DataFrame(
        {
            "amount": rng.normal(50, 5, n) + 60 * bad,
            "city": rng.choice(["Oslo", "Bern", "Rome"], n),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 90, n), "D"),
        },
        index=rng.permutation(n),
    )
    frame.loc[frame.index[3:30], "city"] = None
    return frame, pd.Series(bad.astype(int), index=frame.index, name="fraud")


def test_it_is_what_fit_makes(data: tuple[pd.DataFrame, pd.Series], tmp_path: Path) -> None:
    frame, y = data
    detector = TableDetector(detector=DualPriorVAE(**SHORT)).fit(frame, y)
    short = {"members": 1, "seed": 0, "max_epochs": 5, "hidden": (16,), "contamination": 0.05}
    model = aloof.fit(frame.assign(fraud=y), label="fraud", **short)
    scores = model.anomaly_score(frame)
    np.testing.assert_array_equal(detector.anomaly_score(frame), scores)
    np.testing.assert_array_equal(detector.predict(frame) == -1, model.is_anomaly(frame))
    below = detector.decision_function(frame) < 0
    np.testing.assert_array_equal(below, model.is_anomaly(frame))
    assert list(detector.feature_names_in_) == ["amount", "city", "day"]
    assert detector.model_.label == "fraud"
    assert detector.explain(frame[:1]).reasons(1)[0][0].startswith("`amount`")
    detector.save(tmp_path / "model")
    np.testing.assert_array_equal(aloof.load(tmp_path / "model").anomaly_score(frame), scores)


def test_searches_and_pipelines(data: tuple[pd.DataFrame, pd.Series]) -> None:
    frame, y = data
    detector = TableDetector(detector=DualPriorVAE(**SHORT))
    assert cross_val_score(detector, frame, y, cv=FOLDS).min() > 0.9
    grid = {"detector__latent_dim": [2, 8], "drop": [(), ("amount",)]}
    search = GridSearchCV(detector, grid, cv=FOLDS, scoring=scorer("average_precision"))
    search.fit(frame, y)
    assert search.best_params_["drop"] == ()  # what tells them apart
    pipeline = make_pipeline(
        FunctionTransformer(lambda rows: rows.drop(columns="day")), detector
    )
    assert pipeline.fit(frame, y).score(frame, y) > 0.9
    assert clone(detector).get_params()["detector__max_epochs"] == 5
    assert get_tags(detector).estimator_type == "outlier_detector"


def test_labels(data: tuple[pd.DataFrame, pd.Series]) -> None:
    frame, y = data
    plain = TableDetector(detector=DualPriorVAE(**SHORT)).fit(frame, y)
    words = y.map({1: "fraud", 0: "ok"})
    named = TableDetector(detector=DualPriorVAE(labels={"fraud": 1, "ok": 0}, **SHORT))
    assert named.fit(frame, words).score(frame, words) == plain.score(frame, y)
    with pytest.raises(LabelError, match="y holds strings"):
        plain.fit(frame, words)
    result = cross_val_score(plain, frame, y, scoring=scorer("f1"), cv=FOLDS)
    assert np.isfinite(result).all()
    with pytest.warns(UserWarning, match=r"aloof.metrics.scorer\('roc_auc'\)"):
        assert np.isnan(cross_val_score(plain, frame, y, scoring="roc_auc", cv=FOLDS)).all()


def test_what_is_refused(data: tuple[pd.DataFrame, pd.Series]) -> None:
    frame, y = data
    with pytest.raises(TableError, match="must be one of aloof's"):
        TableDetector(detector="dp").fit(frame, y)  # type: ignore[arg-type]
    with pytest.raises(TableError, match="the table is already scaled"):
        TableDetector(detector=DualPriorVAE(standardize=True)).fit(frame, y)
    with pytest.raises(TableError, match=r"got a Series. .*TableDetector\(\).fit"):
        aloof.fit(frame, label=y)
    both = frame.assign(fraud=y)
    with pytest.raises(TableError, match="X has a column 'fraud', the same name as the labels"):
        TableDetector().fit(both, y)
    dropped = TableDetector(detector=DualPriorVAE(**SHORT), drop=("fraud",)).fit(both, y)
    assert "fraud" not in dropped.model_.columns
