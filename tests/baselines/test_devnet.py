from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.baselines import DevNet
from aloof.baselines.devnet import deviation_loss

# Mean 1, standard deviation 2.
REFERENCE = torch.tensor([-1.0, 3.0])


def test_loss_by_hand():
    scores = torch.tensor([1.0, -3.0, 5.0, 1.0, 21.0])
    is_anomaly = torch.tensor([False, False, False, True, True])
    # Deviations 0, -2, 2, 0, 10; anomalies pay what they lack of 5.
    expected = torch.tensor([0.0, 2.0, 2.0, 5.0, 0.0])
    torch.testing.assert_close(deviation_loss(scores, is_anomaly, REFERENCE), expected)


def test_loss_has_one_value_for_each_row():
    """(n, 1) against (n,) would broadcast to n x n without a word."""
    with pytest.raises(ValueError, match="one shape"):
        deviation_loss(torch.zeros(4, 1), torch.zeros(4, dtype=torch.bool), REFERENCE)


def test_gradient_points_the_right_way():
    scores = torch.tensor([2.0, 2.0], requires_grad=True)
    deviation_loss(scores, torch.tensor([False, True]), REFERENCE).sum().backward()
    assert scores.grad.tolist() == [0.5, -0.5]


def test_scores_are_deviations_from_the_reference(hidden):
    """Trained to the end, training rows are where the loss wants them: at 0, and above 5."""
    devnet = DevNet(
        hidden=(64,), learning_rate=0.01, max_epochs=200, weight_decay=0.0, random_state=0
    ).fit(hidden.X, hidden.y)
    scores = devnet.anomaly_score(hidden.X)
    assert abs(np.median(scores[hidden.y == 0])) < 0.2
    assert np.median(scores[hidden.y == 1]) > 4.5
