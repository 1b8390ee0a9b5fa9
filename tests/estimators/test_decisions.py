"""Calibration, p-values and thresholds of fitted detectors."""

from __future__ import annotations

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, kstest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import aloof
from aloof import VAE, DualPriorVAE, fit_many
from aloof.calibration import Threshold
from aloof.exceptions import CalibrationWarning, LabelError, LabelWarning, ModelError

MIX = np.random.default_rng(99).normal(size=(3, 6))
SHORT: dict[str, Any] = {"n_members": 2, "hidden": (16,), "latent_dim": 4, "random_state": 0}


def normal(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(n, 3)) @ MIX + 0.3 * rng.normal(size=(n, 6))


def anomalous(n: int, rng: np.random.Generator) -> np.ndarray:
    return 4 * rng.normal(size=(n, 6)) + 6


@pytest.fixture(scope="module")
def blob() -> bytes:
    rng = np.random.default_rng(0)
    X = np.r_[normal(400, rng), anomalous(8, rng)]
    y = np.r_[np.zeros(400), np.ones(8)]
    return pickle.dumps(DualPriorVAE(**SHORT, max_epochs=30).fit(X, y))


@pytest.fixture
def model(blob: bytes) -> DualPriorVAE:
    fitted: DualPriorVAE = pickle.loads(blob)
    return fitted


@pytest.fixture
def calibrated(model: DualPriorVAE) -> DualPriorVAE:
    return model.calibrate(normal(999, np.random.default_rng(1)))


@pytest.mark.parametrize("target", [0.05, 0.2])
def test_false_discovery_rate_is_kept(model: DualPriorVAE, target: float) -> None:
    """200 fresh calibration sets and sets of rows, of which one in nine is an anomaly."""
    rng = np.random.default_rng(2)
    shares, found = [], []
    truth = np.arange(180) >= 160
    for _ in range(200):
        model.calibrate(normal(400, rng)).set_threshold(fdr=target)
        flagged = model.predict(np.r_[normal(160, rng), anomalous(20, rng)]) == -1
        shares.append((flagged & ~truth).sum() / max(1, flagged.sum()))
        found.append(flagged[truth].mean())
    assert np.mean(shares) <= target + 3 * np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) > target / 2
    assert np.mean(found) > 0.9


def test_p_values_of_fresh_normal_rows_are_uniform(model: DualPriorVAE) -> None:
    rng = np.random.default_rng(3)
    p = np.array(
        [model.calibrate(normal(99, rng)).p_values(normal(1, rng))[0] for _ in range(400)]
    )
    assert kstest(p - rng.random(len(p)) / 100, "uniform").pvalue > 0.01


@pytest.mark.parametrize(
    ("rule", "rate"), [({"share": 0.05}, 0.05), ({"budget": "20/1000"}, 0.02)], ids=str
)
def test_rates_hold_on_held_out_normal_rows(
    calibrated: DualPriorVAE, rule: dict[str, Any], rate: float
) -> None:
    scores = calibrated.training_scores_.copy()
    X = normal(4000, np.random.default_rng(4))
    share = (calibrated.set_threshold(**rule).predict(X) == -1).mean()
    # The level itself has an error from 999 rows, the share another from 4,000.
    error = np.sqrt(rate * (1 - rate) * (1 / 999 + 1 / 4000))
    assert abs(share - rate) < 3.5 * error
    assert calibrated.threshold_ == Threshold(**rule)
    assert np.array_equal(calibrated.training_scores_, scores)


def test_value_is_the_anomaly_score_to_be_above(model: DualPriorVAE) -> None:
    X = normal(50, np.random.default_rng(5))
    scores = model.anomaly_score(X)
    level = float(np.median(scores))
    assert model.set_threshold(value=level) is model
    assert model.offset_ == -level
    assert np.array_equal(model.predict(X) == -1, scores > level)


def test_without_calibration_the_training_rows_stand_in(model: DualPriorVAE) -> None:
    assert model.calibration_scores_ is None
    assert model.threshold_ == Threshold(share=0.01)
    scores = model.training_scores_[:400]
    for rule in ({"share": 0.1}, {"budget": "10/100"}):
        model.set_threshold(**rule)  # type: ignore[arg-type]
        assert (scores > -model.offset_).sum() == 40
    wide = VAE(**SHORT, max_epochs=3, contamination=0.1)
    X = normal(100, np.random.default_rng(0))
    assert wide.fit(X).offset_ == wide.set_threshold(share=0.1).offset_


@pytest.mark.parametrize("rule", [{"share": 0.02}, {"budget": "2/100"}, {"value": 1.0}])
def test_fixed_rules_agree_with_the_decision_function(
    calibrated: DualPriorVAE, rule: dict[str, Any]
) -> None:
    rng = np.random.default_rng(6)
    X = np.r_[normal(300, rng), anomalous(10, rng)]
    calibrated.set_threshold(**rule)
    flagged = calibrated.predict(X) == -1
    assert np.array_equal(flagged, calibrated.decision_function(X) < 0)
    assert 0 < flagged.sum() < 300
    assert np.array_equal(flagged, [calibrated.predict(row[None])[0] == -1 for row in X])
    if "value" not in rule:
        assert np.array_equal(flagged, calibrated.p_values(X) <= 0.02)


def test_false_discoveries_are_decided_together(calibrated: DualPriorVAE) -> None:
    rng = np.random.default_rng(7)
    X = np.r_[normal(300, rng), anomalous(30, rng)]
    flagged = calibrated.set_threshold(fdr=0.1).predict(X) == -1
    p = calibrated.p_values(X)
    assert np.array_equal(flagged, false_discovery_control(p) <= 0.1)
    assert 20 < flagged.sum() < 60
    # A discovery needs a negative decision function; that alone is not enough.
    assert (calibrated.decision_function(X)[flagged] < 0).all()
    assert (calibrated.decision_function(X) < 0).sum() > flagged.sum()
    assert np.array_equal(calibrated.as_pyod().predict(X), flagged.astype(int))


def test_labelled_anomalies_never_enter(model: DualPriorVAE) -> None:
    rng = np.random.default_rng(8)
    X, bad = normal(200, rng), anomalous(20, rng)
    alone = model.calibrate(X).calibration_scores_
    assert alone is not None
    assert np.array_equal(alone, np.sort(model.anomaly_score(X)))
    y = np.r_[np.zeros(100), np.full(100, np.nan), np.ones(20)]
    labelled = model.calibrate(np.r_[X, bad], y).calibration_scores_
    assert np.array_equal(labelled, alone)  # type: ignore[arg-type]
    with pytest.raises(LabelError, match="one label for each row"):
        model.calibrate(X, [0, 1])
    assert np.array_equal(model.calibration_scores_, alone)  # type: ignore[arg-type]
    with pytest.warns(LabelWarning) as caught:
        model.calibrate(X, np.full(200, 7))
    assert caught[0].filename == __file__


def test_calibration_moves_the_level_and_keeps_the_rule(model: DualPriorVAE) -> None:
    X = normal(500, np.random.default_rng(9))
    model.set_threshold(share=0.1)
    before = model.offset_
    model.calibrate(X)
    assert model.threshold_ == Threshold(share=0.1)
    assert model.offset_ != before
    assert model.calibration_scores_ is not None
    assert -model.offset_ == model.calibration_scores_[-50]  # floor(0.1 x 501)
    model.set_threshold(value=3.0).calibrate(X)
    assert model.offset_ == -3.0


def test_an_offset_changed_by_hand_is_a_value(calibrated: DualPriorVAE) -> None:
    X = normal(50, np.random.default_rng(5))
    calibrated.set_threshold(fdr=0.1)
    calibrated.offset_ = 1e9
    assert calibrated.threshold_ == Threshold(value=-1e9)
    assert (calibrated.predict(X) == -1).all()


def test_what_needs_calibration_says_so(model: DualPriorVAE) -> None:
    for call in (lambda: model.p_values([[0.0] * 6]), lambda: model.set_threshold(fdr=0.1)):
        with pytest.raises(NotFittedError, match=r"not calibrated.*Call calibrate\(X\)"):
            call()
    assert model.threshold_ == Threshold(share=0.01)
    fresh = VAE()
    for method in (fresh.calibrate, fresh.p_values, fresh.explain):
        with pytest.raises(NotFittedError, match="not fitted"):
            method([[0.0]])
    with pytest.raises(NotFittedError, match="not fitted"):
        fresh.set_threshold(share=0.1)
    with pytest.raises(ValueError, match="exactly one rule"):
        model.set_threshold()
    with pytest.raises(ValueError, match="got share and value"):
        model.set_threshold(share=0.1, value=1.0)


def test_too_few_calibration_rows_are_warned_about(model: DualPriorVAE) -> None:
    X = normal(50, np.random.default_rng(1))
    with pytest.warns(CalibrationWarning, match="50 calibration rows .* at least 99") as seen:
        model.calibrate(X)
    assert seen[0].filename == __file__
    with pytest.warns(CalibrationWarning, match="199 rows if one row") as seen:
        model.set_threshold(fdr=0.05)
    assert seen[0].filename == __file__
    with pytest.warns(CalibrationWarning, match="at least 9,999"):
        model.set_threshold(budget="1/10000")
    assert model.calibration_scores_ is not None
    assert -model.offset_ == model.calibration_scores_[-1]
    model.set_threshold(share=0.02)  # 50 rows are enough for that


def test_too_few_training_rows_are_called_that(model: DualPriorVAE) -> None:
    with pytest.warns(CalibrationWarning, match="400 training rows .* at least 999"):
        model.set_threshold(share=0.001)


@pytest.mark.parametrize("together", [False, True], ids=["fit", "fit_many"])
def test_a_fit_forgets_calibration_and_rule(calibrated: DualPriorVAE, together: bool) -> None:
    X = normal(100, np.random.default_rng(0))
    calibrated.set_threshold(fdr=0.1)
    calibrated.set_params(max_epochs=3, contamination=0.05)
    fit: Any = partial(calibrated.fit, X)
    if together:
        fit = partial(fit_many, [calibrated], [(X, None)])
    with pytest.warns(LabelWarning, match="plain VAE"):
        fit()
    assert calibrated.calibration_scores_ is None
    assert calibrated.threshold_ == Threshold(share=0.05)
    assert (calibrated.predict(X) == -1).sum() == 5


def test_clones_know_nothing_and_pickles_know_all(calibrated: DualPriorVAE) -> None:
    X = np.r_[normal(50, np.random.default_rng(0)), anomalous(9, np.random.default_rng(1))]
    calibrated.set_threshold(fdr=0.1)
    again = pickle.loads(pickle.dumps(calibrated))
    assert again.threshold_ == Threshold(fdr=0.1)
    assert np.array_equal(again.predict(X), calibrated.predict(X))
    assert np.array_equal(again.p_values(X), calibrated.p_values(X))
    assert not hasattr(clone(calibrated), "calibration_scores_")


RULES: list[dict[str, Any]] = [
    {"share": 0.02},
    {"budget": "30/1000"},
    {"fdr": 0.1},
    {"value": 1.25},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_saved_models_keep_calibration_rule_and_level(
    calibrated: DualPriorVAE, rule: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X = np.r_[normal(50, rng), anomalous(9, rng)]
    calibrated.set_threshold(**rule).save(tmp_path / "m")
    loaded: Any = aloof.load(tmp_path / "m")
    assert loaded.threshold_ == Threshold(**rule)
    assert loaded.offset_ == calibrated.offset_
    assert np.array_equal(loaded.calibration_scores_, calibrated.calibration_scores_)
    assert np.array_equal(loaded.predict(X), calibrated.predict(X))
    assert np.array_equal(loaded.p_values(X), calibrated.p_values(X))
    for other in RULES:
        assert (
            loaded.set_threshold(**other).offset_ == calibrated.set_threshold(**other).offset_
        )
    manifest = json.loads((tmp_path / "m" / "manifest.json").read_text())
    assert manifest["threshold"]["rule"] == rule


def test_saved_models_without_calibration_take_other_rules(
    model: DualPriorVAE, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    loaded = DualPriorVAE.load(tmp_path / "m")
    assert loaded.calibration_scores_ is None
    assert loaded.threshold_ == Threshold(share=0.01)
    assert loaded.set_threshold(share=0.2).offset_ == model.set_threshold(share=0.2).offset_
    with pytest.raises(NotFittedError, match="not calibrated"):
        loaded.p_values([[0.0] * 6])


def edited(folder: Path, **changes: Any) -> DualPriorVAE:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["threshold"].update(changes)
    path.write_text(json.dumps(manifest))
    return DualPriorVAE.load(folder)


def test_an_edited_score_is_a_value(calibrated: DualPriorVAE, tmp_path: Path) -> None:
    calibrated.set_threshold(fdr=0.1).save(tmp_path / "m")
    loaded = edited(tmp_path / "m", anomaly_score=0.5)
    assert loaded.threshold_ == Threshold(value=0.5)
    assert loaded.offset_ == -0.5


def test_an_edited_rule_is_followed(calibrated: DualPriorVAE, tmp_path: Path) -> None:
    calibrated.save(tmp_path / "m")
    for rule in RULES:
        loaded = edited(tmp_path / "m", rule=rule)
        assert loaded.threshold_ == Threshold(**rule)
        assert loaded.offset_ == calibrated.set_threshold(**rule).offset_
    assert edited(tmp_path / "m", rule=None).threshold_.rule == "value"
    with pytest.raises(ModelError, match=r"threshold.rule: .*between 0 and 1"):
        edited(tmp_path / "m", rule={"share": 2})
    with pytest.raises(ModelError, match=r"threshold.rule must be a mapping"):
        edited(tmp_path / "m", rule="share")
    with pytest.raises(ModelError, match="Both the anomaly_score and the rule"):
        edited(tmp_path / "m", rule={"share": 0.1}, anomaly_score=0.5)


def test_an_edited_rule_that_cannot_be_followed(model: DualPriorVAE, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    with pytest.raises(ModelError, match="needs a calibrated detector"):
        edited(tmp_path / "m", rule={"fdr": 0.1})
