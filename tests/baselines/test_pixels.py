"""Shallow methods on images: they are the table's, on pixels from 0 to 1."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.baselines import BASELINES, SSAD

SHALLOW = ["oc-svm", "iforest", "kde", "ssad"]


@pytest.mark.parametrize("name", SHALLOW)
def test_anomalies_of_another_kind_are_found(visible_images, name):
    on = visible_images
    assert (
        on.auroc(BASELINES[name](random_state=0).fit(on.X, on.y).anomaly_score(on.X_test))
        > 0.95
    )


def test_only_ssad_learns_from_labels(hidden_images):
    on = hidden_images
    ssad = BASELINES["ssad"](random_state=0).fit(on.X, on.y)
    assert on.auroc(ssad.anomaly_score(on.X_test)) > 0.85


@pytest.mark.parametrize("name", SHALLOW)
def test_pixels_go_from_zero_to_one(visible_images, name):
    on = visible_images
    flat, test = (x.reshape(len(x), -1) / 255 for x in (on.X, on.X_test))
    expected = BASELINES[name](random_state=3).fit(flat, on.y).anomaly_score(test)
    for X, X_test in ((on.X, on.X_test), (on.X / 255, on.X_test / 255)):
        found = BASELINES[name](random_state=3).fit(X, on.y).anomaly_score(X_test)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["oc-svm", "kde", "ssad"])
def test_no_more_rows_than_asked_for(visible_images, name):
    on = visible_images

    def scores(seed, max_rows):
        baseline = BASELINES[name](random_state=seed, max_rows=max_rows)
        return baseline.fit(on.X, on.y).anomaly_score(on.X_test)

    np.testing.assert_array_equal(scores(0, 20), scores(0, 20))
    assert not np.allclose(scores(0, 20), scores(0, None))
    assert not np.allclose(scores(0, 20), scores(1, 20))
    np.testing.assert_array_equal(scores(0, 200), scores(0, None))


def test_max_rows_is_checked(visible_images):
    with pytest.raises(ValueError, match="'max_rows' parameter of SSAD must be an int >= 2"):
        SSAD(max_rows=1).fit(visible_images.X, visible_images.y)
