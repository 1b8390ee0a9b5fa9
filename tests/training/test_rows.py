"""Rows as bytes, rows that stay on the host."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from aloof.networks import Architecture, ConvDecoder, ConvEncoder
from aloof.training.rows import gather
from aloof.vae import Objective, TrainingConfig, VAEProblem, train

SHAPE = (1, 8, 8)


def trained(rows: torch.Tensor) -> dict[str, torch.Tensor]:
    problem = VAEProblem(
        normal=np.arange(40), anomaly=np.arange(40, 50), seeds=[1, 2], objective=Objective("dp")
    )
    architecture = Architecture(
        partial(ConvEncoder, SHAPE, 3, (4,)), partial(ConvDecoder, SHAPE, 3, (4,)), 3
    )
    config = TrainingConfig(max_epochs=3, warmup_epochs=1, batch_size=16, anomaly_batch_size=4)
    [result] = train([rows], [problem], architecture, config, device=torch.device("cpu"))
    return result.ensemble.state()


def test_bytes_are_pixels() -> None:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (50, *SHAPE), generator=generator, dtype=torch.uint8)
    as_bytes, as_floats = trained(pixels), trained(pixels.float() / 255)
    for name, value in as_bytes.items():
        assert torch.equal(value, as_floats[name]), name
    assert not torch.equal(
        as_bytes["encoder.head.weight"], trained(pixels.float())["encoder.head.weight"]
    )


def test_rows_may_lie_in_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    pixels = np.random.default_rng(0).integers(0, 256, (50, *SHAPE), dtype=np.uint8)
    np.save(tmp_path / "pixels.npy", pixels)
    mapped = np.load(tmp_path / "pixels.npy", mmap_mode="r+")
    from_file, in_memory = trained(torch.from_numpy(mapped)), trained(torch.from_numpy(pixels))
    for name, value in from_file.items():
        assert torch.equal(value, in_memory[name]), name


def test_context_comes_as_it_is() -> None:
    grids = torch.ones(3, 4, dtype=torch.uint8)
    _, context = gather([torch.zeros(3, 2), grids], torch.tensor([0, 2]))
    assert torch.equal(context, grids[:2])
