from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from planning_settings import SHORT, SMALL

from aloof.planning import StateGenerator, Trajectories, make_trajectories
from aloof.planning.worlds import World

# Everything here plans; without the extra there is nothing to test.
collect_ignore_glob = [] if find_spec("ompl") else ["test_*.py"]


@pytest.fixture(scope="session")
def trajectories() -> Trajectories:
    return make_trajectories(250, size=8, n_walls=1, n_states=16, seed=1)


@pytest.fixture(scope="session")
def unseen() -> Trajectories:
    return make_trajectories(30, size=8, n_walls=1, n_states=16, seed=7)


@pytest.fixture
def open_world() -> World:
    """A wall with one gap in the middle."""
    grid = np.zeros((8, 8), bool)
    grid[:, 4] = True
    grid[3:5, 4] = False
    return World(grid, np.array([0.1, 0.1]), np.array([0.9, 0.9]))


@pytest.fixture
def walled_in() -> World:
    """A wall without a gap."""
    grid = np.zeros((8, 8), bool)
    grid[:, 4] = True
    return World(grid, np.array([0.1, 0.1]), np.array([0.9, 0.9]))


@pytest.fixture(scope="session")
def untrained(trajectories: Trajectories) -> StateGenerator:
    from dataclasses import replace

    from aloof.planning import train_generators

    some = replace(trajectories, worlds=trajectories.worlds[:8], states=trajectories.states[:8])
    one = replace(SHORT, max_epochs=1, warmup_epochs=0)
    [model] = train_generators(some, config=one, networks=SMALL, device="cpu")
    return model
