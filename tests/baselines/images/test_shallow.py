"""Shallow methods on images: they are the table's, on pixels or on an autoencoder's codes."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.baselines import SSAD, OneClassSVM
from aloof.baselines.images import SHALLOW_METHODS, hybrid_scores, raw_scores


@pytest.fixture(scope="module")
def autoencoders(fit, visible):
    (fitted,) = fit(visible, [visible.problem((1, 2))], "cae")
    return fitted


def parts(of):
    return of.train[of.normal], of.train[of.anomaly], of.test


@pytest.mark.parametrize("method", SHALLOW_METHODS)
def test_anomalies_of_another_kind_are_found(visible, autoencoders, method):
    assert visible.auroc(raw_scores(method, *parts(visible), seed=0)) > 0.95
    hybrid = hybrid_scores(method, autoencoders, *parts(visible), seed=0)
    assert hybrid.shape == (2, len(visible.test))
    assert all(visible.auroc(scores) > 0.85 for scores in hybrid)


def test_only_ssad_learns_from_labels(hidden):
    normal, anomaly, test = parts(hidden)
    assert hidden.auroc(raw_scores("ssad", normal, anomaly, test, seed=0)) > 0.85
    for method in ("oc-svm", "iforest", "kde"):
        with_labels = raw_scores(method, normal, anomaly, test, seed=0)
        without = raw_scores(method, normal, anomaly[:0], test, seed=0)
        np.testing.assert_array_equal(with_labels, without)


def test_raw_means_pixels_from_zero_to_one(visible):
    normal, anomaly, test = parts(visible)
    flat = [images.reshape(len(images), -1) / 255 for images in (normal, anomaly, test)]
    labels = np.repeat([0, 1], [len(normal), len(anomaly)])
    ssad = SSAD(random_state=3).fit(np.concatenate(flat[:2]), labels)
    found = raw_scores("ssad", normal, anomaly, test, seed=3)
    np.testing.assert_allclose(found, ssad.anomaly_score(flat[2]))
    numbers = [images / 255 for images in (normal, anomaly, test)]
    np.testing.assert_array_equal(raw_scores("ssad", *numbers, seed=3), found)


def test_hybrid_means_standardised_codes(visible, autoencoders):
    normal, anomaly, test = parts(visible)
    codes, asked = autoencoders.encode(normal)[1], autoencoders.encode(test)[1]
    mean, scale = codes.mean(0), codes.std(0)
    svm = OneClassSVM(random_state=0).fit((codes - mean) / scale)
    found = hybrid_scores("oc-svm", autoencoders, normal, anomaly, test, seed=0)[1]
    np.testing.assert_allclose(found, svm.anomaly_score((asked - mean) / scale), atol=1e-4)


def test_no_more_rows_than_asked_for_and_parameters_arrive(visible):
    normal, anomaly, test = parts(visible)
    all_rows, few, again, other = (
        raw_scores("oc-svm", normal, anomaly, test, seed=seed, max_rows=n)
        for seed, n in ((0, 2000), (0, 20), (0, 20), (1, 20))
    )
    np.testing.assert_array_equal(few, again)
    assert not np.allclose(few, all_rows)
    assert not np.allclose(few, other)
    narrow = raw_scores("oc-svm", normal, anomaly, test, seed=0, kernel_gamma=10.0)
    assert not np.allclose(narrow, all_rows)


def test_unknown_methods_are_named(visible):
    with pytest.raises(ValueError, match="must be one of oc-svm, iforest"):
        raw_scores("svm", *parts(visible), seed=0)
