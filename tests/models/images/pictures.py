"""Pictures for the tests: discs, and discs with a scratch."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def disc(rng: np.random.Generator, side: int = 16, *, scratched: bool = False) -> NDArray:
    """Return a bright disc on a dark ground, (side, side, 3)."""
    y, x = np.mgrid[:side, :side] / side - 0.5
    dx, dy = rng.uniform(-0.06, 0.06, 2)
    inside = np.hypot(x - dx, y - dy) < 0.33
    picture = np.where(inside[..., None], (200, 170, 90), (30, 40, 60)).astype(float)
    if scratched:
        angle = rng.uniform(0, np.pi)
        line = np.abs((x - dx) * np.sin(angle) - (y - dy) * np.cos(angle)) < 1.2 / side
        picture[line & inside] = (20, 10, 120)
    picture += rng.normal(0, 6, picture.shape)
    return picture.clip(0, 255).astype(np.uint8)


def save(path: Path, picture: NDArray, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(path, **options)
    return path


def parts(folder: Path, *, good: int, bad: int, side: int = 16, seed: int = 0) -> Path:
    """Fill good/ and bad/ inside a folder."""
    rng = np.random.default_rng(seed)
    for i in range(good):
        save(folder / "good" / f"{i:03}.png", disc(rng, side))
    for i in range(bad):
        save(folder / "bad" / f"{i:03}.png", disc(rng, side, scratched=True))
    return folder


def encoded(picture: NDArray, format: str = "PNG", **options: object) -> bytes:
    content = io.BytesIO()
    Image.fromarray(picture).save(content, format, **options)
    return content.getvalue()
