from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.neighbors import KernelDensity

from aloof.baselines import KDE
from aloof.baselines.kde import log_densities


def test_log_densities_equal_the_sum_over_kernels():
    rng = np.random.default_rng(0)
    rows, queries = rng.normal(size=(50, 3)), 3.0 * rng.normal(size=(300, 3))
    bandwidths = (0.1, 0.5, 2.0)
    squared = np.square(queries[:, None] - rows).sum(-1)
    for h, density in zip(bandwidths, log_densities(rows, queries, bandwidths), strict=True):
        kernels = -0.5 * squared / h**2 - 1.5 * np.log(2 * np.pi * h**2)
        np.testing.assert_allclose(density, logsumexp(kernels, axis=1) - np.log(50))
        exact = KernelDensity(bandwidth=h, breadth_first=False).fit(rows)
        np.testing.assert_allclose(density, exact.score_samples(queries))


@pytest.mark.parametrize(("spread", "low", "high"), [(1.0, 0.1, 0.7), (30.0, 5.0, 20.0)])
def test_bandwidth_follows_the_data(spread, low, high):
    """Silverman's rule says about 0.2 standard deviations for 1,000 rows in one dimension."""
    rows = spread * np.random.default_rng(0).normal(size=(1000, 1))
    assert low <= KDE(random_state=0).fit(rows).bandwidth_ <= high


def test_bandwidth_is_searched_on_a_part_and_used_on_all():
    rows = np.random.default_rng(0).normal(size=(300, 2))
    part = KDE(max_search_rows=50, random_state=0).fit(rows)
    expected = -log_densities(rows, rows, [part.bandwidth_])[0]
    np.testing.assert_array_equal(part.anomaly_score(rows), expected)


def test_too_few_rows_for_five_folds():
    with pytest.raises(ValueError, match="at least 5 rows"):
        KDE().fit(np.zeros((4, 2)))
