from __future__ import annotations

import numpy as np
import pytest

from aloof.baselines import KNNContrast

# Normal rows at 0, 1 and 2 of a line, anomalies at 10 and 14.
X = np.array([[0.0], [1.0], [2.0], [10.0], [14.0]])
y = np.array([0, 0, 0, 1, 1])


@pytest.mark.parametrize(
    ("n_neighbors", "n_anomalies", "normal", "anomalies"),
    [(1, 1, 4.0, 4.0), (2, 1, 4.5, 4.0), (3, 2, 5.0, 6.0), (9, 9, 5.0, 6.0)],
)
def test_contrast_by_hand(n_neighbors, n_anomalies, normal, anomalies):
    """Seen from 6; where there are fewer rows than asked for, all of them count."""
    contrast = KNNContrast(n_neighbors=n_neighbors, n_anomalies=n_anomalies).fit(X, y)
    np.testing.assert_allclose(contrast.anomaly_score([[6.0]]), np.log(normal / anomalies))


def test_rows_that_equal_training_rows_have_finite_scores():
    both = np.concatenate([X, X])
    contrast = KNNContrast(n_neighbors=2).fit(both, [*y, *y])
    normal, anomaly = contrast.anomaly_score([[1.0], [10.0]])
    assert -50 < normal < -10
    assert 10 < anomaly < 50


def test_an_anomaly_that_equals_a_normal_row_is_a_toss_up():
    contrast = KNNContrast(n_neighbors=1).fit([[0.0], [1.0], [0.0]], [0, 0, 1])
    assert contrast.anomaly_score([[0.0]]) == 0.0


def test_unlabelled_rows_are_taken_as_normal():
    unlabelled = KNNContrast().fit(X, np.where(y == 1, 1.0, np.nan))
    np.testing.assert_array_equal(
        unlabelled.anomaly_score([[3.0], [11.0]]),
        KNNContrast().fit(X, y).anomaly_score([[3.0], [11.0]]),
    )
