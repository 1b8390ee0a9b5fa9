from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KernelDensity

from aloof.baselines import KDE
from aloof.baselines.kde import held_out_log_likelihood


def test_log_likelihood_equals_scikit_learns():
    rng = np.random.default_rng(0)
    rows, held_out = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    bandwidths = (0.1, 0.5, 2.0)
    expected = [
        KernelDensity(bandwidth=h).fit(rows).score(held_out) for h in bandwidths
    ]  # the sum over rows
    np.testing.assert_allclose(held_out_log_likelihood(rows, held_out, bandwidths), expected)


@pytest.mark.parametrize(("spread", "low", "high"), [(1.0, 0.1, 0.7), (30.0, 5.0, 20.0)])
def test_bandwidth_follows_the_data(spread, low, high):
    """Silverman's rule says about 0.2 standard deviations for 1,000 rows in one dimension."""
    rows = spread * np.random.default_rng(0).normal(size=(1000, 1))
    assert low <= KDE(random_state=0).fit(rows).bandwidth_ <= high


def test_bandwidth_is_searched_on_a_part_and_used_on_all():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    part = KDE(max_search_rows=50, random_state=0).fit(rows)
    expected = -KernelDensity(bandwidth=part.bandwidth_).fit(rows).score_samples(rows)
    np.testing.assert_allclose(part.anomaly_score(rows), expected)


def test_too_few_rows_for_five_folds():
    with pytest.raises(ValueError, match="at least 5 rows"):
        KDE().fit(np.zeros((4, 2)))
