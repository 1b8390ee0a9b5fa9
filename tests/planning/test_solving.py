"""OMPL: roadmaps over given states, optimal trajectories, errors."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aloof.exceptions import DatasetError, MissingExtraError, PlanningError
from aloof.planning import (
    Trajectories,
    World,
    collides,
    load_trajectories,
    mirrored,
    plan,
    solve,
    solve_many,
    state_sampler,
    time_parameterise,
    training_rows,
)
from aloof.planning.roadmap import load_ompl


def test_a_state_in_the_gap_makes_the_path(open_world: World) -> None:
    gap = np.array([0.56, 0.5])
    found = plan(open_world, np.array([[0.3, 0.3], gap, [0.55, 0.1], [0.7, 0.6]]))
    assert found.found
    assert (found.n_states, found.n_free) == (4, 3)  # one lies in the wall
    assert found.path is not None
    assert np.allclose(found.path[[0, -1]], [open_world.start, open_world.goal])
    length = np.linalg.norm(np.diff(found.path, axis=0), axis=1).sum()
    assert found.cost == pytest.approx(length)
    ends = np.linalg.norm(gap - open_world.start) + np.linalg.norm(gap - open_world.goal)
    assert found.cost == pytest.approx(ends)
    without = plan(open_world, np.array([[0.3, 0.8], [0.7, 0.1]]))
    assert not without.found
    assert without.cost == np.inf


def test_the_same_states_give_the_same_path(open_world: World) -> None:
    states = np.random.default_rng(0).random((60, 2))
    one, other = plan(open_world, states), plan(open_world, states)
    assert one.cost == other.cost
    assert np.array_equal(one.path, other.path)  # type: ignore[arg-type]


def test_ompl_is_left_as_it_was(open_world: World) -> None:
    _, _, util = load_ompl()
    before = util.getLogLevel()
    plan(open_world, np.random.default_rng(0).random((5, 2)))
    assert util.getLogLevel() == before


def test_a_planner_of_ones_own_takes_the_sampler(open_world: World) -> None:
    base, geometric, util = load_ompl()
    util.setLogLevel(util.LOG_ERROR)
    states = iter(np.random.default_rng(0).random((1000, 2)))
    space = base.RealVectorStateSpace(2)
    space.setBounds(0.0, 1.0)
    information = base.SpaceInformation(space)
    information.setStateValidityChecker(lambda s: not collides(open_world.grid, s[0:2]))
    information.setValidStateSamplerAllocator(state_sampler(open_world.grid, states))
    information.setup()
    planner = geometric.PRM(information)
    planner.setProblemDefinition(base.ProblemDefinition(information))
    planner.setup()
    planner.growRoadmapPtc(
        base.PlannerTerminationCondition(lambda: planner.milestoneCount() >= 30)
    )
    assert planner.milestoneCount() == 30


def test_trajectories_are_free_and_obey_their_limits(trajectories: Trajectories) -> None:
    for world, states in zip(trajectories.worlds[:60], trajectories.states, strict=False):
        assert not collides(world.grid, states[:, :2]).any()
        assert np.allclose(states[[0, -1], :2], [world.start, world.goal], atol=1e-6)
        assert np.allclose(states[[0, -1], 2:], 0)
        speed = np.linalg.norm(states[:, 2:], axis=1)
        assert speed.max() <= 1 + 1e-6
        assert speed.max() > 0.3


def test_mirror_images_are_trajectories_of_their_worlds(trajectories: Trajectories) -> None:
    few = replace(trajectories, worlds=trajectories.worlds[:9], states=trajectories.states[:9])
    images = mirrored(few)
    assert len(images) == 4 * len(few)
    assert images.states.shape == (4 * len(few), *few.states.shape[1:])
    assert np.array_equal(images.states[:9], few.states)
    assert len({world.grid.tobytes() for world in images.worlds}) > 2 * len(few)
    for world, states in zip(images.worlds, images.states, strict=True):
        assert not collides(world.grid, states[:, :2]).any()
        assert np.allclose(states[[0, -1], :2], [world.start, world.goal], atol=1e-6)
        steps = np.diff(states[:, :2], axis=0)
        moving = np.linalg.norm(states[1:-1, 2:], axis=1) > 0.1
        along = (steps[:-1] + steps[1:]) * states[1:-1, 2:]
        assert (along.sum(1)[moving] > 0).all()  # velocities point where the robot goes
    again = mirrored(images)  # an image of an image is one of the four
    assert np.allclose(again.states[9:18], images.states[9:18])
    assert np.allclose(again.states[45:54], few.states, atol=1e-6)


def test_solving_is_deterministic_whatever_the_number_of_processes(
    trajectories: Trajectories,
) -> None:
    worlds = trajectories.worlds[:4]
    assert np.array_equal(solve_many(worlds, n_states=16), trajectories.states[:4])


def test_speed_along_a_straight_line() -> None:
    states = time_parameterise(np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]), 41)
    # Speeds up with 4 to 1 within 1/8, cruises, and brakes: 0.25 + 0.75 + 0.25 of time.
    assert states[20, 0] == pytest.approx(0.5, abs=1e-3)
    assert states[20, 2] == pytest.approx(1.0, abs=1e-3)
    duration = 1.25
    assert states[4, 2] == pytest.approx(4 * duration * 4 / 40, abs=0.02)
    assert np.allclose(states[:, 3], 0)
    bent = time_parameterise(np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.5]]), 401)
    middle = np.linalg.norm(bent[:, 2:], axis=1)[200]
    assert middle == pytest.approx(0.5, abs=0.05)  # a right angle halves the speed
    with pytest.raises(PlanningError, match="at different points"):
        time_parameterise(np.zeros((2, 2)), 5)


def test_a_world_without_a_solution(walled_in: World) -> None:
    with pytest.raises(PlanningError, match="no solution"):
        solve(walled_in)


def test_a_start_that_touches_a_wall(open_world: World) -> None:
    near = World(open_world.grid, np.array([0.49, 0.1]), open_world.goal)
    with pytest.raises(PlanningError, match=r"start .* third of a cell"):
        solve(near)


def test_without_ompl(open_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ompl", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'aloof\[planning\]'"):
        solve(open_world)
    with pytest.raises(MissingExtraError, match="needs ompl"):
        plan(open_world, np.zeros((1, 2)))


def test_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = load_trajectories(3, size=8, n_walls=1, n_states=8, seed=4)
    [file] = (tmp_path / "aloof" / "planning").iterdir()
    monkeypatch.setitem(sys.modules, "ompl", None)  # nothing is solved again
    again = load_trajectories(3, size=8, n_walls=1, n_states=8, seed=4)
    assert np.array_equal(made.states, again.states)
    for one, other in zip(made.worlds, again.worlds, strict=True):
        assert np.array_equal(one.grid, other.grid)
        assert np.array_equal(one.goal, other.goal)
    file.write_bytes(b"no")
    with pytest.raises(DatasetError, match="Remove it"):
        load_trajectories(3, size=8, n_walls=1, n_states=8, seed=4)


def test_rows(trajectories: Trajectories) -> None:
    rows = training_rows(trajectories, anomaly_share=0.05, seed=0)
    n = 250 * 16
    assert rows.n_normal == n
    assert len(rows.states) == n + round(0.05 * n)
    assert np.array_equal(rows.states[:n], trajectories.states.reshape(-1, 4))
    assert np.array_equal(rows.grids[17], trajectories.worlds[1].grid.ravel())
    assert np.allclose(
        rows.ends[17], [*trajectories.worlds[1].start, *trajectories.worlds[1].goal]
    )
    on_edge = (rows.states[n:, :2] * 8 % 1 < 1e-5) | (rows.states[n:, :2] * 8 % 1 > 1 - 1e-5)
    assert on_edge.any(1).all()
    for state, flat in zip(rows.states[n : n + 40], rows.grids[n:], strict=False):
        around = state[:2] + np.array([[-1, 0], [1, 0], [0, -1], [0, 1]]) * 1e-4
        assert collides(flat.reshape(8, 8).astype(bool), around.clip(0, 0.999)).any()
