"""Surfaces and parts to look for defects on: drawn ones, and photographs at hand.

All are made from a seed. Images of one surface differ as those of a camera over a belt do: in
place, light and detail.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates, zoom
from scipy.spatial import cKDTree

from aloof.exceptions import ExperimentError

__all__ = ["DEVELOPMENT", "SURFACES", "draw"]

_Image = NDArray[np.float64]  # (height, width, 3), in [0, 1]
_Draw = Callable[[np.random.Generator, int], _Image]


def draw(surface: str, seed: int, n: int, side: int) -> NDArray[np.uint8]:
    """Return images ``(n, 3, side, side)`` of a surface.

    Parameters
    ----------
    surface
        A key of `SURFACES`.
    seed
        The same seed, the same images.
    n
        How many.
    side
        In pixels.
    """
    found = np.empty((n, 3, side, side), np.uint8)
    for place in range(n):
        rng = np.random.default_rng([seed, place])
        image = _lit(SURFACES[surface](rng, side), rng)
        image += rng.normal(0, 0.01, image.shape)
        found[place] = np.rint(255 * image.clip(0, 1)).astype(np.uint8).transpose(2, 0, 1)
    return found


def _lit(image: _Image, rng: np.random.Generator) -> _Image:
    """Return the image in a light of its own, which may fall off to one side."""
    side = len(image)
    slope = rng.normal(0, 0.04, 2)
    y, x = np.mgrid[-0.5 : 0.5 : side * 1j, -0.5 : 0.5 : side * 1j]
    light = rng.normal(1, 0.04) + slope[0] * x + slope[1] * y
    return np.asarray(image * light[..., None])


def _noise(rng: np.random.Generator, side: int, *sigma: float) -> NDArray[np.float64]:
    """Return smooth noise of unit variance."""
    found = gaussian_filter(rng.standard_normal((side, side)), sigma, mode="wrap")
    return np.asarray(found / found.std())


def _coloured(values: NDArray[np.float64], dark: _Colour, light: _Colour) -> _Image:
    a, b = np.array(dark), np.array(light)
    return np.asarray(a + np.clip(values, 0, 1)[..., None] * (b - a))


_Colour = tuple[float, float, float]


def _weave(rng: np.random.Generator, side: int) -> _Image:
    y, x = np.mgrid[:side, :side] + rng.uniform(0, 16, 2)[:, None, None]
    bend = 1.2 * _noise(rng, side, 20, 20)
    over = np.sin(2 * np.pi * (x + bend) / 8)
    under = np.sin(2 * np.pi * (y + bend) / 8)
    which = np.sin(np.pi * x / 8) * np.sin(np.pi * y / 8) > 0
    values = 0.5 + 0.25 * np.where(which, over, under) + 0.05 * _noise(rng, side, 1, 1)
    return _coloured(values, (0.15, 0.2, 0.35), (0.55, 0.62, 0.8))


def _wood(rng: np.random.Generator, side: int) -> _Image:
    y, _ = np.mgrid[:side, :side]
    bend = 10 * _noise(rng, side, 10, 60)
    rings = np.sin(2 * np.pi * (y + bend + rng.uniform(0, 40)) / 22)
    values = 0.5 + 0.22 * rings + 0.12 * _noise(rng, side, 0.6, 9)
    return _coloured(values, (0.38, 0.22, 0.1), (0.8, 0.6, 0.38))


def _leather(rng: np.random.Generator, side: int) -> _Image:
    places = rng.uniform(-10, side + 10, (int((side / 9) ** 2), 2))
    grid = np.moveaxis(np.mgrid[:side, :side], 0, -1)
    near, _ = cKDTree(places).query(grid, k=2)
    grain = 0.35 + 0.3 * (1 - np.exp((near[..., 0] - near[..., 1]) / 3))
    values = grain + 0.04 * _noise(rng, side, 1, 1) + 0.05 * _noise(rng, side, 20, 20)
    return _coloured(gaussian_filter(values, 0.7), (0.12, 0.06, 0.03), (0.75, 0.5, 0.33))


def _concrete(rng: np.random.Generator, side: int) -> _Image:
    values = 0.55 + 0.06 * _noise(rng, side, 0.7, 0.7)
    values += 0.05 * _noise(rng, side, 3, 3) + 0.05 * _noise(rng, side, 12, 12)
    n, reach = side * side // 260, 8
    stones = np.zeros((side + 2 * reach, side + 2 * reach))
    y, x = np.mgrid[: 2 * reach + 1, : 2 * reach + 1] - reach
    for _ in range(n):
        (top, left), (dy, dx) = rng.integers(0, side, 2), rng.uniform(0, 1, 2)
        size, shade = rng.gamma(2, 0.8), rng.normal(0, 0.18)
        mask = np.clip(size - np.hypot(y - dy, x - dx) + 0.5, 0, 1)
        part = stones[top : top + len(y), left : left + len(y)]
        part += mask * (shade - part)
    values += stones[reach:-reach, reach:-reach]
    return np.repeat(values.clip(0, 1)[..., None], 3, 2)


def _mesh(rng: np.random.Generator, side: int) -> _Image:
    pitch, turn = side / 9, rng.normal(0, 0.02)
    y, x = np.mgrid[:side, :side] + rng.uniform(0, 50, 2)[:, None, None]
    y, x = y * np.cos(turn) - x * np.sin(turn), y * np.sin(turn) + x * np.cos(turn)
    away = np.full((side, side), np.inf)
    for shift in (0.0, 0.5):  # two grids make rows of holes with gaps between
        v, u = y / (pitch * 3**0.5) + shift, x / pitch + shift
        away = np.minimum(away, np.hypot((v - np.rint(v)) * 3**0.5, u - np.rint(u)))
    hole = 1 / (1 + np.exp((away - 0.3) * pitch * 1.5))
    metal = 0.62 + 0.05 * _noise(rng, side, 1, 8) + 0.04 * _noise(rng, side, 25, 25)
    values = metal * (1 - hole) + 0.1 * hole
    return _coloured(values, (0.05, 0.05, 0.06), (0.95, 0.93, 0.9))


def _brushed(rng: np.random.Generator, side: int) -> _Image:
    values = 0.6 + 0.1 * _noise(rng, side, 0.5, 40) + 0.05 * _noise(rng, side, 30, 30)
    return _coloured(values, (0.1, 0.1, 0.12), (0.95, 0.95, 0.97))


def _tiles(rng: np.random.Generator, side: int) -> _Image:
    size = side / 4
    y, x = np.mgrid[:side, :side] + rng.uniform(0, size, 2)[:, None, None]
    row, column = (y // size).astype(int), (x // size).astype(int)
    shade = rng.normal(0, 0.05, (8, 8))[row % 8, column % 8]
    gap = np.minimum.reduce([y % size, size - y % size, x % size, size - x % size])
    values = 0.65 + shade + 0.06 * _noise(rng, side, 2, 2)
    values = np.where(gap < 2.5, 0.15 + 0.03 * _noise(rng, side, 1, 1), values)
    return _coloured(values, (0.2, 0.18, 0.17), (0.85, 0.62, 0.52))


def _board(rng: np.random.Generator, side: int) -> _Image:
    image = np.empty((side, side, 3))
    image[:] = (0.08, 0.32, 0.2)
    image += 0.015 * _noise(rng, side, 1, 1)[..., None]
    unit = side / 64
    fixed = np.random.default_rng(7)  # the layout of all boards
    dy, dx = rng.normal(0, 1.0, 2)

    def box(y: float, x: float, h: float, w: float, colour: _Colour) -> None:
        ys = slice(max(0, round(y * unit + dy)), max(0, round((y + h) * unit + dy)))
        xs = slice(max(0, round(x * unit + dx)), max(0, round((x + w) * unit + dx)))
        image[ys, xs] = np.array(colour) * rng.normal(1, 0.03)

    for line in range(4, 62, 5):
        box(line, 2, 0.6, 60, (0.16, 0.45, 0.28))
    box(20, 20, 22, 24, (0.1, 0.1, 0.11))
    for k in range(9):
        box(17.4, 21 + 2.5 * k, 2.2, 1.2, (0.8, 0.8, 0.76))
        box(42.4, 21 + 2.5 * k, 2.2, 1.2, (0.8, 0.8, 0.76))
    for _ in range(14):
        y, x = fixed.uniform(3, 13), fixed.uniform(3, 58)
        y = y if fixed.random() < 0.5 else y + 45
        box(y, x, 2.0, 3.6, (0.75, 0.62, 0.4))
        box(y, x + 0.9, 2.0, 1.8, (0.2, 0.16, 0.14))
    return np.asarray(gaussian_filter(image, (0.7, 0.7, 0)))


def _nuts(rng: np.random.Generator, side: int) -> _Image:
    y, x = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j]
    y, x = y - rng.normal(0, 0.02), x - rng.normal(0, 0.02)
    turn = rng.uniform(0, np.pi / 3)
    radius, angle = np.hypot(x, y), np.arctan2(y, x) + turn
    wedge = (angle + np.pi / 6) % (np.pi / 3) - np.pi / 6
    edge = radius * np.cos(wedge)
    nut = (edge < 0.68) & (radius > 0.33)
    metal = 0.62 + 0.1 * np.cos(3 * angle) * (edge > 0.6) + 0.04 * _noise(rng, side, 1, 6)
    metal = np.where((radius < 0.4) & nut, 0.4 + 0.2 * np.sin(60 * radius), metal)
    back = 0.16 + 0.02 * _noise(rng, side, 3, 3)
    image = _coloured(np.where(nut, metal, back), (0.02, 0.02, 0.03), (0.98, 0.95, 0.9))
    return np.asarray(gaussian_filter(image, (0.6, 0.6, 0)))


@cache
def _photograph(name: str) -> NDArray[np.float64]:
    from PIL import Image

    found = importlib.util.find_spec("skimage")  # its pictures; nothing of it is run
    path = None
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "data" / f"{name}.png"
    if path is None or not path.is_file():
        raise ExperimentError(
            f"The photograph of {name} comes with scikit-image, which is not installed. "
            "Install it with: pip install scikit-image"
        )
    with Image.open(path) as image:
        return np.asarray(image.convert("L"), np.float64) / 255


@cache
def _temple() -> NDArray[np.float64]:
    from sklearn.datasets import load_sample_image

    return np.asarray(load_sample_image("china.jpg").mean(2) / 255)


def _crop_of(photograph: Callable[[], NDArray[np.float64]]) -> _Draw:
    """Return what draws parts of a photograph; those of two images may overlap."""

    def crop(rng: np.random.Generator, side: int) -> _Image:
        whole = photograph()
        grow = rng.uniform(0.95, 1.05) * 256 / side  # pixels of the photograph for one of ours
        room = np.array(whole.shape) - side * grow - 1
        top, left = rng.uniform(0, room)
        y, x = np.mgrid[:side, :side] * grow
        values = map_coordinates(whole, [y + top, x + left], order=1)
        values = values[:, ::-1] if rng.random() < 0.5 else values
        return np.repeat(values[..., None], 3, 2)

    return crop


@cache
def _garments() -> NDArray[np.uint8]:
    from aloof.datasets import find_dataset
    from aloof.datasets.image_sets import PublicImages

    found = find_dataset("fashion-mnist", PublicImages).load()
    chosen: NDArray[np.uint8] = found.train[found.train_labels == 8][:2000]  # bags
    return chosen


def _bag(rng: np.random.Generator, side: int) -> _Image:
    known = _garments()
    image = known[rng.integers(len(known))].reshape(28, 28) / 255
    values = zoom(image, side / 28, order=3).clip(0, 1)
    return np.repeat(values[..., None], 3, 2)


SURFACES: dict[str, _Draw] = {
    "weave": _weave,
    "wood": _wood,
    "board": _board,
    "leather": _leather,
    "concrete": _concrete,
    "mesh": _mesh,
    "temple": _crop_of(_temple),
    "brushed": _brushed,
    "tiles": _tiles,
    "nuts": _nuts,
    "brick": _crop_of(partial(_photograph, "brick")),
    "grass": _crop_of(partial(_photograph, "grass")),
    "gravel": _crop_of(partial(_photograph, "gravel")),
    "bags": _bag,
}
# Those that anything may be chosen by; figures are reported of the others.
DEVELOPMENT = ("weave", "wood", "board", "leather", "concrete", "mesh", "temple")
