"""One rule for means, and one test, against NumPy and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import sem, ttest_rel

from aloof.bench.statistics import moments, paired

VALUES = np.random.default_rng(0).normal(90, 3, 7)


def test_the_sample_standard_deviation_and_the_standard_error() -> None:
    found = moments(VALUES)
    assert (found.mean, found.n) == (pytest.approx(VALUES.mean()), 7)
    assert found.std == pytest.approx(VALUES.std(ddof=1))
    assert found.sem == pytest.approx(sem(VALUES))
    assert found.text == f"{VALUES.mean():.1f} ± {VALUES.std(ddof=1):.1f}"


def test_one_value_has_no_spread_and_none_has_no_text() -> None:
    assert moments([91.23]).text == "91.2"
    assert math.isnan(moments([91.23]).sem)
    assert moments([]).text == ""


def test_pairs_are_those_that_both_have() -> None:
    ours = dict(enumerate(VALUES))
    theirs = {task: value - 1 + 0.1 * task for task, value in ours.items() if task != 3}
    found = paired({**ours, "other": 0.0}, theirs)
    a, b = (np.array([some[task] for task in theirs]) for some in (ours, theirs))
    assert found.n == 6
    assert found.difference == pytest.approx(np.mean(a - b))
    assert found.p_value == pytest.approx(ttest_rel(a, b).pvalue)
    assert found.text == f"{np.mean(a - b):+.1f} (p = {found.p_value:.2g})"


def test_where_there_is_nothing_to_test() -> None:
    same = paired({1: 90.0, 2: 80.0}, {1: 89.0, 2: 79.0})
    assert (same.difference, same.p_value, same.text) == (1.0, None, "+1.0")
    assert paired({1: 90.0}, {2: 80.0}).text == ""
    assert paired({1: 90.0}, {1: 80.0}).p_value is None
