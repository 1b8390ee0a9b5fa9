"""The autoencoder, and the hybrids that build on its codes."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.base import clone

from aloof.baselines import KNN, SSAD, Autoencoder, Hybrid, OneClassSVM
from aloof.training.seeds import Stream, derive


def test_it_converges(visible):
    """Rows of a 3-dimensional subspace go through a 4-dimensional code almost unharmed."""
    autoencoder = Autoencoder(
        hidden=(32, 4), learning_rate=3e-3, max_epochs=100, random_state=0
    ).fit(visible.X, visible.y)
    curve = autoencoder.loss_curve_
    assert len(curve) == 100
    assert curve[-1] < 0.2 * curve[0]
    assert curve[-20:].std() < 0.1 * curve[-1]


def test_score_is_the_mean_squared_error(visible):
    autoencoder = Autoencoder(max_epochs=2, random_state=0).fit(visible.X)
    with torch.no_grad():
        output = autoencoder._network(torch.from_numpy(visible.X_test)).numpy()
    expected = np.square(visible.X_test - output).mean(1)
    np.testing.assert_allclose(autoencoder.anomaly_score(visible.X_test), expected)
    assert autoencoder.encode(visible.X_test).shape == (len(visible.X_test), 8)


def test_hybrid_is_the_shallow_method_on_the_codes(hidden):
    hybrid = Hybrid(detector=SSAD(nu=0.2), max_epochs=10, random_state=0)
    hybrid.fit(hidden.X, hidden.y)
    autoencoder = Autoencoder(
        max_epochs=10,
        learning_rate=hybrid.learning_rate,
        weight_decay=hybrid.weight_decay,
        random_state=derive(0, Stream.MEMBER, 0),
    ).fit(hidden.X, hidden.y)
    usual = autoencoder.encode(hidden.X[hidden.y == 0])

    def features(X):
        return (autoencoder.encode(X) - usual.mean(0)) / usual.std(0)

    by_hand = SSAD(nu=0.2).fit(features(hidden.X), hidden.y)
    np.testing.assert_allclose(
        hybrid.anomaly_score(hidden.X_test),
        by_hand.anomaly_score(features(hidden.X_test)),
        atol=1e-9,
    )


def test_hybrid_leaves_its_detector_alone(hidden):
    detector = OneClassSVM(random_state=7)
    hybrid = Hybrid(detector=detector, max_epochs=2, random_state=0).fit(hidden.X)
    assert detector.random_state == 7
    assert not hasattr(detector, "seed_")
    assert hybrid.detector_ is not detector
    assert clone(hybrid).detector is not detector
    assert not hybrid.uses_labels
    assert Hybrid(detector=SSAD()).uses_labels
    assert not Hybrid(detector=KNN()).uses_labels
