"""Backward passes of our own functions compute the gradients asked for, and no others."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from aloof.networks import ConvEncoder, conv, stacked
from aloof.networks.stacked import linear
from aloof.training.stack import Stack

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the threads that computed a linear layer's weight gradient, one for each."""
    return counted(monkeypatch, stacked, "_product")


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[str]:
    original, calls = getattr(owner, name), []

    def count(*args: Any) -> Any:
        calls.append(threading.current_thread().name)
        return original(*args)

    monkeypatch.setattr(owner, name, count)
    return calls


def layer() -> tuple[Tensor, Tensor, Tensor]:
    """Rows, weights and biases of three members."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 7, 5), (3, 4, 5), (3, 4))
    x, weight, bias = (
        torch.randn(shape, generator=generator).to(DEVICE).requires_grad_() for shape in shapes
    )
    return x, weight, bias


def test_what_is_asked_for_is_computed(products: list[str]) -> None:
    x, weight, bias = layer()
    y = linear(2 * x, weight, bias).square().sum()
    every = torch.autograd.grad(y, [x, weight, bias], retain_graph=True)
    for asked, costs in (([0], 0), ([2], 0), ([0, 2], 0), ([1], 1), ([0, 1], 1)):
        products.clear()
        inputs = [(x, weight, bias)[number] for number in asked]
        found = torch.autograd.grad(y, inputs, retain_graph=True)
        assert len(products) == costs, asked
        for number, gradient in zip(asked, found, strict=True):
            assert torch.equal(gradient, every[number])


def test_backward_into_parameters(products: list[str]) -> None:
    x, weight, bias = layer()
    y = linear(x, weight, bias).square().sum()
    y.backward(inputs=[x], retain_graph=True)
    assert not products
    assert x.grad is not None
    assert weight.grad is None
    y.backward()
    assert len(products) == 1
    assert weight.grad is not None
    assert bias.grad is not None


def test_parameters_that_are_views_of_one_matrix(products: list[str]) -> None:
    """As the members' are."""
    x = layer()[0]
    matrix = torch.ones(3, 24, device=DEVICE, requires_grad=True)
    y = linear(x, matrix[:, :20].view(3, 4, 5), matrix[:, 20:]).sum()
    torch.autograd.grad(y, x, retain_graph=True)
    assert not products
    torch.autograd.grad(y, matrix)
    assert len(products) == 1


def test_layers_without_a_bias_or_with_fixed_rows(products: list[str]) -> None:
    x, weight, bias = layer()
    (found,) = torch.autograd.grad(linear(x.detach(), weight, None).sum(), weight)
    assert found.abs().sum() > 0
    assert len(products) == 1
    (found,) = torch.autograd.grad(linear(x.detach(), weight.detach(), bias).sum(), bias)
    assert torch.equal(found, torch.full_like(bias, x.shape[1]))
    assert len(products) == 1


class _Again(torch.autograd.Function):
    """A result again, whose gradient goes back to one input by a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, output: Tensor) -> Tensor:
        ctx.z, ctx.output = z, output
        return output.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (d_z,) = torch.autograd.grad(ctx.output, ctx.z, gradient, retain_graph=True)
        ctx.z = ctx.output = None
        return d_z, None


def test_a_pass_within_a_pass(products: list[str]) -> None:
    """The inner one asks for rows alone, the outer one for everything: one product, not two."""
    x, weight, bias = layer()
    z = 2 * x
    y = linear(z, weight, bias)
    d_x, d_weight = torch.autograd.grad(y.sum() + _Again.apply(z, y).sum(), [x, weight])
    assert len(products) == 1
    plain = linear(2 * x, weight, bias).sum()
    expected_x, expected_weight = torch.autograd.grad(plain, [x, weight])
    torch.testing.assert_close(d_x, 2 * expected_x)  # both results reach the rows
    torch.testing.assert_close(d_weight, expected_weight)  # one of them the weights


class _Meeting(torch.autograd.Function):
    """The identity; its gradient waits until as many passes are under way as are expected."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, barrier: threading.Barrier) -> Tensor:
        ctx.barrier = barrier
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.barrier.wait(timeout=60)
        return gradient, None


@pytest.mark.skipif(DEVICE.type == "cuda", reason="one thread runs all passes of a GPU")
def test_passes_in_two_threads_do_not_disturb_each_other(products: list[str]) -> None:
    barrier, found = threading.Barrier(2), {}

    def run(name: str, asked: slice) -> None:
        inputs = layer()
        y = _Meeting.apply(linear(*inputs), barrier).sum()
        found[name] = torch.autograd.grad(y, inputs[asked])

    threads = [
        threading.Thread(target=run, args=args, name=args[0])
        for args in (("rows", slice(1)), ("all", slice(None)))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert products == ["all"]
    assert torch.equal(found["rows"][0], found["all"][0])
    assert all(gradient.abs().sum() > 0 for gradient in found["all"])


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's
def test_compiled_layers_have_all_gradients() -> None:
    """The compiler traces the backward pass before anybody has asked for anything."""
    inputs = layer()
    compiled = torch.compile(linear, backend="aot_eager", fullgraph=True)
    found = torch.autograd.grad(compiled(*inputs).square().sum(), inputs)
    expected = torch.autograd.grad(linear(*inputs).square().sum(), inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def convolutions(monkeypatch: pytest.MonkeyPatch) -> tuple[Stack, Tensor, list[str]]:
    """A stack on kernels of our own, rows for it, and who computed gradients of filters."""
    pytest.importorskip("triton")
    from aloof.networks import _kernels

    calls = counted(monkeypatch, _kernels.Filters, "weight_gradient")
    monkeypatch.setattr(conv, "can_fuse", lambda _: True)
    x = torch.randn(2, 3, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    x = x.to(DEVICE).requires_grad_()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        networks: list[nn.Module] = [ConvEncoder((1, 8, 8), 3, (4,)) for _ in range(2)]
    return Stack(networks, engine="stacked", example=[x], device=DEVICE), x, calls


def test_filters_that_are_held_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stack, x, calls = convolutions(monkeypatch)
    mean, _ = stack(x, training=True)
    (held,) = torch.autograd.grad(mean.sum(), x, retain_graph=True)
    assert not calls
    free, *_ = torch.autograd.grad(
        mean.sum(), [x, *stack.parameters.values()], allow_unused=True
    )
    assert calls
    torch.testing.assert_close(held, free)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE.type == "cpu", reason="needs a GPU")
def test_filters_are_held_in_the_thread_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backward passes run in another thread there, the inner one of two as well."""
    stack, x, calls = convolutions(monkeypatch)
    z = 2 * x
    mean, _ = stack(z, training=True)
    torch.autograd.grad(_Again.apply(z, mean).sum(), x, retain_graph=True)
    assert not calls
    loss = mean.sum() + _Again.apply(z, mean).sum()
    torch.autograd.grad(loss, [x, *stack.parameters.values()], allow_unused=True)
    assert len(calls) == 1  # one convolution; twice without
    assert calls != [threading.current_thread().name]
