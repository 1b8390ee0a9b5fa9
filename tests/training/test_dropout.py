"""A context that is seen in part."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from problems import CPU, config, data, problem, states

from aloof.networks import Architecture, ConditionalMLPDecoder, ConditionalMLPEncoder
from aloof.training import train
from aloof.training.dropout import drop_


def test_as_many_are_dropped_as_were_asked_for_and_no_two_members_lose_the_same() -> None:
    rows = torch.ones(2, 300, 20, dtype=torch.int64)
    drop_(rows, 0.3, [1, 2])
    lost = (rows == 0).double().mean((1, 2))
    torch.testing.assert_close(lost, torch.full_like(lost, 0.3), atol=0.03, rtol=0)
    assert not torch.equal(rows[0], rows[1])
    alone = torch.ones(1, 300, 20, dtype=torch.int64)
    drop_(alone, 0.3, [2])
    assert torch.equal(alone[0], rows[1])


def test_nothing_is_dropped_unless_asked_for() -> None:
    rows = torch.ones(1, 5, 4)
    drop_(rows, 0.0, [1])
    assert (rows == 1).all()


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_member_learns_the_same_alone_and_the_data_stays(share: float) -> None:
    x = data()
    context = torch.from_numpy(np.random.default_rng(1).normal(size=(len(x), 4)))
    before = context.clone()
    networks = Architecture(
        partial(ConditionalMLPEncoder, 5, 4, 3, hidden=(6,), dropout=0.0),
        partial(ConditionalMLPDecoder, 5, 4, 3, hidden=(6,), dropout=0.0),
        3,
    )
    chosen = replace(config(), context_dropout=(share,))
    together = train([x, context], [problem([1]), problem([2])], networks, chosen, device=CPU)
    alone = train([x, context], [problem([2])], networks, chosen, device=CPU)[0]
    for key, value in states(alone.ensemble).items():
        torch.testing.assert_close(
            together[1].ensemble.state()[key], value, rtol=1e-7, atol=1e-9
        )
    assert torch.equal(context, before)
    plain = train([x, context], [problem([2])], networks, config(), device=CPU)[0]
    same = all(
        torch.equal(value, plain.ensemble.state()[key])
        for key, value in states(alone.ensemble).items()
    )
    assert same == (share == 0.0)
