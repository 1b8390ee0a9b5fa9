"""The autoencoder, and the hybrids that build on its codes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import clone

from aloof.baselines import KNN, SSAD, Autoencoder, Hybrid, OneClassSVM
from aloof.training import Stream, derive

IMAGES = {"filters": (4, 8), "hidden": (16,), "latent_dim": 8, "kernel": 3}


def images_for(on):
    return IMAGES if on.X.ndim == 4 else None


def test_it_converges(visible):
    """Rows of a 3-dimensional subspace go through a 4-dimensional code almost unharmed."""
    autoencoder = Autoencoder(
        hidden=(32, 4), learning_rate=3e-3, max_epochs=100, random_state=0
    ).fit(visible.X, visible.y)
    (curve,) = autoencoder.fitted_.history["loss"].T
    assert len(curve) == 100
    assert curve[-1] < 0.2 * curve[0]
    assert curve[-20:].std() < 0.1 * curve[-1]


def test_score_is_the_mean_squared_error(visible, visible_images):
    for on, size in ((visible, 8), (visible_images, 8)):
        autoencoder = Autoencoder(
            max_epochs=2, n_members=2, images=images_for(on), device="cpu", random_state=0
        ).fit(on.X)
        codes = autoencoder.encode(on.X_test)
        assert codes.shape == (2, len(on.X_test), size)
        stack = autoencoder.fitted_.members.stacks["decoder"]
        parameter = next(iter(stack.parameters.values()))
        with torch.no_grad():
            output = stack(torch.from_numpy(codes).to(parameter.dtype)).numpy()
        x = on.X_test / 255 if on.X.dtype == np.uint8 else on.X_test
        expected = np.square(x - output).reshape(2, len(x), -1).mean((0, 2))
        np.testing.assert_allclose(autoencoder.anomaly_score(on.X_test), expected, rtol=1e-4)


@pytest.mark.parametrize("detector", [SSAD(nu=0.2), OneClassSVM()], ids=["ssad", "oc-svm"])
@pytest.mark.parametrize("name", ["hidden", "hidden_images"])
def test_hybrid_is_the_shallow_method_on_the_codes_of_each_member(request, name, detector):
    on = request.getfixturevalue(name)
    common = {"max_epochs": 10, "n_members": 2, "images": images_for(on), "device": "cpu"}
    hybrid = Hybrid(detector=detector, random_state=0, **common).fit(on.X, on.y)
    autoencoder = Autoencoder(
        learning_rate=hybrid.learning_rate,
        weight_decay=hybrid.weight_decay,
        random_state=derive(0, Stream.MEMBER, 0),
        **common,
    ).fit(on.X, on.y)
    scores = []
    for codes, asked in zip(
        autoencoder.encode(on.X), autoencoder.encode(on.X_test), strict=True
    ):
        mean, scale = codes[on.y == 0].mean(0), codes[on.y == 0].std(0)
        by_hand = clone(detector).fit((codes - mean) / scale, on.y)
        scores.append(by_hand.anomaly_score((asked - mean) / scale))
    np.testing.assert_allclose(hybrid.anomaly_score(on.X_test), np.mean(scores, 0), atol=1e-4)


def test_hybrid_leaves_its_detector_alone(hidden):
    detector = OneClassSVM(random_state=7)
    hybrid = Hybrid(detector=detector, max_epochs=2, random_state=0).fit(hidden.X)
    assert detector.random_state == 7
    assert not hasattr(detector, "seed_")
    assert detector not in hybrid.detectors_.detectors
    assert clone(hybrid).detector is not detector
    assert not hybrid.uses_labels
    assert Hybrid(detector=SSAD()).uses_labels
    assert not Hybrid(detector=KNN()).uses_labels
