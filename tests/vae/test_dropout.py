"""A context that is seen in part."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
import torch
from problems import CPU, config, data, problem, states

from aloof.networks import Architecture, ConditionalMLPDecoder, ConditionalMLPEncoder
from aloof.vae import train


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


class _Recording(ConditionalMLPEncoder):
    """Remember the share of zeros in the context."""

    seen: ClassVar[list[float]] = []

    def forward(self, x: torch.Tensor, *context: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.seen.append((context[0] == 0).double().mean().item())
        return super().forward(x, *context)


def test_as_many_numbers_are_lost_as_were_asked_for() -> None:
    x = data()
    context = torch.ones(len(x), 40, dtype=x.dtype)
    networks = Architecture(
        partial(_Recording, 5, 40, 3, hidden=(6,), dropout=0.0),
        partial(ConditionalMLPDecoder, 5, 40, 3, hidden=(6,), dropout=0.0),
        3,
    )
    _Recording.seen.clear()
    train(
        [x, context],
        [problem([1])],
        networks,
        replace(config(), context_dropout=(0.3,)),
        device=CPU,
    )
    lost = [share for share in _Recording.seen if share]
    assert len(lost) > 5
    assert np.mean(lost) == pytest.approx(0.3, abs=0.03)
