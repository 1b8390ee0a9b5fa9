"""Ways in which an image goes wrong, each a kind of anomalies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

__all__ = ["CORRUPTIONS", "Corruption"]

Corruption = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.float64]]
"""Returns images ``(n, height, width)`` with pixels in [0, 1], each gone wrong by itself."""

_NOISE, _BLUR, _LINE, _HOLE, _SHIFT, _FADED = 0.25, 1.5, 2, 9, 5, 0.6


def _noise(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.clip(images + rng.normal(0, _NOISE, images.shape), 0, 1)


def _blur(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.asarray(gaussian_filter(images, (0, _BLUR, _BLUR)), np.float64)


def _line(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a bright line across, somewhere."""
    rows = np.arange(images.shape[1])
    first = rng.integers(len(rows) - _LINE, size=(len(images), 1))
    return np.where(((rows >= first) & (rows < first + _LINE))[:, :, None], 1.0, images)


def _hole(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Leave a square empty, not far from the middle."""
    inside = []
    for size in images.shape[1:]:
        first = rng.integers(size // 4, size - size // 4 - _HOLE + 1, size=(len(images), 1))
        inside.append((np.arange(size) >= first) & (np.arange(size) < first + _HOLE))
    return np.where(inside[0][:, :, None] & inside[1][:, None, :], 0.0, images)


def _shift(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Move to one of four sides; what leaves comes back on the other."""
    moves = np.array([(_SHIFT, 0), (-_SHIFT, 0), (0, _SHIFT), (0, -_SHIFT)])
    chosen = moves[rng.integers(len(moves), size=len(images))]
    return np.stack(
        [np.roll(image, move, (0, 1)) for image, move in zip(images, chosen, strict=True)]
    )


def _faded(images: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return _FADED * images


CORRUPTIONS: Mapping[str, Corruption] = {
    "noise": _noise,
    "blur": _blur,
    "line": _line,
    "hole": _hole,
    "shift": _shift,
    "faded": _faded,
}
"""By name."""
