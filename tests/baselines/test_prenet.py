from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from aloof.baselines import PReNet
from aloof.baselines.prenet import PReNetMembers, partners


@pytest.mark.parametrize("n", [1, 2, 8, 13])
def test_half_of_the_pairs_have_no_anomaly_a_quarter_one_and_a_quarter_two(n):
    anomaly = np.repeat([0, 1], n)
    partner = partners(n, n, torch.device("cpu")).numpy()
    pairs = Counter((anomaly + anomaly[partner]).tolist())
    assert pairs[0] == n
    assert pairs[1] == (n + 1) // 2
    assert pairs[1] + pairs[2] == n
    assert n < 4 or (partner != np.arange(2 * n)).all()


class Given:
    """A stack whose outputs are its inputs."""

    def __call__(self, x, *, training):
        return x


def test_loss_by_hand():
    members = PReNetMembers({"encoder": Given()})
    # What two normal rows and two anomalies add as the first and as the second of a pair.
    sides = torch.tensor([[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]])
    labels = torch.tensor([[0, -1, 1, 1]])
    # (u1, u2) to 0, (u2, u1) to 0, (a1, u1) to 4, (a2, a2) to 8.
    expected = torch.tensor([[21.0, 12.0, 9.0, 36.0]])
    loss = members.row_loss(sides, labels, torch.empty(0))
    torch.testing.assert_close(loss, expected)


def test_relations_are_learned(hidden):
    """Trained to the end, a normal row adds 0 to a pair and an anomaly 4."""
    prenet = PReNet(
        hidden=(64,), learning_rate=0.01, max_epochs=200, weight_decay=0.0, random_state=0
    ).fit(hidden.X, hidden.y)
    scores = prenet.anomaly_score(hidden.X)
    normal, anomaly = (np.median(scores[hidden.y == k]) for k in (0, 1))
    assert anomaly - normal == pytest.approx(4.0, abs=0.4)


def test_partners_add_the_same_to_every_score(hidden):
    """The published score, with partners drawn, ranks rows as ours does."""
    prenet = PReNet(max_epochs=5, random_state=0).fit(hidden.X, hidden.y)
    outputs = prenet.fitted_.members._sides
    rows, normal, anomalies = (
        torch.from_numpy(part)[None]
        for part in (hidden.X_test, hidden.X[hidden.y == 0][:30], hidden.X[hidden.y == 1])
    )
    with torch.no_grad():
        first, second = outputs(rows, training=False)
        as_first = outputs(anomalies, training=False)[0]
        as_second = outputs(normal, training=False)[1]
    published = ((as_first.mean() + second) + (first + as_second.mean())) / 2
    offset = published[0].numpy() - prenet.anomaly_score(hidden.X_test)
    np.testing.assert_allclose(offset, offset[0], atol=1e-9)
