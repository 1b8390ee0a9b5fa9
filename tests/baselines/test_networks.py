"""Networks of deep baselines: without biases nothing but weights is trained, stacked or not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.baselines.autoencoder import AutoencoderMembers
from aloof.baselines.networks import CodeEncoder, networks_for, without_biases
from aloof.networks import conv
from aloof.training import Setup, Task

CPU = torch.device("cpu")
OPTIONS = {"filters": (4, 16), "hidden": (6,), "latent_dim": 3, "kernel": 3}
SHAPES = [(1, 8, 8), (9,)]


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("shape", SHAPES)
def test_without_biases_only_weights_are_parameters(shape):
    networks = networks_for(shape, (7, 5, 3), OPTIONS)
    with torch.random.fork_rng():
        for make in (networks.encoder, networks.decoder):
            biased, bare = make(), without_biases(make())
            names = {key for key, _ in bare.named_parameters()}
            assert not any("bias" in key or "norm" in key for key in names)
            assert names < {key for key, _ in biased.named_parameters()}
            assert biased.state_dict().keys() == bare.state_dict().keys()


def test_a_network_without_biases_maps_nothing_to_nothing():
    """Zero stays zero: the reason why such a network cannot ignore its input."""
    networks = networks_for((1, 8, 8), (), OPTIONS | {"normalise": False})
    with torch.random.fork_rng():
        bare, biased = without_biases(networks.encoder()), networks.encoder()
    nothing = torch.zeros(2, 1, 8, 8)
    assert (bare(nothing) == 0).all()
    assert (biased(nothing) != 0).any()


def test_the_code_is_as_large_as_it_was_asked_to_be():
    with torch.random.fork_rng():
        encoder = CodeEncoder((3, 9, 10), 5, filters=(4, 8), hidden=())
    assert encoder(torch.zeros(2, 3, 9, 10)).shape == (2, 5)


def test_a_classifier_of_images_is_linear_in_the_code():
    """With a normalised and activated code, hidden anomalies are learned by heart."""
    networks = networks_for((1, 8, 8), (), OPTIONS)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        classifier = networks.classifier(size=2)
    x = noise(4, 1, 8, 8)
    code = CodeEncoder.forward(classifier, x)
    assert code.shape == (4, OPTIONS["latent_dim"])
    twice = classifier.output(2 * code) - classifier.output(code)
    torch.testing.assert_close(classifier(x) + twice, classifier.output(2 * code))
    torch.testing.assert_close(twice, code @ classifier.output.weight.T)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_stacked_members_compute_what_each_does(monkeypatch, shape, bias, fused):
    """Also with the GPU's kernels, which Triton's interpreter runs here."""
    if fused:
        pytest.importorskip("triton")
        if torch.cuda.is_available():
            pytest.skip("Triton's interpreter is for machines without a GPU")
    networks = networks_for(shape, (7, 5, 3), OPTIONS)
    x = noise(2, 5, *shape)
    task = Task(rows=np.arange(5), seeds=(3, 4))
    made, gradients = [], []
    for engine in ("loop", "stacked"):
        monkeypatch.setattr(conv, "can_fuse", lambda _: fused)
        setup = Setup([task, task], (3, 4), [x[0]], [x[0]], CPU, torch.float32, engine)
        members = AutoencoderMembers.build(networks, setup, bias=bias)
        stacks = members.stacks.values()
        parameters = [p for stack in stacks for p in stack.parameters.values()]
        loss = members.row_loss(x, torch.full((2, 5), -1), x).sum()
        gradients.append(torch.autograd.grad(loss, parameters))
        made.append(members)
    for found, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-3)
    loop, stacked = made
    for one, other in zip(loop.stacks.values(), stacked.stacks.values(), strict=True):
        for name, value in one.buffers.items():
            torch.testing.assert_close(other.buffers[name], value, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(stacked.score(x), loop.score(x), atol=1e-5, rtol=1e-4)
