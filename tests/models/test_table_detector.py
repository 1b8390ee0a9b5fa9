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
from aloof.exceptions import LabelError, LabelWarning, TableError
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
    short |= {"method": "dp"}
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
    with pytest.raises(TableError, match=r"cannot be used with a table. .*TableDetector\(\)"):
        aloof.fit(frame, y)
    with pytest.raises(LabelError, match=r"380 of 400 rows are .*\(labels={1: 0, 0: 1}\)"):
        TableDetector().fit(frame, 1 - y)
    both = frame.assign(fraud=y)
    with pytest.raises(TableError, match="X has a column 'fraud', the same name as the labels"):
        TableDetector().fit(both, y)
    dropped = TableDetector(detector=DualPriorVAE(**SHORT), drop=("fraud",)).fit(both, y)
    assert "fraud" not in dropped.model_.columns


@pytest.fixture(scope="module")
def fresh() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows that were not used to fit, a tenth of them anomalies that are hard to tell."""
    rng = np.random.default_rng(1)
    bad = np.arange(600) % 10 == 0
    frame = pd.DataFrame(
        {
            "amount": rng.normal(50, 5, 600) + 15 * bad,
            "city": rng.choice(["Oslo", "Bern", "Rome"], 600),
            "day": pd.Timestamp("2026-02-01"),
        }
    )
    return frame, bad.astype(int)


def test_decisions_are_those_of_the_array_detectors(
    data: tuple[pd.DataFrame, pd.Series], fresh: tuple[pd.DataFrame, np.ndarray]
) -> None:
    """What it decides is what its detector decides about the encoded rows."""
    frame, y = data
    detector = TableDetector(detector=DualPriorVAE(**SHORT)).fit(frame, y)
    inner, rows = detector.model_.detector, detector.model_.encode(fresh[0])
    np.testing.assert_array_equal(detector.p_values(fresh[0]), inner.p_values(rows))
    assert not hasattr(detector, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba"):
        detector.predict_proba(fresh[0])
    assert detector.calibrate(*fresh) is detector
    assert len(detector.calibration_scores_) == 540
    found = detector.predict_proba(fresh[0])
    np.testing.assert_array_equal(found, inner.predict_proba(rows))
    assert found[:, 1].mean() == pytest.approx(0.1, abs=0.02)
    assert detector.set_threshold(budget="30/600") is detector
    assert detector.threshold_ == detector.model_.threshold
    flagged = detector.predict(fresh[0]) == -1
    np.testing.assert_array_equal(flagged, detector.model_.is_anomaly(fresh[0]))
    assert flagged.sum() > 30
    detector.offset_ = -1e9  # as scikit-learn's users do
    assert not detector.model_.is_anomaly(fresh[0]).any()
    assert detector.history_["loss"].shape == (5, 1)
    assert detector.model_.training["n_calibration"] == 540
    assert "model.calibrate(rows)" in detector.model_.describe()["again"]


def test_what_was_saved_is_loaded(
    data: tuple[pd.DataFrame, pd.Series],
    fresh: tuple[pd.DataFrame, np.ndarray],
    tmp_path: Path,
) -> None:
    frame, y = data
    words, meaning = y.map({1: "fraud", 0: "ok"}), {"fraud": 1, "ok": 0}
    detector = TableDetector(
        detector=DualPriorVAE(labels=meaning, **SHORT), drop=("day",), kinds={"city": "text"}
    )
    detector.set_params(kinds={"city": "category"}, calibration=0.3).fit(frame, words)
    detector.calibrate(fresh[0], np.where(fresh[1] == 1, "fraud", "ok"))
    detector.set_threshold(share=0.1).save(tmp_path / "model")
    loaded = TableDetector.load(tmp_path / "model", device="cpu")
    for method in ("anomaly_score", "predict", "predict_proba", "p_values"):
        expected = getattr(detector, method)(frame)
        np.testing.assert_array_equal(getattr(loaded, method)(frame), expected)
    assert loaded.score(frame, words) == detector.score(frame, words)
    assert (loaded.drop, loaded.calibration) == (("day",), 0.3)
    assert loaded.kinds == {"city": "category"}
    assert list(loaded.feature_names_in_) == ["amount", "city"]
    again = clone(loaded).fit(frame, words)  # the same parameters make the same model
    np.testing.assert_array_equal(again.anomaly_score(frame), detector.anomaly_score(frame))
    short = {"method": "dp", "members": 1, "max_epochs": 2, "contamination": 0.05}
    by_file = aloof.fit(frame.assign(fraud=y), label="fraud", **short)
    by_file.save(tmp_path / "other")
    scores = TableDetector.load(tmp_path / "other").anomaly_score(frame)
    np.testing.assert_array_equal(scores, by_file.anomaly_score(frame))


def test_labels_in_another_order(data: tuple[pd.DataFrame, pd.Series]) -> None:
    frame, y = data
    detector = TableDetector(detector=DualPriorVAE(**SHORT))
    with pytest.warns(LabelWarning, match=r"pass y.loc\[X.index\]"):
        detector.fit(frame, y.sort_index())
