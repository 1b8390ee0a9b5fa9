"""Deep SVDD and Deep SAD: losses by hand, the centre, and pre-training that arrives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.baselines import Autoencoder, DeepSAD, DeepSVDD
from aloof.baselines.deep_sad import deep_sad_loss
from aloof.baselines.deep_svdd import soft_boundary_loss
from aloof.baselines.hypersphere import centre_of
from aloof.exceptions import LabelWarning

COMMON = {
    "device": "cpu",
    "random_state": 0,
}
SHORT = {"max_epochs": 5, "pretrain_epochs": 5, **COMMON}


@pytest.fixture(scope="module", params=["numbers", "images"])
def rows(request, hidden, hidden_images):
    return hidden if request.param == "numbers" else hidden_images


def test_centre_keeps_away_from_zero():
    codes = torch.tensor([[1.0, 0.05, -0.05, 0.0, -2.0], [3.0, 0.05, -0.05, 0.0, -2.0]])
    expected = torch.tensor([2.0, 0.1, -0.1, 0.1, -2.0])
    torch.testing.assert_close(centre_of(codes), expected)


def test_loss_by_hand():
    distance = torch.tensor([4.0, 4.0, 4.0])
    labels = torch.tensor([-1, 0, 1])
    expected = torch.tensor([4.0, 2 * 4.0, 2 * 0.25])
    torch.testing.assert_close(deep_sad_loss(distance, labels, eta=2.0), expected)


def test_anomalies_are_pushed_away_and_others_drawn_in():
    distance = torch.tensor([4.0, 4.0, 4.0], requires_grad=True)
    deep_sad_loss(distance, torch.tensor([-1, 0, 1]), eta=1.0).sum().backward()
    assert (distance.grad.sign() == torch.tensor([1.0, 1.0, -1.0])).all()


def test_soft_boundary_loss_by_hand():
    loss = soft_boundary_loss(torch.tensor([1.0, 5.0]), torch.tensor(3.0), nu=0.1)
    torch.testing.assert_close(loss, torch.tensor([3.0, 3.0 + 2.0 / 0.1]))


def test_soft_boundary_is_another_objective(visible):
    one, soft = (
        DeepSVDD(objective=objective, **SHORT | {"max_epochs": 15})
        .fit(visible.X)
        .anomaly_score(visible.X_test)
        for objective in ("one-class", "soft-boundary")
    )
    assert not np.allclose(one, soft)


def weights(fitted):
    return fitted.members.stacks["encoder"].parameters


def test_pretraining_arrives(rows):
    """At (almost) no learning rate, the encoder is the autoencoder's, not a fresh one."""
    still = SHORT | {"max_epochs": 1, "learning_rate": 1e-12}
    sad = DeepSAD(**still).fit(rows.X, rows.y)
    autoencoder = Autoencoder(
        max_epochs=5,
        learning_rate=sad.pretrain_learning_rate,
        weight_decay=sad.pretrain_weight_decay,
        bias=False,
        **COMMON,
    ).fit(rows.X, rows.y)
    fresh = DeepSAD(**still | {"pretrain_epochs": 0}).fit(rows.X, rows.y)
    for name, ours in weights(sad.fitted_).items():
        pretrained = weights(autoencoder.fitted_)[name]
        torch.testing.assert_close(ours, pretrained, atol=1e-6, rtol=0)
        assert (ours - weights(fresh.fitted_)[name]).abs().max() > 1e-4
    codes = autoencoder.encode(rows.X[rows.y == 0])
    expected = centre_of(torch.from_numpy(codes))
    centre = sad.fitted_.members.tensors["centre"]
    torch.testing.assert_close(centre.double(), expected, atol=1e-4, rtol=0)


def test_anomalies_take_no_part_in_pretraining(rows):
    still = SHORT | {"max_epochs": 1, "learning_rate": 1e-12}
    with_anomalies = DeepSAD(**still).fit(rows.X, rows.y)
    without = DeepSVDD(**still).fit(rows.X[rows.y == 0])
    for name, ours in weights(with_anomalies.fitted_).items():
        torch.testing.assert_close(ours, weights(without.fitted_)[name], atol=1e-6, rtol=0)


def test_pretraining_is_shared_by_what_has_the_same_normal_rows(fit_problems, rows):
    problems = [rows.problem((0, 1), n) for n in (0, 4, 10)]
    reports = []
    shared = fit_problems("deep-sad", rows, problems, on_epoch=reports.append)
    # Two networks learn for two epochs, and three times two for two more.
    assert sum(report.n_members for report in reports) == (1 + 3) * 2 * 2
    for problem, fitted in zip(problems, shared, strict=True):
        (own,) = fit_problems("deep-sad", rows, [problem])
        np.testing.assert_allclose(
            fitted.score(rows.X_test), own.score(rows.X_test), rtol=1e-4, atol=1e-5
        )


def test_without_labels_deep_sad_is_deep_svdd(visible):
    normal = visible.X[visible.y == 0]
    with pytest.warns(LabelWarning, match="trains as Deep SVDD"):
        sad = DeepSAD(**SHORT).fit(normal)
    svdd = DeepSVDD(**SHORT).fit(normal)
    np.testing.assert_array_equal(
        sad.anomaly_score(visible.X_test), svdd.anomaly_score(visible.X_test)
    )


def test_eta_zero_in_the_limit_forgets_the_anomalies(hidden):
    def mean_distance(eta):
        sad = DeepSAD(eta=eta, **SHORT | {"max_epochs": 20, "learning_rate": 1e-3})
        # -1 rather than 0: the weight of labelled normal rows shall stay 1.
        labels = np.where(hidden.y == 1, 1, -1)
        labels[0] = 0
        return sad.fit(hidden.X, labels).anomaly_score(hidden.X[hidden.y == 1]).mean()

    assert mean_distance(1.0) > 2 * mean_distance(1e-6)


def test_the_score_of_an_ensemble_is_the_mean_of_its_members(hidden):
    sad = DeepSAD(n_members=3, **SHORT).fit(hidden.X, hidden.y)
    members = sad.fitted_.score(hidden.X_test)
    assert members.shape == (3, len(hidden.X_test))
    assert not np.allclose(members[0], members[1])
    np.testing.assert_allclose(sad.anomaly_score(hidden.X_test), members.mean(0), rtol=1e-9)
    first = DeepSAD(**SHORT).fit(hidden.X, hidden.y)
    for name, alone in weights(first.fitted_).items():
        torch.testing.assert_close(weights(sad.fitted_)[name][:1], alone, atol=1e-4, rtol=1e-3)


def test_the_score_is_the_squared_distance_to_the_centre(rows):
    sad = DeepSAD(**SHORT).fit(rows.X, rows.y)
    centre = sad.fitted_.members.tensors["centre"].numpy()
    expected = np.square(sad.fitted_.encode(rows.X_test) - centre[:, None]).sum(-1)
    np.testing.assert_allclose(sad.fitted_.score(rows.X_test), expected, rtol=1e-5)
