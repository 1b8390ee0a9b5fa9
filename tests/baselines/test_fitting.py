from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.baselines.fitting import Schedule, balanced, built, evaluate, fit, shuffled
from aloof.baselines.networks import perceptron
from aloof.exceptions import DivergenceError


@pytest.mark.parametrize(("n_rows", "batch_size"), [(1000, 128), (129, 128), (5, 2), (2, 1)])
def test_an_epoch_holds_every_row_once(n_rows, batch_size):
    batches = shuffled(n_rows, batch_size)(torch.Generator())
    assert sorted(torch.cat(list(batches)).tolist()) == list(range(n_rows))
    sizes = [len(batch) for batch in batches]
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 2


def test_balanced_batches_are_half_anomalies_and_drop_no_row():
    usual, anomalies = torch.arange(7, 300), torch.arange(7)
    batches = balanced(usual, anomalies, 64)(torch.Generator())
    seen = []
    for batch in batches:
        assert len(batch) <= 64
        assert (batch < 7).sum() * 2 == len(batch)
        seen += batch[batch >= 7].tolist()
    assert sorted(seen) == usual.tolist()


def test_it_is_adam_with_weight_decay():
    """Three epochs equal torch's own optimiser, step by step."""
    rows, batches = torch.randn(40, 3, generator=torch.Generator()), shuffled(40, 16)
    schedule = Schedule(max_epochs=3, learning_rate=0.01, weight_decay=0.1)
    ours = built(lambda: perceptron((3, 4, 1)), 0)
    theirs = built(lambda: perceptron((3, 4, 1)), 0)
    order = []

    def loss(batch, _):
        order.append(batch)
        return ours(rows[batch]).square().mean()

    curve = fit(ours, loss, batches, schedule, 0)
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.01, weight_decay=0.1)
    for step, batch in enumerate(order):
        optimizer.param_groups[0]["lr"] = 0.01 if step < 6 else 0.001
        optimizer.zero_grad()
        theirs(rows[batch]).square().mean().backward()
        optimizer.step()
    assert len(curve) == 3
    assert len(order) == 9
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_initial_weights_are_a_function_of_the_seed():
    def weights(seed):
        return built(lambda: perceptron((3, 4, 1)), seed)[0].weight

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


def test_a_loss_that_is_not_finite_stops_the_training():
    network = built(lambda: perceptron((3, 4, 1)), 0)
    with pytest.raises(DivergenceError, match="after epoch 1"):
        fit(
            network,
            lambda batch, _: network(torch.full((len(batch), 3), torch.inf)).mean(),
            shuffled(4, 4),
            Schedule(1, 0.1),
            0,
        )


def test_bias_free_networks_have_no_additive_parameter():
    network = built(lambda: perceptron((5, 4, 3, 2), bias=False, batch_norm=True), 0)
    assert {parameter.dim() for parameter in network.parameters()} == {2}
    assert isinstance(network[-1], torch.nn.Linear)


def test_evaluate_in_chunks():
    rows = np.random.default_rng(0).normal(size=(2500, 3))
    np.testing.assert_array_equal(evaluate(lambda x: x.sum(-1), rows), rows.sum(-1))
