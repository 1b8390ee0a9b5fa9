"""Deep SVDD and Deep SAD: losses by hand, the centre, and pre-training that arrives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.baselines import Autoencoder, DeepSAD, DeepSVDD
from aloof.baselines.deep_sad import deep_sad_loss
from aloof.baselines.deep_svdd import soft_boundary_loss
from aloof.baselines.fitting import built
from aloof.baselines.hypersphere import Hypersphere, centre_of
from aloof.baselines.networks import AutoencoderNetwork
from aloof.exceptions import LabelWarning
from aloof.training.seeds import Stream, derive

SHORT = {"max_epochs": 5, "pretrain_epochs": 5, "random_state": 0}


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


def weights(network):
    return [parameter.detach() for parameter in network.parameters()]


def test_pretraining_arrives(hidden):
    """At (almost) no learning rate, the encoder is the autoencoder's, not a fresh one."""
    sad = DeepSAD(**SHORT | {"max_epochs": 1}, learning_rate=1e-12).fit(hidden.X, hidden.y)
    seed = derive(0, Stream.MEMBER, 0)
    autoencoder = Autoencoder(
        max_epochs=5,
        learning_rate=sad.pretrain_learning_rate,
        weight_decay=sad.pretrain_weight_decay,
        bias=False,
        random_state=seed,
    ).fit(hidden.X, hidden.y)
    fresh = built(lambda: AutoencoderNetwork(6, sad.hidden, bias=False), seed).double()
    for ours, pretrained, random in zip(
        weights(sad.members_[0].encoder),
        weights(autoencoder._network.encoder),
        weights(fresh.encoder),
        strict=True,
    ):
        torch.testing.assert_close(ours, pretrained, atol=1e-6, rtol=0)
        assert (ours - random).abs().max() > 1e-4
    codes = autoencoder.encode(hidden.X[hidden.y == 0])
    expected = centre_of(torch.from_numpy(codes))
    torch.testing.assert_close(sad.members_[0].centre, expected, atol=1e-5, rtol=0)


def test_without_pretraining_the_encoder_is_fresh(hidden):
    sad = DeepSAD(**SHORT | {"pretrain_epochs": 0, "max_epochs": 1}, learning_rate=1e-12)
    sad.fit(hidden.X, hidden.y)
    longer = DeepSAD(**SHORT | {"max_epochs": 1}, learning_rate=1e-12).fit(hidden.X, hidden.y)
    ours, pretrained = (weights(m.members_[0].encoder)[0] for m in (sad, longer))
    assert (ours - pretrained).abs().max() > 1e-4


def test_without_labels_deep_sad_is_deep_svdd(visible):
    usual = visible.X[visible.y == 0]
    with pytest.warns(LabelWarning, match="trained as Deep SVDD"):
        sad = DeepSAD(**SHORT).fit(usual)
    svdd = DeepSVDD(**SHORT).fit(usual)
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
    assert len(sad.members_) == 3
    rows = torch.from_numpy(hidden.X_test)
    with torch.no_grad():
        members = torch.stack([member(rows) for member in sad.members_])
    assert not torch.allclose(members[0], members[1])
    np.testing.assert_allclose(sad.anomaly_score(hidden.X_test), members.mean(0), rtol=1e-9)
    first = DeepSAD(**SHORT).fit(hidden.X, hidden.y).members_[0]
    for alone, together in zip(weights(first), weights(sad.members_[0]), strict=True):
        assert torch.equal(alone, together)


def test_distance_is_squared():
    sphere = Hypersphere(torch.nn.Identity(), torch.tensor([1.0, 0.0]))
    torch.testing.assert_close(sphere(torch.tensor([[4.0, 4.0]])), torch.tensor([25.0]))
