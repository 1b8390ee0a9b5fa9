"""P-values that are uniform, and a false discovery rate that is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import false_discovery_control, kstest

from aloof.calibration import (
    Decision,
    Threshold,
    discoveries,
    p_values,
    rows_needed,
    smallest_p,
)


def reference_p(calibration: np.ndarray, scores: np.ndarray) -> np.ndarray:
    above = (calibration[None, :] >= scores[:, None]).sum(1)
    return (1 + above) / (1 + len(calibration))


def reference_rejections(p: np.ndarray, target: float) -> np.ndarray:
    """Benjamini-Hochberg as in the paper of 1995: the step-up rule, row by row."""
    order = np.argsort(p, kind="stable")
    rejected = np.zeros(len(p), bool)
    for i in range(len(p), 0, -1):
        if p[order[i - 1]] <= target * i / len(p):
            rejected[order[:i]] = True
            break
    return rejected


def decision(calibration: np.ndarray, target: float) -> Decision:
    rule = Threshold(fdr=target)
    return Decision(rule, rule.level(calibration), calibration)


def found(calibration: np.ndarray, scores: Any, target: float) -> np.ndarray:
    return decision(calibration, target).flag(scores)


@pytest.mark.parametrize("digits", [1, 9], ids=["many ties", "no ties"])
def test_p_values_are_ranks(digits: int) -> None:
    rng = np.random.default_rng(0)
    calibration = np.sort(rng.normal(size=57).round(digits))
    scores = np.r_[rng.normal(size=40), -9, 9, calibration[:5]].round(digits)
    p = p_values(calibration, scores)
    assert np.array_equal(p, reference_p(calibration, scores))
    assert p.min() == smallest_p(57) == 1 / 58
    assert p.max() == 1.0


@pytest.mark.parametrize("target", [0.01, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_levels_are_those_of_the_step_up_rule(target: float, share: float) -> None:
    rng = np.random.default_rng(1)
    for n, m in [(20, 30), (200, 50), (999, 400), (50, 1)]:
        calibration = np.sort(rng.normal(size=n))
        scores = rng.normal(size=m) + 4 * (rng.random(m) < share)
        p = p_values(calibration, scores)
        flagged = found(calibration, scores, target)
        assert np.array_equal(flagged, reference_rejections(p, target))
        assert np.array_equal(flagged, false_discovery_control(p) <= target)
        # In parts, as a stream comes.
        rule = decision(calibration, target)
        counts = np.sum([rule.counts(part) for part in np.array_split(scores, 7)], 0)
        assert counts.sum() == m
        assert np.array_equal(scores > rule.level(counts), flagged)


def test_nothing_is_found_in_nothing() -> None:
    assert discoveries(np.zeros(11, int), 0.1) == 0
    assert found(np.arange(10.0), [], 0.1).tolist() == []


def simulate(seed: int, n_anomalies: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    calibration = np.sort(rng.gamma(2.0, size=2000))
    scores = np.r_[rng.gamma(2.0, size=500), 12 + rng.normal(size=n_anomalies)]
    return calibration, scores, np.arange(len(scores)) >= 500


@pytest.mark.parametrize("target", [0.05, 0.2])
def test_false_discovery_rate_is_kept(target: float) -> None:
    """Most rows are normal; 200 fresh sets of calibration rows and rows to decide on."""
    shares, recall = [], []
    for seed in range(200):
        calibration, scores, truth = simulate(seed, n_anomalies=40)
        flagged = found(calibration, scores, target)
        shares.append((flagged & ~truth).sum() / max(1, flagged.sum()))
        recall.append((flagged & truth).sum() / truth.sum())
    error = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) <= target + 3 * error
    # Benjamini-Hochberg is exact up to the share of normal rows: it does not hold back.
    assert np.mean(shares) >= target * 500 / 540 - 4 * error
    assert np.mean(recall) > 0.95


@pytest.mark.parametrize("target", [0.05, 0.2])
def test_false_discovery_rate_is_kept_where_all_rows_are_normal(target: float) -> None:
    """Then every discovery is false, and there may be any in `target` of the runs."""
    runs = []
    for seed in range(200):
        calibration, scores, _ = simulate(seed, n_anomalies=0)
        runs.append(found(calibration, scores, target).any())
    assert np.mean(runs) <= target + 3 * np.sqrt(target * (1 - target) / len(runs))


def test_p_values_of_normal_rows_are_uniform() -> None:
    """One row for each calibration set: they are independent then."""
    p = []
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        p.append(p_values(np.sort(rng.gamma(2.0, size=200)), rng.gamma(2.0, size=1))[0])
    # Spread over the steps of 1 / 201, they are uniform on [0, 1].
    spread = np.array(p) - np.random.default_rng(0).random(len(p)) / 201
    assert kstest(spread, "uniform").pvalue > 0.01


def test_hidden_anomalies_make_p_values_larger() -> None:
    rng = np.random.default_rng(0)
    clean = rng.normal(size=500)
    polluted = np.sort(np.r_[clean[:490], 6 + rng.normal(size=10)])
    scores = rng.normal(size=300)
    honest, cautious = p_values(np.sort(clean), scores), p_values(polluted, scores)
    assert (cautious >= honest - 1e-12).all()
    assert (cautious > honest).mean() > 0.9


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.07, 0.05, 0.01, 0.001, 1 / 3])
def test_rows_needed_are_the_fewest_that_do(rate: float) -> None:
    n = rows_needed(rate)
    assert smallest_p(n) <= rate * (1 + 1e-9)
    assert smallest_p(n - 1) > rate


def test_rows_needed_for_rare_anomalies_are_the_fewest_that_find_them() -> None:
    n = rows_needed(0.05, anomalies=0.01)
    for size, enough in [(n, True), (n - 1, False)]:
        calibration = np.arange(size, dtype=float)
        scores = np.r_[np.full(10, 1e9), np.zeros(990)]
        assert found(calibration, scores, 0.05).any() == enough
