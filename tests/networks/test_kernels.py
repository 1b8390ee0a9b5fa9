"""The GPU's kernels against plain layers: on a GPU, or by Triton's interpreter on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from math import prod
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d, interpolate

from aloof.exceptions import DeviceWarning
from aloof.networks import Architecture, ConvDecoder, ConvEncoder, conv, stacked
from aloof.networks.stacked import fused_activation, fused_convolution, linear, swapped
from aloof.training.stack import Stack
from aloof.vae import Objective, TrainingConfig, VAEProblem, train

pytest.importorskip("triton")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    """Let the plain layers multiply float32 as it is."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def stacks(network: type, shape: tuple[int, int, int], x: Tensor, **options: object) -> Stack:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        networks = [network(shape, 3, **options) for _ in range(len(x))]
    return Stack(networks, engine="stacked", example=[x], device=DEVICE)


def run(
    monkeypatch: pytest.MonkeyPatch, stack: Stack, x: Tensor, *, fused: bool, training: bool
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Return results, gradients and buffers."""
    monkeypatch.setattr(conv, "can_fuse", lambda _: fused)
    x = x.to(DEVICE).requires_grad_()
    out = stack(x, training=training)
    results = list(out) if isinstance(out, tuple) else [out]
    weights = [torch.linspace(-1, 1, r.numel(), device=DEVICE).view(r.shape) for r in results]
    loss = sum((r * w).sum() for r, w in zip(results, weights, strict=True))
    gradients = torch.autograd.grad(loss, [x, *stack.parameters.values()])
    return results, list(gradients), [b.clone() for b in stack.buffers.values()]


BOTH: list[tuple[tuple[int, int, int], dict[str, object]]] = [
    ((1, 8, 8), {"filters": (4, 16)}),
    ((1, 8, 8), {"filters": (16, 4), "kernel": 4, "slope": 0.0, "normalise": False}),
    ((3, 10, 9), {"filters": (16, 32), "hidden": ()}),
    ((2, 7, 7), {"filters": (16,), "kernel": 3}),
    ((3, 8, 12), {"filters": (16, 32), "hidden": (), "kernel": 3}),
    ((16, 4, 4), {"filters": (16,), "hidden": (), "kernel": 7}),
]
DECODERS: list[tuple[tuple[int, int, int], dict[str, object]]] = [  # of doubled pixels
    ((1, 8, 8), {"filters": (16, 32), "hidden": ()}),
    ((1, 8, 8), {"filters": (32, 16), "hidden": (), "kernel": 3}),  # corners, two by two
]


@pytest.mark.parametrize(
    ("network", "shape", "options", "training"),
    [
        *((network, *each, True) for network in (ConvEncoder, ConvDecoder) for each in BOTH),
        *(
            (network, *each, False)
            for network in (ConvEncoder, ConvDecoder)
            for each in BOTH[:2]
        ),
        *((ConvDecoder, *each, True) for each in DECODERS),
    ],
)
def test_kernels_compute_what_plain_layers_do(
    monkeypatch: pytest.MonkeyPatch,
    network: type,
    shape: tuple[int, int, int],
    options: dict[str, object],
    training: bool,
) -> None:
    if DEVICE.type == "cpu":
        # Tested below: a third of the interpreter's time here.
        monkeypatch.setattr(
            "aloof.networks._kernels.filters.inside_out",
            lambda x, dtype: x.permute(0, 3, 2, 1).to(dtype).contiguous(),
        )
    members, n = 2, 5
    size = shape if network is ConvEncoder else (3,)
    x = torch.randn(members, n, *size, generator=torch.Generator().manual_seed(1))
    found, expected = (
        run(
            monkeypatch, stacks(network, shape, x, **options), x, fused=fused, training=training
        )
        for fused in (True, False)
    )
    for name, ours, plain in zip(
        ("results", "gradients", "buffers"), found, expected, strict=True
    ):
        for one, other in zip(ours, plain, strict=True):
            torch.testing.assert_close(
                one, other, rtol=1e-3, atol=2e-4, msg=lambda m, n=name: n + m
            )


@pytest.mark.parametrize(
    ("shared_memory", "fits"),
    [(232_448, True), (166_912, True), (101_376, False), (None, False)],
)
def test_kernels_are_for_gpus_that_their_tiles_fit_on(
    monkeypatch: pytest.MonkeyPatch, shared_memory: int | None, fits: bool
) -> None:
    known = {} if shared_memory is None else {"shared_memory_per_block_optin": shared_memory}
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(**known))
    monkeypatch.setattr(stacked, "runs_triton", lambda _: True)
    assert stacked._has_room(torch.device("cuda", 0)) is fits


@pytest.mark.parametrize("reason", ["", "Failed to find C compiler."])
def test_without_a_compiler_torch_does_the_work(
    monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    from aloof.networks import _kernels

    def fail(*_: object) -> None:
        raise RuntimeError(reason)

    monkeypatch.setattr(torch.cuda, "device", lambda _: nullcontext())
    if reason:
        monkeypatch.setattr(_kernels, "inside_out", fail)
    expected = pytest.warns(DeviceWarning, match=reason) if reason else nullcontext()
    try:
        stacked.runs_triton.cache_clear()
        with expected:
            assert stacked.runs_triton(DEVICE) is (not reason)
            assert stacked.runs_triton(DEVICE) is (not reason)  # without another word
    finally:
        stacked.runs_triton.cache_clear()


# Channels in and out, doubled: of each, other tiles multiply rows, filters or both. They are
# small in float32, so the widest are for bfloat16.
WIDE = [
    (32, 64, False),
    (64, 128, False),
    (64, 64, True),
    (128, 128, True),
    (128, 256, False),
    (256, 128, True),
    (256, 256, False),
]
ON_A_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(DEVICE.type == "cpu", reason="the interpreter has no bfloat16"),
]


@pytest.mark.parametrize(
    ("n_in", "n_out", "doubles", "dtype"),
    [
        *((*each, torch.float32) for each in WIDE[:3]),
        *(pytest.param(*each, torch.bfloat16, marks=ON_A_GPU) for each in WIDE),
    ],
)
def test_wide_convolutions_are_those_of_torch(
    n_in: int, n_out: int, doubles: bool, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        values = torch.randn(shape, generator=generator).to(DEVICE, dtype)
        return values.requires_grad_()

    inputs = drawn(1, 2, 3, 4, n_in), drawn(1, n_out, n_in, 3, 3), drawn(1, n_out)
    ours = fused_convolution(*inputs, doubles=doubles).float()
    images, weight, bias = (value[0].float() for value in inputs)
    images = images.permute(0, 3, 1, 2)
    if doubles:
        images = interpolate(images, scale_factor=2)
    plain = conv2d(images, weight, bias, padding=1).permute(0, 2, 3, 1).unsqueeze(0)
    direction = torch.randn(plain.shape, generator=generator).to(DEVICE)
    pairs = [
        (ours, plain),
        *zip(
            torch.autograd.grad(ours, inputs, direction),
            torch.autograd.grad(plain, inputs, direction),
            strict=True,
        ),
    ]
    for own, other in pairs:
        error = torch.linalg.vector_norm(own.float() - other.float())
        most = 1e-5 if dtype == torch.float32 else 1e-2
        assert error < most * torch.linalg.vector_norm(other.float())


@pytest.mark.parametrize("shape", [(2, 5, 3, 25), (1, 70, 1, 9), (3, 36, 2, 130)])
def test_filters_are_turned_inside_out(shape: tuple[int, ...]) -> None:
    from aloof.networks import _kernels

    generator = torch.Generator().manual_seed(0)
    matrix = torch.randn(shape[0], 7 + prod(shape[1:]), generator=generator).to(DEVICE)
    x = matrix[:, 7:].view(shape)  # members far apart, as parameters are
    found = _kernels.inside_out(x, torch.float64)
    assert found.is_contiguous()
    assert torch.equal(found, x.permute(0, 3, 2, 1).double())


def test_dense_layers_far_from_zero_are_normalised() -> None:
    generator = torch.Generator().manual_seed(0)
    x = (100 + 0.1 * torch.randn(2, 64, 5, generator=generator)).to(DEVICE)
    one, zero = torch.ones(2, 5, device=DEVICE), torch.zeros(2, 5, device=DEVICE)
    out, mean, variance = fused_activation(x, one, zero, statistics=None, eps=1e-5, slope=1.0)
    torch.testing.assert_close(variance, x.var(1, correction=0), rtol=1e-3, atol=0)
    torch.testing.assert_close(mean, x.mean(1))
    torch.testing.assert_close(out.std(1, correction=0), one, rtol=1e-2, atol=0)


def test_planar_images_have_few_channels_and_doubled_pixels() -> None:
    x, bias = torch.zeros(1, 1, 4, 4, 3), torch.zeros(1, 8)
    with pytest.raises(ValueError, match="fewer than 8 channels"):
        fused_convolution(x, torch.zeros(1, 8, 3, 3, 3), bias, doubles=True, planar=True)
    with pytest.raises(ValueError, match="doubled pixels"):
        fused_convolution(x, torch.zeros(1, 2, 3, 3, 3), bias[:, :2], planar=True)


@pytest.mark.parametrize("with_bias", [True, False])
def test_linear_layers_have_the_gradients_of_autograd(with_bias: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 7, 5), (3, 4, 5), (3, 4)][: 3 if with_bias else 2]
    inputs = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    x, weight, *rest = inputs
    bias = rest[0] if rest else None
    plain = torch.einsum("mni,moi->mno", x, weight)
    plain = plain if bias is None else plain + bias[:, None]
    ours = linear(x, weight, bias)
    direction = torch.randn(ours.shape, generator=generator)
    torch.testing.assert_close(ours, plain)
    for one, other in zip(
        torch.autograd.grad(ours, inputs, direction),
        torch.autograd.grad(plain, inputs, direction),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_training_is_the_same_with_and_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several steps of several members: parameters in one matrix, running statistics, both."""
    shape = (1, 8, 8)
    generator = torch.Generator().manual_seed(0)
    rows = torch.rand(40, *shape, generator=generator)
    architecture = Architecture(
        partial(ConvEncoder, shape, 3, (4,), (6,)),
        partial(ConvDecoder, shape, 3, (4,), (6,)),
        3,
    )
    problem = VAEProblem(
        normal=np.arange(30), anomaly=np.arange(30, 40), seeds=[1, 2], objective=Objective("dp")
    )
    config = TrainingConfig(
        max_epochs=2, warmup_epochs=1, batch_size=15, anomaly_batch_size=5, engine="stacked"
    )
    states = []
    for fused in (True, False):
        monkeypatch.setattr(conv, "can_fuse", lambda _, fused=fused: fused)
        [result] = train([rows], [problem], architecture, config, device=DEVICE)
        states.append(result.ensemble.state())
    for name, value in states[0].items():
        if value.is_floating_point() and not name.endswith("convolution.bias"):
            # A bias before batch normalisation has no gradient but rounding.
            torch.testing.assert_close(value, states[1][name], rtol=0.01, atol=5e-3, msg=name)


def test_swapped_axes_and_their_gradient_are_those_of_a_transpose() -> None:
    x = torch.randn(2, 3, 70, 5, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    x.requires_grad_()
    out = swapped(x)
    assert out.is_contiguous()
    assert torch.equal(out, x.transpose(2, 3))
    weights = torch.rand(out.shape, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    (gradient,) = torch.autograd.grad((out * weights).sum(), x)
    assert torch.equal(gradient, weights.transpose(2, 3))
