"""Adam in one pass on a GPU against torch's: on a GPU, or by Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from aloof.training import adam

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHAPES = [(3, 2, 700), (3, 5), (3, 1)]  # more than a block of the kernel, and less


def moved(
    monkeypatch: pytest.MonkeyPatch, *, fused: bool, max_norm: float | None, shapes: list
) -> list[torch.Tensor]:
    """Return a matrix and its moments after some steps."""
    monkeypatch.setattr(adam, "_can_fuse", lambda _: fused)
    generator = torch.Generator().manual_seed(0)
    parts = [
        [torch.randn(shape, generator=generator).to(DEVICE) for shape in SHAPES]
        for _ in range(4)
    ]
    matrix = torch.randn(3, 1406, generator=generator).to(DEVICE)
    optimizer = adam.Adam(matrix, (0.8, 0.99))
    for step, gradients in enumerate(parts):
        given = [part for part, shape in zip(gradients, SHAPES, strict=True) if shape in shapes]
        given[0][1] *= 1e-3  # one member's gradient is too small to be clipped
        rate = torch.tensor(0.1 / (step + 1), device=DEVICE)
        optimizer.step(given, rate, max_norm=max_norm)
    return [matrix, *optimizer.state.values()]


@pytest.mark.parametrize("max_norm", [None, 10.0])
def test_one_pass_moves_parameters_as_torch_does(
    monkeypatch: pytest.MonkeyPatch, max_norm: float | None
) -> None:
    pytest.importorskip("triton")
    ours = moved(monkeypatch, fused=True, max_norm=max_norm, shapes=SHAPES)
    theirs = moved(monkeypatch, fused=False, max_norm=max_norm, shapes=SHAPES)
    for own, expected in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, expected, rtol=2e-5, atol=2e-6)


def test_clipping_changes_members_whose_gradient_is_too_large_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("triton")
    free = moved(monkeypatch, fused=True, max_norm=None, shapes=SHAPES)[1]
    held = moved(monkeypatch, fused=True, max_norm=10.0, shapes=SHAPES)[1]
    assert torch.equal(free[1], held[1])
    assert not torch.allclose(free[0], held[0])


def test_gradients_that_do_not_fill_the_matrix_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("triton")
    with pytest.raises(ValueError, match="1405 columns, the matrix 1406"):
        moved(monkeypatch, fused=True, max_norm=None, shapes=SHAPES[:2])
