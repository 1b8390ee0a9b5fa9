"""SS-DGM: the bounds of M2 are what they should be."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from aloof.baselines import SSDGM
from aloof.baselines.ss_dgm import LabelledGenerativeModel
from aloof.training.seeds import seeded


def built(factory, seed: int):
    with seeded(seed, torch.device("cpu")):
        return factory()


@pytest.fixture(scope="module")
def model() -> LabelledGenerativeModel:
    return built(lambda: LabelledGenerativeModel(3, 4, anomaly_share=0.2), 0).double()


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    source = torch.Generator()
    source.manual_seed(0)
    return tuple(
        torch.randn(5, width, generator=source, dtype=torch.float64) for width in (3, 4)
    )


def labels(value: int) -> torch.Tensor:
    return torch.full((5,), value)


def test_labelled_rows_have_the_joint_bound_of_their_label(model, batch):
    joint = model.joint_bounds(*batch)
    for y in (0, 1):
        torch.testing.assert_close(
            model.objective(batch[0], labels(y), batch[1], 0.0), joint[y]
        )


def test_the_classifier_is_weighted(model, batch):
    rows, noise = batch
    plain, weighted = (model.objective(rows, labels(1), noise, w) for w in (0.0, 3.0))
    expected = 3.0 * torch.log(torch.sigmoid(model.logit(rows)))
    torch.testing.assert_close(weighted - plain, expected)


def test_the_prior_is_in_the_bound(model, batch):
    with torch.no_grad():
        twin = built(lambda: LabelledGenerativeModel(3, 4, anomaly_share=0.6), 0).double()
        difference = twin.joint_bounds(*batch) - model.joint_bounds(*batch)
    torch.testing.assert_close(difference[1], torch.full((5,), math.log(3.0)).double())
    torch.testing.assert_close(difference[0], torch.full((5,), math.log(0.5)).double())


def test_unlabelled_bound_is_tight_at_the_posterior_of_the_label(model, batch, monkeypatch):
    """It is at most log sum_y exp(joint), and equal where q(y|x) is proportional to that."""
    rows, noise = batch
    joint = model.joint_bounds(rows, noise)
    best = torch.logsumexp(joint, 0)
    assert (model.objective(rows, labels(-1), noise, 1.0) < best).all()
    monkeypatch.setattr(model, "logit", lambda x: joint[1] - joint[0])
    torch.testing.assert_close(model.objective(rows, labels(-1), noise, 1.0), best)


def test_it_learns_from_anomalies_alone(hidden):
    """Normal rows may be unlabelled."""
    y = np.where(hidden.y == 1, 1, -1)
    y[0] = 0
    model = SSDGM(max_epochs=20, learning_rate=3e-3, random_state=0).fit(hidden.X, y)
    scores = model.anomaly_score(hidden.X_test)
    anomalies, normal = scores[hidden.y_test == 1], scores[hidden.y_test == 0]
    assert (anomalies[:, None] > normal).mean() > 0.7


def test_codes_are_standardised_on_the_rows_learned_from(fit_problems, hidden, hidden_images):
    for on in (hidden, hidden_images):
        (fitted,) = fit_problems("ss-dgm", on, [on.problem((2, 3))])
        codes = fitted.encode(on.X)
        np.testing.assert_allclose(codes.mean(1), 0.0, atol=1e-3)
        np.testing.assert_allclose(codes.std(1), 1.0, atol=1e-3)
