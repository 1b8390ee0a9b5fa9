"""Worlds to plan in: a unit square with walls that have narrow gaps, a start and a goal.

A world is an occupancy grid. Cell ``grid[row, column]`` covers
``column / size <= x < (column + 1) / size`` and likewise for the row and y; True is a wall.
Leaving the square counts as a collision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aloof.exceptions import PlanningError

__all__ = [
    "World",
    "boundary_points",
    "collides",
    "inflate",
    "make_worlds",
    "segment_is_free",
]

_SMALLEST = 8  # cells a side


@dataclass(frozen=True, eq=False)
class World:
    """An occupancy grid with a start and a goal.

    Attributes
    ----------
    grid
        ``(size, size)``; True where there is a wall.
    start, goal
        Points ``(x, y)`` of the unit square, outside of walls.

    Examples
    --------
    >>> World(np.zeros((8, 8)), start=(0.1, 0.1), goal=(1.4, 0.5))
    Traceback (most recent call last):
    aloof.exceptions.PlanningError: The goal (1.4, 0.5) is outside the unit square.
    """

    grid: NDArray[np.bool_]
    start: NDArray[np.float64]
    goal: NDArray[np.float64]

    def __post_init__(self) -> None:
        grid = np.ascontiguousarray(self.grid, dtype=bool)
        if grid.ndim != 2 or grid.shape[0] != grid.shape[1]:
            raise PlanningError(
                f"A grid must be square, (size, size); got an array of shape {grid.shape}."
            )
        object.__setattr__(self, "grid", grid)
        for name in ("start", "goal"):
            point = np.asarray(getattr(self, name), np.float64)
            object.__setattr__(self, name, point)
            if point.shape != (2,):
                raise PlanningError(f"The {name} must be a point (x, y); got {point}.")
            shown = f"({point[0]:g}, {point[1]:g})"
            if not ((point >= 0) & (point < 1)).all():
                raise PlanningError(f"The {name} {shown} is outside the unit square.")
            if collides(grid, point[None])[0]:
                raise PlanningError(
                    f"The {name} {shown} is inside a wall. Move it to a free cell."
                )

    @property
    def size(self) -> int:
        """Cells a side."""
        return len(self.grid)


def make_worlds(n: int, *, size: int = 16, n_walls: int = 3, seed: int = 0) -> list[World]:
    """Return worlds with walls across the square, and one or two gaps in each wall.

    Walls are one or two cells thick and run up and down, gaps are one or two cells wide. The
    start lies left of the walls, the goal right of them.

    Parameters
    ----------
    n
        How many.
    size
        Cells a side, at least 8.
    n_walls
        How many walls; each needs four cells.
    seed
        World number i depends on `seed` and i alone, so a longer list begins with a shorter
        one.
    """
    if size < _SMALLEST:
        raise PlanningError(f"size must be at least {_SMALLEST} cells; got {size}.")
    most = (size - 4) // 4
    if not 1 <= n_walls <= most:
        raise PlanningError(
            f"n_walls must be 1 to {most} in a grid of {size} cells per side; got {n_walls}."
        )
    return [_make_world(size, n_walls, np.random.default_rng([seed, i])) for i in range(n)]


def collides(grid: NDArray[np.bool_], positions: ArrayLike) -> NDArray[np.bool_]:
    """Return whether each point ``(..., 2)`` lies in a wall or outside of the square."""
    points = np.asarray(positions)
    outside = np.asarray(((points < 0) | (points >= 1)).any(-1))
    cells = np.where(outside[..., None], 0, points * len(grid)).astype(np.int64)
    hit: NDArray[np.bool_] = grid[cells[..., 1], cells[..., 0]] | outside
    return hit


def segment_is_free(
    grid: Sequence[Sequence[bool]], start: Sequence[float], end: Sequence[float]
) -> bool:
    """Return whether a straight line meets no wall; walks from cell to cell, so it is exact.

    Parameters
    ----------
    grid
        Rows of a grid *as lists*: planners ask for one line at a time, and indexing lists is
        several times faster than indexing arrays.
    start, end
        Points of the unit square.
    """
    size = len(grid)
    x, y = start[0] * size, start[1] * size
    dx, dy = end[0] * size - x, end[1] * size - y
    column, row = floor(x), floor(y)
    last_column, last_row = floor(end[0] * size), floor(end[1] * size)
    step_x, step_y = (1 if dx > 0 else -1), (1 if dy > 0 else -1)
    # When the line crosses the next column and the next row, as a share of its length.
    next_x = (column + (dx > 0) - x) / dx if dx else inf
    next_y = (row + (dy > 0) - y) / dy if dy else inf
    width_x = abs(1 / dx) if dx else inf
    width_y = abs(1 / dy) if dy else inf
    for _ in range(abs(last_column - column) + abs(last_row - row) + 1):
        if not (0 <= column < size and 0 <= row < size) or grid[row][column]:
            return False
        if next_x < next_y:
            column, next_x = column + step_x, next_x + width_x
        else:
            row, next_y = row + step_y, next_y + width_y
    return True


def boundary_points(
    grid: NDArray[np.bool_], n: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw points on the edges between walls and free space, all edges alike, ``(n, 2)``."""
    size = len(grid)
    across = [(r, c + 1, 0.0, 1.0) for r, c in np.argwhere(grid[:, 1:] != grid[:, :-1])]
    along = [(r + 1, c, 1.0, 0.0) for r, c in np.argwhere(grid[1:] != grid[:-1])]
    edges = np.array(across + along)
    if not len(edges):
        raise PlanningError("This grid has no wall, so there is no boundary.")
    row, column, in_x, in_y = edges[rng.integers(len(edges), size=n)].T
    offset = rng.random(n)
    return np.stack([column + offset * in_x, row + offset * in_y], 1) / size


def inflate(grid: NDArray[np.bool_], *, factor: int = 3) -> NDArray[np.bool_]:
    """Return the grid with finer cells, walls and border thicker by one fine cell."""
    fine = np.kron(grid, np.ones((factor, factor), bool))
    padded = np.pad(fine, 1, constant_values=True)
    n = len(fine)
    thick = np.zeros_like(fine)
    for row in range(3):
        for column in range(3):
            thick |= padded[row : row + n, column : column + n]
    return thick


def _make_world(size: int, n_walls: int, rng: np.random.Generator) -> World:
    grid = np.zeros((size, size), bool)
    # Each wall has a part of the square of its own, between the rims of start and goal.
    rim = max(2, size // 8)
    parts = np.linspace(rim, size - rim, n_walls + 1).round().astype(int)
    for low, high in pairwise(parts):
        thickness = int(rng.integers(1, 3))
        left = int(rng.integers(low, high - thickness))
        columns = slice(left, left + thickness)
        grid[:, columns] = True
        for _ in range(int(rng.integers(1, 3))):
            width = int(rng.integers(1, 3))
            bottom = int(rng.integers(0, size - width + 1))
            grid[bottom : bottom + width, columns] = False
    half, end = 0.5, size - 0.5  # half a cell away from the border and from walls
    start = rng.uniform([half, half], [rim - half, end])
    goal = rng.uniform([size - rim + half, half], [end, end])
    return World(grid, start / size, goal / size)
