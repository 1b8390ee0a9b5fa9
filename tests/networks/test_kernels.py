"""The GPU's kernels against plain layers, run by Triton's interpreter on the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from aloof.networks import ConvDecoder, ConvEncoder, conv
from aloof.training.stack import Stack

pytest.importorskip("triton")
if torch.cuda.is_available():
    pytest.skip("Triton's interpreter is for machines without a GPU", allow_module_level=True)


def stacks(network: type, shape: tuple[int, int, int], x: Tensor, **options: object) -> Stack:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        networks = [network(shape, 3, **options) for _ in range(len(x))]
    return Stack(networks, engine="stacked", example=[x], device=torch.device("cpu"))


def run(
    monkeypatch: pytest.MonkeyPatch, stack: Stack, x: Tensor, *, fused: bool, training: bool
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """Return results, gradients and buffers."""
    monkeypatch.setattr(conv, "can_fuse", lambda _: fused)
    x = x.clone().requires_grad_()
    out = stack(x, training=training)
    results = list(out) if isinstance(out, tuple) else [out]
    weights = [torch.linspace(-1, 1, r.numel()).view(r.shape) for r in results]
    loss = sum((r * w).sum() for r, w in zip(results, weights, strict=True))
    gradients = torch.autograd.grad(loss, [x, *stack.parameters.values()])
    return results, list(gradients), [b.clone() for b in stack.buffers.values()]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 8, 8), {"channels": (4, 16)}),
        ((3, 10, 9), {"channels": (16, 32), "hidden": ()}),
        ((1, 8, 8), {"channels": (16, 4), "kernel": 4, "slope": 0.0, "normalise": False}),
        ((2, 7, 7), {"channels": (16,), "kernel": 3}),
    ],
)
@pytest.mark.parametrize("network", [ConvEncoder, ConvDecoder])
def test_kernels_compute_what_plain_layers_do(
    monkeypatch: pytest.MonkeyPatch,
    network: type,
    shape: tuple[int, int, int],
    options: dict[str, object],
    training: bool,
) -> None:
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
