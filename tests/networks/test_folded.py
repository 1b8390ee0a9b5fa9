"""The decoder that folds its code: what it computes, alone, stacked and on a GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn.functional import batch_norm, conv2d, interpolate, leaky_relu

from aloof.baselines.networks import networks_for
from aloof.networks import ConvDecoder, FoldedDecoder, conv
from aloof.training.stack import Stack

CPU = torch.device("cpu")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SHAPES = [
    ((1, 28, 28), 32, {"filters": (8, 4), "hidden": ()}),
    ((1, 28, 28), 16, {"filters": (3, 2), "hidden": (32,)}),
    ((3, 32, 32), 16, {"filters": (2, 4, 8), "hidden": ()}),
]


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def reference(decoder: FoldedDecoder, z: Tensor) -> Tensor:
    """Return what Ruff et al. describe: codes as 4x4 images, doubled between convolutions."""
    y = decoder.dense[0](z) if len(decoder.dense) else leaky_relu(z, 0.1)
    y = y.view(len(z), -1, 4, 4)
    three = len(decoder.stages) == 3  # 4, 8, 16, 32 pixels; else 8, 16 less a rim, 28
    for number, stage in enumerate([*decoder.stages, decoder.output]):
        if number or not three:
            y = interpolate(y, scale_factor=2)
        if number == 1 and not three:
            y = y[:, :, 1:-1, 1:-1]
        layer = stage.convolution if number < len(decoder.stages) else stage
        y = conv2d(y, layer.weight, layer.bias, padding=2)
        if number < len(decoder.stages):
            y = leaky_relu(batch_norm(y, None, None, training=True), 0.1)
    return torch.sigmoid(y)


@pytest.mark.parametrize(("shape", "size", "options"), SHAPES)
def test_codes_become_images(shape, size, options):
    decoder = FoldedDecoder(shape, size, **options)
    z = torch.randn(5, size)
    found = decoder(z)
    assert found.shape == (5, *shape)
    torch.testing.assert_close(found, reference(decoder, z), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "size", "options", "fused"),
    [*((*each, False) for each in SHAPES), (*SHAPES[0], True)],
)
def test_a_stack_computes_what_its_members_do(monkeypatch, shape, size, options, fused):
    if fused:
        pytest.importorskip("triton")
    networks = [FoldedDecoder(shape, size, **options) for _ in range(2)]
    z = torch.randn(2, 3, size)
    alone = torch.stack([own(rows) for own, rows in zip(networks, z, strict=True)])
    where = DEVICE if fused else CPU  # Triton's interpreter takes the place of a GPU
    stack = Stack(networks, engine="stacked", example=[z], device=where)
    monkeypatch.setattr(conv, "can_fuse", lambda _: fused)
    together = stack(z.to(where), training=True).cpu()
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=2e-4)


def test_images_of_any_size_are_made():
    for height, width in ((17, 20), (36, 30), (64, 64)):
        decoder = FoldedDecoder((1, height, width), 16, (4, 2), ())
        assert decoder(torch.randn(2, 16)).shape == (2, 1, height, width)


def test_codes_that_cannot_be_folded_are_refused():
    with pytest.raises(ValueError, match="a multiple of 16 numbers; got 20"):
        FoldedDecoder((1, 28, 28), 20, (4, 8), ())


def test_a_baseline_chooses_its_decoder():
    shape, options = (1, 28, 28), {"filters": (8, 4), "hidden": (), "latent_dim": 32}
    folded = networks_for(shape, (), {**options, "decoder": "folded"})
    assert isinstance(folded.decoder(), FoldedDecoder)
    assert isinstance(networks_for(shape, (), options).decoder(), ConvDecoder)
    n_weights = sum(p.numel() for p in folded.encoder().parameters())
    # Two convolutions of 5x5 with biases and normalisation, and one dense layer.
    assert n_weights == (25 * 8 + 8) + 2 * 8 + (25 * 8 * 4 + 4) + 2 * 4 + (4 * 49 * 32 + 32)
    vae = folded.vae()
    assert isinstance(vae.decoder(), FoldedDecoder)
    with pytest.raises(ValueError, match="no decoder 'fold'; did you mean 'folded'"):
        networks_for(shape, (), {"decoder": "fold"})
