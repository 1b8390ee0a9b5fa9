"""Optimal trajectories: PRM* on a dense roadmap, pulled tight, with a speed for every point.

A *state* is a position and a velocity, ``(x, y, vx, vy)``. A trajectory starts and ends at
rest, never moves faster than 1 (sides of the square in a unit of time), and slows down for
bends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from aloof.exceptions import PlanningError
from aloof.planning.roadmap import load_ompl, plan, shorten
from aloof.planning.worlds import World, collides, inflate

__all__ = ["STATE_DIM", "solve", "solve_many", "time_parameterise"]

STATE_DIM = 4

_N_UNIFORM = 300  # states of the roadmap, beside the corners of the walls
_FINE = 3  # cells of the planner in a cell of the grid; one of them is the clearance
_ROPE = 0.02  # between the points of the rope
_ACCELERATION = 4.0  # of a robot that reaches its top speed of 1 within an eighth of the square
_N_PROFILE = 256  # points of the speed profile


def solve(world: World, *, n_states: int = 32, seed: int = 0) -> NDArray[np.float32]:
    """Return an optimal trajectory, ``(n_states, 4)``, at equal intervals of time.

    It keeps a third of a cell away from walls.

    Parameters
    ----------
    world
        Where to plan.
    n_states
        How many states, the start and the goal included.
    seed
        Of the roadmap.
    """
    rng = np.random.default_rng(seed)
    fine = inflate(world.grid, factor=_FINE)
    for name in ("start", "goal"):
        point = getattr(world, name)
        if collides(fine, point[None])[0]:
            shown = f"({point[0]:g}, {point[1]:g})"
            raise PlanningError(
                f"The {name} {shown} is closer than a third of a cell to a wall. Move it away "
                "from the wall."
            )
    states = np.concatenate([_corners(fine), rng.random((_N_UNIFORM, 2))])
    found = plan(replace(world, grid=fine), states)
    if found.path is None:
        raise PlanningError(
            "This world has no solution: no path from start to goal keeps a third of a cell "
            "away from walls. Widen a gap, or move the start or the goal."
        )
    return time_parameterise(shorten(fine, found.path, step=_ROPE), n_states)


def solve_many(
    worlds: Sequence[World],
    *,
    n_states: int = 32,
    jobs: int = 1,
    on_done: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """Return an optimal trajectory of each world, ``(worlds, n_states, 4)``.

    Parameters
    ----------
    worlds
        Where to plan.
    n_states
        As in `solve`.
    jobs
        Processes.
    on_done
        Called with the number of worlds that are solved.
    """
    load_ompl()
    solver = delayed(partial(solve, n_states=n_states))
    solved = np.empty((len(worlds), n_states, STATE_DIM), np.float32)
    results = Parallel(jobs, return_as="generator")(solver(world) for world in worlds)
    for number, states in enumerate(results):
        solved[number] = states
        if on_done is not None:
            on_done(number + 1)
    return solved


def time_parameterise(path: NDArray[np.float64], n_states: int) -> NDArray[np.float32]:
    """Return states at equal intervals of time along a path, ``(n_states, 4)``.

    The speed is the largest that keeps to the top speed, to the acceleration along the path,
    and, in a bend of angle theta, to ``(1 + cos theta) / 2`` of the top speed.

    Parameters
    ----------
    path
        Corners ``(k, 2)``.
    n_states
        How many states.
    """
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    path = path[np.r_[True, steps > 1e-9]]
    if len(path) < 2:
        raise PlanningError("A path needs a start and a goal at different points.")
    along = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))]
    directions = np.diff(path, axis=0) / np.diff(along)[:, None]
    bends = np.einsum("ij,ij->i", directions[:-1], directions[1:])

    places = np.unique(np.r_[np.linspace(0, along[-1], _N_PROFILE), along])
    speed = np.ones(len(places))
    speed[np.searchsorted(places, along[1:-1])] = np.maximum((1 + bends) / 2, 0.05)
    speed[0] = speed[-1] = 0.0
    gaps = np.diff(places)
    for order in (range(1, len(places)), range(len(places) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for i in order:
            gap = gaps[i - 1] if step > 0 else gaps[i]
            reach = np.sqrt(speed[i - step] ** 2 + 2 * _ACCELERATION * gap)
            speed[i] = min(speed[i], reach)
    times = np.r_[0.0, np.cumsum(2 * gaps / (speed[:-1] + speed[1:]))]

    wanted = np.interp(np.linspace(0, times[-1], n_states), times, places)
    position = np.stack([np.interp(wanted, along, path[:, axis]) for axis in (0, 1)], 1)
    segment = np.clip(np.searchsorted(along, wanted, side="right") - 1, 0, len(path) - 2)
    velocity = directions[segment] * np.interp(wanted, places, speed)[:, None]
    return np.concatenate([position, velocity], 1).astype(np.float32)


def _corners(grid: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return points just off the convex corners of walls, where shortest paths bend."""
    size = len(grid)
    wall = np.pad(grid, 1, constant_values=True)
    found = []
    for dy in (-1, 1):
        for dx in (-1, 1):
            free = ~wall[1:-1, 1:-1]
            beside = np.roll(wall, (0, -dx), (0, 1))[1:-1, 1:-1]
            above = np.roll(wall, (-dy, 0), (0, 1))[1:-1, 1:-1]
            diagonal = np.roll(wall, (-dy, -dx), (0, 1))[1:-1, 1:-1]
            row, column = np.nonzero(free & ~beside & ~above & diagonal)
            corner = np.stack([column + (dx > 0), row + (dy > 0)], 1)
            found.append((corner - 0.02 * np.array([dx, dy])) / size)
    return np.concatenate(found)
