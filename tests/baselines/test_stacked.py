"""Deep baselines of several splits, fitted as one stack: the same as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.baselines import (
    BASELINES,
    UNFAIR,
    DeepBaseline,
    Unfair,
    fit_many,
    trains_networks,
)

BRIEF = {"max_epochs": 4, "pretrain_epochs": 3, "hidden": (6, 3), "device": "cpu"}


def made(name: str, seed: int, **changes) -> DeepBaseline:
    baseline = BASELINES[name](random_state=seed)
    names = baseline.get_params(deep=False)
    brief = {key: value for key, value in BRIEF.items() if key in names}
    return baseline.set_params(**{**brief, **changes})


@pytest.mark.parametrize(
    "name", ["autoencoder", "deep-svdd-soft", "deep-sad-5", "ss-dgm", "devnet", "ssad-hybrid"]
)
def test_each_is_what_it_is_alone(name, visible):
    """Rows differ between them, and so does the seed."""
    data = [(visible.X * scale, visible.y) for scale in (1.0, 0.7, 1.3)]
    stacked = [made(name, seed) for seed in (3, 1, 3)]
    epochs = []
    fit_many(stacked, data, on_epoch=epochs.append)
    assert epochs[-1].epoch == epochs[-1].max_epochs
    for own, (X, y), seed in zip(stacked, data, (3, 1, 3), strict=True):
        alone = made(name, seed).fit(X, y)
        assert own.seed_ == seed
        scores = alone.anomaly_score(visible.X_test)
        spread = scores.std()
        np.testing.assert_allclose(
            own.anomaly_score(visible.X_test), scores, rtol=1e-4, atol=1e-3 * spread
        )
    assert not np.allclose(
        stacked[0].anomaly_score(visible.X_test), stacked[2].anomaly_score(visible.X_test)
    )


def test_the_hybrids_of_unfair_ones_are_one_stack(visible):
    def unfair(seed: int) -> Unfair:
        options = {"max_epochs": 3, "hidden": (4, 2), "device": "cpu"}
        made = UNFAIR["ssad-hybrid-unfair"](random_state=seed, parameters=options)
        return made.peek(visible.X_test, visible.y_test)

    data = [(visible.X[::2] * scale, visible.y[::2]) for scale in (1.0, 0.7)]
    stacked = [unfair(0), unfair(1)]
    fit_many(stacked, data)
    alone = unfair(1).fit(*data[1])
    widths = [b.baseline_.detectors_.detectors[0].kernel_gamma for b in (stacked[1], alone)]
    assert widths[0] == widths[1]
    scores = alone.anomaly_score(visible.X_test)  # the solver stops at a tolerance
    np.testing.assert_allclose(
        stacked[1].anomaly_score(visible.X_test), scores, atol=0.05 * scores.std()
    )


def test_what_cannot_be_one_stack_is_refused(visible):
    pair = (visible.X, visible.y)
    with pytest.raises(ValueError, match="2 baselines and 1 pairs"):
        fit_many([made("autoencoder", 0), made("autoencoder", 1)], [pair])
    for other in (made("autoencoder", 0, max_epochs=9), made("deep-sad", 0)):
        with pytest.raises(ValueError, match="differ only in their random_state"):
            fit_many([made("autoencoder", 0), other], [pair, pair])
    for shallow in (BASELINES["knn"](), UNFAIR["ssad-unfair"]()):
        assert not trains_networks(shallow)
        with pytest.raises(ValueError, match="trains no networks"):
            fit_many([shallow], [pair])
