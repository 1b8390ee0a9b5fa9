"""Probabilities that mean what they say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from aloof.calibration import ProbabilityCurve


def test_of_rows_with_a_probability_so_many_are_anomalies() -> None:
    rng = np.random.default_rng(0)
    curve = ProbabilityCurve.fit(rng.lognormal(0, 1, 2000), rng.lognormal(2, 1, 200))
    scores = np.r_[rng.lognormal(0, 1, 20000), rng.lognormal(2, 1, 2000)]
    truth, found = np.arange(22000) >= 20000, curve(scores)
    assert found.mean() == pytest.approx(truth.mean(), abs=0.01)
    edges = [0, 0.05, 0.2, 0.4, 0.6, 0.8, 1]
    for low, high in pairwise(edges):
        inside = (found >= low) & (found < high)
        assert inside.sum() > 400
        assert truth[inside].mean() == pytest.approx(found[inside].mean(), abs=0.07)


def test_it_never_falls_and_never_is_certain() -> None:
    scores = np.r_[-1e6, np.linspace(-5, 5, 50), 1e3, 1e12]
    curve = ProbabilityCurve.fit([0.0, 1.0, 2.0], [50.0])
    assert (np.diff(curve(scores)) >= 0).all()
    assert 0 < curve(2.0) < 0.6 < curve(50.0) < 1
    upside_down = ProbabilityCurve.fit([5.0, 6.0, 7.0], [0.0])
    assert upside_down.slope == 0  # not falling: scores say nothing here
    assert np.ptp(upside_down(scores)) == 0


def test_scores_that_are_all_equal() -> None:
    curve = ProbabilityCurve.fit(np.ones(9), np.ones(1))
    assert curve(1.0) == pytest.approx((9 / 11 + 2 / 3) / 10, abs=1e-3)
