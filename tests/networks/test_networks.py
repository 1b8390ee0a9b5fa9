from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
import torch

from aloof.networks import Architecture, ConvDecoder, ConvEncoder, MLPDecoder, MLPEncoder
from aloof.networks._compiling import constant
from aloof.training.stack import _is_stackable
from aloof.vae import Ensemble

CPU = torch.device("cpu")

NETWORKS = {
    "mlp": ((7,), partial(MLPEncoder, hidden=(6, 5)), partial(MLPDecoder, hidden=(6, 5)), 3),
    "mlp without hidden layers": (
        (7,),
        partial(MLPEncoder, hidden=()),
        partial(MLPDecoder, hidden=()),
        2,
    ),
    "mlp with batch normalisation": (
        (7,),
        partial(MLPEncoder, hidden=(6, 5), normalise=True),
        partial(MLPDecoder, hidden=(6, 5), normalise=True),
        3,
    ),
    "mlp of the code the paper builds on": (
        (7,),
        partial(MLPEncoder, hidden=(6, 5), normalise=True, bias=False, slope=0.01),
        partial(MLPDecoder, hidden=(6, 5), normalise=True, bias=False, slope=0.01),
        3,
    ),
    "conv": (
        (3, 8, 8),
        partial(ConvEncoder, filters=(4, 6), hidden=(10,)),
        partial(ConvDecoder, filters=(4, 6), hidden=(10,)),
        5,
    ),
    "conv of odd size": (
        (1, 7, 9),
        partial(ConvEncoder, filters=(4, 6), hidden=()),
        partial(ConvDecoder, filters=(4, 6), hidden=()),
        5,
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("training", [True, False])
def test_stacked_networks_are_the_single_ones_side_by_side(name: str, training: bool) -> None:
    """Outputs, gradients and running statistics, against one member after the other."""
    shape, encoder, decoder, latent = NETWORKS[name]
    networks = Architecture(
        partial(encoder, shape, latent), partial(decoder, shape, latent), latent
    )
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(3, 6, *shape, generator=generator, dtype=torch.float64)
    outcome = {}
    for engine in ("stacked", "loop"):
        ensemble = Ensemble.build(
            networks, [1, 2, 3], [x[0]], device=CPU, dtype=torch.float64, engine=engine
        )
        mean, log_var = ensemble.encode([x], training=training)
        output = ensemble.decoder(mean + log_var, training=training)
        leaves = [*ensemble.encoder.parameters.values(), *ensemble.decoder.parameters.values()]
        gradients = torch.autograd.grad(output.square().sum(), leaves)
        outcome[engine] = [mean, log_var, output, *gradients, *ensemble.state().values()]
        assert output.shape == x.shape
    for left, right in zip(outcome["stacked"], outcome["loop"], strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_promise_to_be_stacked(name: str) -> None:
    """All of their layers: convolutions go one after the other on a CPU all the same."""
    shape, encoder, decoder, latent = NETWORKS[name]
    networks = Architecture(
        partial(encoder, shape, latent), partial(decoder, shape, latent), latent
    )
    ensemble = Ensemble.build(networks, [1, 2], [torch.zeros(4, *shape)], device=CPU)
    engine = "loop" if len(shape) == 3 else "stacked"
    assert ensemble.encoder.engine == ensemble.decoder.engine == engine
    assert _is_stackable(ensemble.encoder.network)
    assert _is_stackable(ensemble.decoder.network)


def test_paper_networks_have_their_sizes() -> None:
    def count(module: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    for widths, d in (((128, 64, 32), 274), ((32, 16, 8), 21), ((32, 16, 4), 6)):
        *hidden, latent = widths
        sizes = [d, *hidden, 2 * latent]
        expected = sum(a * b + b for a, b in pairwise(sizes))
        with torch.random.fork_rng():
            assert count(MLPEncoder((d,), latent, hidden)) == expected
    with torch.random.fork_rng():
        encoder = ConvEncoder((3, 32, 32), 128, (32, 64, 128), ())
        kernels = [
            tuple(m.weight.shape)
            for m in encoder.modules()
            if hasattr(m, "kernel_size") and hasattr(m, "weight")
        ]
        assert kernels == [(32, 3, 5, 5), (64, 32, 5, 5), (128, 64, 5, 5)]
        assert encoder.head.weight.shape == (256, 128 * 4 * 4)


def test_hidden_layers_of_the_code_the_paper_builds_on() -> None:
    """Against the same layers of torch: no bias, no gain, no shift, the published numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = MLPEncoder((7,), 3, (6, 5), normalise=True, bias=False, slope=0.01)
        decoder = MLPDecoder((7,), 3, (6, 5), normalise=True, bias=False, slope=0.01)
        x = 3.0 * torch.randn(20, 7) + 1.0
    names = {name for name, _ in encoder.named_parameters()}
    assert names == {"body.0.linear.weight", "body.1.linear.weight", "head.weight", "head.bias"}
    layers: list[torch.nn.Module] = []
    for dense in encoder.body:
        weight = dense.linear.weight
        with torch.random.fork_rng():
            plain = torch.nn.Linear(*reversed(weight.shape), bias=False)
        plain.weight = weight
        normal = torch.nn.BatchNorm1d(len(weight), eps=1e-4, affine=False)
        layers += [plain, normal, torch.nn.LeakyReLU(0.01)]
    theirs = torch.nn.Sequential(*layers)
    for training in (True, True, False):  # running statistics count, too
        encoder.train(training)
        theirs.train(training)
        torch.testing.assert_close(encoder.body(x), theirs(x))
    mean, log_var = encoder(x)
    head = theirs(x) @ encoder.head.weight.T + encoder.head.bias
    torch.testing.assert_close(torch.cat([mean, log_var], -1), head)
    assert decoder(mean).shape == x.shape
    assert [tuple(p.shape) for p in decoder.parameters()] == [(5, 3), (6, 5), (7, 6), (7,)]


def test_learned_variance_is_one_value_a_feature() -> None:
    with torch.random.fork_rng():
        decoder = MLPDecoder((4,), 2, (3,), learn_variance=True)
        mean, log_var = decoder(torch.zeros(5, 2))
    assert mean.shape == log_var.shape == (5, 4)
    assert decoder.log_var is not None
    assert decoder.log_var.shape == (4,)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="flat rows"):
        MLPEncoder((1, 28, 28), 4)
    with pytest.raises(ValueError, match="at least 8 pixels"):
        ConvEncoder((1, 4, 4), 4, (2, 2, 2))


def test_constants_are_marked_as_torch_marks_them() -> None:
    def ours() -> None: ...

    def theirs() -> None: ...

    assert vars(constant(ours)) == vars(torch.compiler.assume_constant_result(theirs)) != {}
    assert constant(ours) is ours
