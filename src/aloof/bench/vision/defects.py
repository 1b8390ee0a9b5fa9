"""Defects put into images: six kinds in three sizes, each with its mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, rotate

__all__ = ["KINDS", "LABELLED", "SIZES", "UNSEEN", "damage"]

_Image = NDArray[np.float64]  # (height, width, 3), in [0, 1]
_Mask = NDArray[np.float64]  # (height, width), in [0, 1]: how much of a pixel is replaced
_Damage = Callable[[_Image, np.random.Generator, float], tuple[_Image, _Mask]]

SIZES = {"small": 0.045, "medium": 0.09, "large": 0.18}  # of the side of the image
_GREY = 0.01  # colours whose means differ by less are none
_WEAKEST = 0.04  # mean difference in the mask below which a defect is nothing to see


def damage(
    image: NDArray[np.uint8], kind: str, size: str, seed: list[int]
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return an image with a defect, and where it is.

    Parameters
    ----------
    image
        ``(3, height, width)``.
    kind
        A key of `KINDS`.
    size
        A key of `SIZES`.
    seed
        The same seed, the same defect.
    """
    rng = np.random.default_rng(seed)
    before = image.transpose(1, 2, 0) / 255
    for _ in range(20):
        after, mask = KINDS[kind](before, rng, SIZES[size] * min(before.shape[:2]))
        blended = before + mask[..., None] * (after - before)
        inside = mask > 0.5
        if inside.any() and np.abs(blended - before)[inside].mean() >= _WEAKEST:
            break
    found = np.rint(255 * blended.clip(0, 1)).astype(np.uint8).transpose(2, 0, 1)
    return found, inside


def _place(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[float, float]:
    """Return a place that is not at the border."""
    y, x = rng.uniform(0.2, 0.8, 2)
    return y * shape[0], x * shape[1]


def _blob(shape: tuple[int, ...], rng: np.random.Generator, size: float) -> _Mask:
    """Return a round shape with a bumpy edge, `size` pixels across."""
    y0, x0 = _place(shape, rng)
    y, x = np.mgrid[: shape[0], : shape[1]]
    angle, radius = np.arctan2(y - y0, x - x0), np.hypot(y - y0, x - x0)
    bumps = sum(rng.normal(0, 0.1) * np.cos(k * angle + rng.uniform(0, 6)) for k in (1, 2, 3))
    return np.asarray(np.clip(size / 2 * (1 + bumps) - radius + 0.5, 0, 1))


def _contrast(image: _Image, mask: _Mask, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a colour that stands out from what is under a mask."""
    under = image[mask > 0.5].mean(0) if (mask > 0.5).any() else image.mean((0, 1))
    way = -1 if under.mean() > 0.5 else 1
    return np.asarray((under + way * rng.uniform(0.2, 0.4)).clip(0, 1))


def _is_grey(image: _Image) -> bool:
    return bool(np.abs(image.mean((0, 1)) - image.mean()).max() < _GREY)


def _scratch(image: _Image, rng: np.random.Generator, size: float) -> tuple[_Image, _Mask]:
    y0, x0 = _place(image.shape, rng)
    angle, length, width = rng.uniform(0, np.pi), 2.5 * size, max(1.2, 0.12 * size)
    t = np.linspace(-0.5, 0.5, 64)
    bend = rng.normal(0, 0.12) * length
    along, across = length * t, 4 * bend * (0.25 - t**2)
    ys = y0 + along * np.sin(angle) + across * np.cos(angle)
    xs = x0 + along * np.cos(angle) - across * np.sin(angle)
    y, x = np.mgrid[: image.shape[0], : image.shape[1]]
    far = np.full(image.shape[:2], np.inf)
    for py, px in zip(ys, xs, strict=True):
        far = np.minimum(far, np.hypot(y - py, x - px))
    mask = np.clip(width / 2 - far + 0.5, 0, 1)
    return np.broadcast_to(_contrast(image, mask, rng), image.shape), mask


def _spot(image: _Image, rng: np.random.Generator, size: float) -> tuple[_Image, _Mask]:
    mask = _blob(image.shape, rng, size)
    stain = _contrast(image, mask, rng)
    if not _is_grey(image):
        stain *= rng.uniform(0.85, 1.15, 3)
    return 0.3 * image + 0.7 * stain.clip(0, 1), mask


def _missing(image: _Image, rng: np.random.Generator, size: float) -> tuple[_Image, _Mask]:
    mask = _blob(image.shape, rng, 1.2 * size)
    ring = gaussian_filter(mask, size) * (mask < 0.1)
    colour = (image * ring[..., None]).sum((0, 1)) / max(ring.sum(), 1e-9)
    shadow = 0.6 + 0.1 * gaussian_filter(rng.standard_normal(image.shape[:2]), 2)
    return colour * shadow[..., None], mask


def _misplaced(image: _Image, rng: np.random.Generator, size: float) -> tuple[_Image, _Mask]:
    side = round(1.3 * size) + 1
    mask = np.zeros(image.shape[:2])
    room: NDArray[np.int64] = np.array(mask.shape) - side
    top, left = (rng.uniform(0.15, 0.85, 2) * room).astype(int)
    other_top, other_left = (rng.uniform(0, 1, 2) * room).astype(int)
    piece = image[other_top : other_top + side, other_left : other_left + side]
    turned = rotate(piece, rng.choice([90, 180, 270]), reshape=False, order=1)
    after = image.copy()
    after[top : top + side, left : left + side] = turned
    mask[top : top + side, left : left + side] = 1
    return after, mask


def _texture(image: _Image, rng: np.random.Generator, size: float) -> tuple[_Image, _Mask]:
    mask = _blob(image.shape, rng, 1.3 * size)
    if rng.random() < 0.5:
        return gaussian_filter(image, (0.25 * size, 0.25 * size, 0)), mask
    grain = gaussian_filter(rng.standard_normal(image.shape[:2]), 0.8)
    return image + 0.16 * (grain / grain.std())[..., None], mask


def _colour(image: _Image, rng: np.random.Generator, size: float) -> tuple[_Image, _Mask]:
    mask = gaussian_filter(_blob(image.shape, rng, 1.4 * size), 0.08 * size)
    shift = rng.normal(0, 1, 3)
    shift -= 0.7 * shift.mean()
    if _is_grey(image):
        shift = np.array(rng.choice([-1.0, 1.0]))
    return image + 0.13 * shift / np.abs(shift).max(), mask


KINDS: dict[str, _Damage] = {
    "scratch": _scratch,
    "spot": _spot,
    "missing": _missing,
    "misplaced": _misplaced,
    "texture": _texture,
    "colour": _colour,
}
LABELLED = ("scratch", "spot")
UNSEEN = tuple(kind for kind in KINDS if kind not in LABELLED)
