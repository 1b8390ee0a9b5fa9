"""Measures against values worked out by hand; the conditional networks keep their promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from aloof.networks import ConditionalMLPDecoder, ConditionalMLPEncoder
from aloof.planning import (
    World,
    collision_share,
    coverage,
    estimate_mean,
    estimate_share,
)
from aloof.training import Stack
from aloof.training.seeds import seeded


def test_collision_share_and_coverage(open_world: World) -> None:
    states = np.array([[0.1, 0.1], [0.55, 0.1], [0.9, 0.9], [0.3, -0.2]])
    assert collision_share(open_world, states) == 0.5
    # Half a cell is 1/16. The second place has a state near by, but in the wall.
    path = np.array([[0.1, 0.16], [0.52, 0.1], [0.9, 0.9], [0.2, 0.5]], np.float32)
    assert coverage(open_world, path, states) == 0.5
    assert coverage(open_world, path, states[[1, 3]]) == 0.0


def test_intervals() -> None:
    estimate = estimate_mean([1.0, 2.0, 3.0, 4.0])
    half = 3.182446 * np.std([1, 2, 3, 4], ddof=1) / 2  # Student's t, three degrees
    assert (estimate.value, estimate.n) == (2.5, 4)
    assert estimate.high - 2.5 == pytest.approx(half, rel=1e-5)
    assert estimate.low == pytest.approx(5 - estimate.high)
    assert np.isnan(estimate_mean([]).value)
    none = estimate_share([False] * 10)
    assert none.value == 0
    assert none.low == pytest.approx(0, abs=1e-12)
    assert none.high == pytest.approx(0.2775, abs=1e-4)  # z^2 / (n + z^2)


@pytest.mark.parametrize("network", [ConditionalMLPEncoder, ConditionalMLPDecoder])
@pytest.mark.parametrize(
    ("options", "engine"),
    [
        ({"dropout": 0.0}, "stacked"),
        ({"dropout": 0.5}, "loop"),
        ({"dropout": 0.0, "filters": (2, 3), "image_size": 3}, "loop"),
    ],
)
def test_conditional_networks_stack(
    network: type, options: dict[str, Any], engine: str
) -> None:
    n_in = 4 if network is ConditionalMLPEncoder else 3
    with seeded(0, torch.device("cpu")):
        members = [network(4, 9 + 2, 3, hidden=(8, 6), **options) for _ in range(3)]
        x, ends = torch.randn(3, 5, n_in), torch.randn(3, 5, 2)
        grid = torch.randint(0, 2, (3, 5, 9), dtype=torch.uint8)
    alone = [m.eval()(x[k], grid[k], ends[k]) for k, m in enumerate(members)]
    inputs = [x, grid, ends]
    stack = Stack(members, engine="auto", example=inputs, device=torch.device("cpu"))
    assert stack.engine == engine
    together = stack(*inputs)
    for k, own in enumerate(alone):
        if isinstance(together, tuple):
            parts = [(one, part[k]) for one, part in zip(own, together, strict=True)]
        else:
            parts = [(own, together[k])]
        for one, other in parts:
            assert torch.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("size", [8, 9])
def test_convolutions_see_the_first_part_of_the_context_as_an_image(size: int) -> None:
    with seeded(0, torch.device("cpu")):
        decoder = ConditionalMLPDecoder(
            4, size * size + 2, 3, hidden=(8,), dropout=0.0, filters=(5,), image_size=size
        )
        z, ends = torch.randn(1, 3), torch.randn(1, 2)
    image = torch.zeros(1, size, size, dtype=torch.uint8)
    image[0, 2, 5] = 1
    [convolution] = [layer for layer in decoder.modules() if isinstance(layer, torch.nn.Conv2d)]
    seen = torch.relu(convolution(image[:, None].float())).flatten(1)
    by_hand = decoder.head(decoder.body(torch.cat([z, seen, ends], 1)))
    assert torch.equal(decoder(z, image.flatten(1), ends), by_hand)
