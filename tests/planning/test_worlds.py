"""Worlds, collisions, and the exact check of a straight line."""

from __future__ import annotations

import numpy as np
import pytest

from aloof.exceptions import PlanningError
from aloof.planning import World, boundary_points, collides, make_worlds
from aloof.planning.worlds import inflate, segment_is_free


def test_a_longer_list_begins_with_a_shorter_one() -> None:
    few, many = make_worlds(3, seed=5), make_worlds(6, seed=5)
    for one, other in zip(few, many, strict=False):
        assert np.array_equal(one.grid, other.grid)
        assert np.array_equal(one.start, other.start)
    assert not np.array_equal(many[3].grid, many[4].grid)
    assert not np.array_equal(make_worlds(1, seed=6)[0].grid, few[0].grid)


@pytest.mark.parametrize(("size", "n_walls"), [(8, 1), (12, 2), (16, 3), (24, 5)])
def test_every_wall_crosses_the_square_and_has_a_gap(size: int, n_walls: int) -> None:
    for world in make_worlds(30, size=size, n_walls=n_walls, seed=1):
        has_wall = world.grid.any(0)
        assert not world.grid.all(0).any()  # a gap in every column
        starts = np.flatnonzero(np.diff(has_wall.astype(int)) == 1)
        assert len(starts) == n_walls
        first, last = np.flatnonzero(has_wall)[[0, -1]]
        assert world.start[0] * size < first
        assert world.goal[0] * size > last + 1


def test_collisions() -> None:
    grid = np.zeros((8, 8), bool)
    grid[2, 5] = True  # row is y, column is x
    points = [[5.5 / 8, 2.5 / 8], [2.5 / 8, 5.5 / 8], [-0.01, 0.5], [0.5, 1.0], [5 / 8, 2 / 8]]
    assert collides(grid, points).tolist() == [True, False, True, True, True]


def test_a_line_is_free_if_and_only_if_all_of_its_points_are() -> None:
    rng = np.random.default_rng(0)
    share = np.linspace(0, 1, 4001)[:, None]
    outcomes = []
    for world in make_worlds(10, size=16, seed=3):
        rows = world.grid.tolist()
        for one, other in rng.random((60, 2, 2)):
            dense = ~collides(world.grid, one + share * (other - one)).any()
            exact = segment_is_free(rows, one.tolist(), other.tolist())
            assert exact <= dense  # dense points may jump over a corner, never the reverse
            if exact != dense:
                finer = np.linspace(0, 1, 400_001)[:, None]
                assert collides(world.grid, one + finer * (other - one)).any()
            outcomes.append(exact)
    assert 0.1 < np.mean(outcomes) < 0.9


def test_lines_along_the_axes() -> None:
    rows = [[False, False, True], [False, True, False], [False, False, False]]
    assert segment_is_free(rows, [0.1, 0.1], [0.1, 0.9])
    assert segment_is_free(rows, [0.9, 0.9], [0.1, 0.9])
    assert not segment_is_free(rows, [0.1, 0.5], [0.9, 0.5])
    assert segment_is_free(rows, [0.2, 0.2], [0.2, 0.2])


def test_boundary_points_touch_a_wall_and_free_space() -> None:
    rng = np.random.default_rng(0)
    for world in make_worlds(5, size=16, seed=2):
        points = boundary_points(world.grid, 200, rng)
        around = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]]) * 1e-6
        inside = collides(world.grid, (points[:, None] + around).clip(0, 1 - 1e-9))
        assert inside.any(1).all()
        assert (~inside).any(1).all()
    with pytest.raises(PlanningError, match="no wall"):
        boundary_points(np.zeros((8, 8), bool), 3, rng)


def test_inflated_walls_are_thicker_by_a_third_of_a_cell() -> None:
    grid = np.zeros((5, 5), bool)
    grid[2, 2] = True
    fine = inflate(grid)
    assert fine.shape == (15, 15)
    assert fine[5:10, 5:10].all()
    assert fine[0].all()
    inner = fine[1:-1, 1:-1]
    assert inner.sum() == 25


@pytest.mark.parametrize(
    ("start", "goal", "message"),
    [
        ((0.6, 0.2), (0.9, 0.9), "start .* inside a wall"),
        ((0.1, 0.2), (0.55, 0.5), "goal .* inside a wall"),
        ((0.1, 0.2), (0.9, 1.2), "goal .* outside the unit square"),
        ((0.1,), (0.9, 0.2), "start must be a point"),
    ],
)
def test_bad_ends(start: tuple[float, ...], goal: tuple[float, ...], message: str) -> None:
    grid = np.zeros((8, 8), bool)
    grid[:, 4] = True
    with pytest.raises(PlanningError, match=message):
        World(grid, np.array(start), np.array(goal))


def test_bad_grids_and_sizes() -> None:
    with pytest.raises(PlanningError, match="square"):
        World(np.zeros((8, 9), bool), np.array([0.1, 0.1]), np.array([0.9, 0.9]))
    with pytest.raises(PlanningError, match="at least 8"):
        make_worlds(1, size=5)
    with pytest.raises(PlanningError, match="n_walls must be 1 to 1"):
        make_worlds(1, size=8, n_walls=3)
