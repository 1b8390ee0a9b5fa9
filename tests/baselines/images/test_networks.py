"""Encoders without biases: nothing but weights is trained, stacked or not."""

from __future__ import annotations

import pytest
import torch

from aloof.baselines.images.members import Autoencoders
from aloof.baselines.images.networks import CodeEncoder, ImageNetworks
from aloof.networks import conv
from aloof.networks.conv import PAPER_NETWORKS

CPU = torch.device("cpu")
OPTIONS = {"filters": (4, 16), "hidden": (6,), "latent_dim": 3, "kernel": 3}


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", PAPER_NETWORKS)
def test_without_biases_only_weights_are_parameters(name):
    networks = ImageNetworks((1, 16, 16), PAPER_NETWORKS[name])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        biased, bare = networks.autoencoder(bias=True), networks.autoencoder(bias=False)
    for with_biases, without in zip(biased, bare, strict=True):
        names = {key for key, _ in without.named_parameters()}
        assert not any("bias" in key or "norm" in key for key in names)
        assert names < {key for key, _ in with_biases.named_parameters()}
        assert with_biases.state_dict().keys() == without.state_dict().keys()


def test_a_network_without_biases_maps_nothing_to_nothing():
    """Zero stays zero: the reason why such a network cannot ignore its input."""
    networks = ImageNetworks((1, 8, 8), OPTIONS | {"normalise": False})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        (bare, _), (biased, _) = (networks.autoencoder(bias=b) for b in (False, True))
    nothing = torch.zeros(2, 1, 8, 8)
    assert (bare(nothing) == 0).all()
    assert (biased(nothing) != 0).any()


def test_the_code_is_as_large_as_it_was_asked_to_be():
    with torch.random.fork_rng():
        encoder = CodeEncoder((3, 9, 10), 5, filters=(4, 8), hidden=())
    assert encoder(torch.zeros(2, 3, 9, 10)).shape == (2, 5)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_stacked_members_compute_what_each_does(monkeypatch, bias, fused):
    """Also with the GPU's kernels, which Triton's interpreter runs here."""
    if fused:
        pytest.importorskip("triton")
        if torch.cuda.is_available():
            pytest.skip("Triton's interpreter is for machines without a GPU")
    networks = ImageNetworks((1, 8, 8), OPTIONS)
    loop, stacked = (
        Autoencoders.build(networks, (3, 4), CPU, bias=bias, engine=engine)
        for engine in ("loop", "stacked")
    )
    x = noise(2, 5, 1, 8, 8)
    gradients = []
    for members in (loop, stacked):
        monkeypatch.setattr(conv, "can_fuse", lambda _: fused)
        parameters = [p for stack in members.stacks for p in stack.parameters.values()]
        loss = members.loss(x, torch.full((2, 5), -1), x).sum()
        gradients.append(torch.autograd.grad(loss, parameters))
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
    for one, other in zip(loop.stacks, stacked.stacks, strict=True):
        for name, value in one.buffers.items():
            torch.testing.assert_close(other.buffers[name], value, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(stacked.score(x), loop.score(x), atol=1e-5, rtol=1e-4)
