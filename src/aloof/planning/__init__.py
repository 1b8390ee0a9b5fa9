"""Motion planning: a conditional VAE that learns where not to sample.

A sampling-based planner looks for a path on a roadmap of states. Uniform states miss narrow
passages; a conditional VAE proposes states where optimal paths have been (Ichter et al. 2018),
and points on the boundaries of walls, as negative examples, teach it where not to.

This package is a user of `aloof.vae`: there is nothing about planning below it.

>>> from aloof.planning import make_worlds
>>> world = make_worlds(1, size=8, n_walls=1, seed=0)[0]
>>> world.grid.shape, world.start.round(2)
((8, 8), array([0.16, 0.86]))
"""

from aloof.planning.dataset import (
    Rows,
    Trajectories,
    load_trajectories,
    make_trajectories,
    mirrored,
    training_rows,
)
from aloof.planning.fitting import default_config, default_objective, train_generators
from aloof.planning.generator import NetworkConfig, StateGenerator
from aloof.planning.metrics import (
    Estimate,
    collision_share,
    coverage,
    estimate_mean,
    estimate_share,
)
from aloof.planning.roadmap import Plan, plan, state_sampler
from aloof.planning.sampling import mixed_states, state_stream
from aloof.planning.solving import solve, solve_many, time_parameterise
from aloof.planning.worlds import World, boundary_points, collides, make_worlds

__all__ = [
    "Estimate",
    "NetworkConfig",
    "Plan",
    "Rows",
    "StateGenerator",
    "Trajectories",
    "World",
    "boundary_points",
    "collides",
    "collision_share",
    "coverage",
    "default_config",
    "default_objective",
    "estimate_mean",
    "estimate_share",
    "load_trajectories",
    "make_trajectories",
    "make_worlds",
    "mirrored",
    "mixed_states",
    "plan",
    "solve",
    "solve_many",
    "state_sampler",
    "state_stream",
    "time_parameterise",
    "train_generators",
    "training_rows",
]
