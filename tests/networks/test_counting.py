"""Multiplications of networks, against sums by hand."""

from __future__ import annotations

import torch
from torch import nn

from aloof.baselines import BASELINES
from aloof.networks import ConvEncoder, count_multiplications


def test_convolutions_and_dense_layers_are_counted() -> None:
    shape = (3, 16, 16)

    def make() -> nn.Module:
        return ConvEncoder(shape, 10, (8, 4), (20,), kernel=5)

    convolutions = 25 * (16 * 16 * 3 * 8 + 8 * 8 * 8 * 4)
    dense = 4 * 4 * 4 * 20 + 20 * 2 * 10
    assert count_multiplications(make, shape) == convolutions + dense


def test_counting_draws_no_random_numbers_of_others() -> None:
    before = torch.random.get_rng_state()
    count_multiplications(lambda: nn.Linear(3, 2), (3,))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_field_that_moves_its_samples_multiplies_more() -> None:
    few, many = (BASELINES["inclusive-nrf"](n_steps=n).multiplications((8,)) for n in (3, 30))
    field = 8 * 60 + 60 * 30 + 30 * 10 + 10
    generator = 10 * 30 + 30 * 60 + 60 * 8
    assert few == 4 * field + generator
    assert many == 22 * field + generator
