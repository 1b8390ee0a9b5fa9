"""OMPL: a roadmap planner that takes its states from wherever you like.

OMPL's Python package lets Python supply states to planners that ask a *valid state sampler*,
which are PRM and PRM*. `state_sampler` makes one of any stream of states; `plan` is PRM* over
a fixed list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import MissingExtraError
from aloof.planning.worlds import World, segment_is_free

__all__ = ["Plan", "load_ompl", "plan", "quiet", "shorten", "state_sampler"]


@dataclass(frozen=True, eq=False)
class Plan:
    """What a planner found.

    Attributes
    ----------
    path
        Positions ``(k, 2)`` from start to goal; None where no path was found.
    cost
        Its length; infinite where there is none.
    n_states
        States that were drawn, those in collision included.
    n_free
        Those of them that are free, and so in the roadmap.
    """

    path: NDArray[np.float64] | None
    cost: float
    n_states: int
    n_free: int

    @property
    def found(self) -> bool:
        """Whether there is a path."""
        return self.path is not None


def load_ompl() -> tuple[Any, Any, Any]:
    """Return OMPL's modules ``base``, ``geometric`` and ``util``."""
    try:
        from ompl import base, geometric, util
    except ImportError as error:
        raise MissingExtraError("ompl", "planning", "Motion planning") from error
    return base, geometric, util


@contextmanager
def quiet() -> Iterator[None]:
    """Keep OMPL from writing to the terminal, and leave its log level as it was."""
    _, _, util = load_ompl()
    level = util.getLogLevel()
    util.setLogLevel(util.LOG_ERROR)
    try:
        yield
    finally:
        util.setLogLevel(level)


def state_sampler(
    grid: NDArray[np.bool_], states: Iterable[NDArray[np.float64]]
) -> Callable[[Any], Any]:
    """Return an allocator for OMPL's ``SpaceInformation.setValidStateSamplerAllocator``.

    Parameters
    ----------
    grid
        A state in a wall is drawn and refused.
    states
        Rows that begin with x and y; a list, or a generator that never ends. Once it is
        exhausted, every draw is refused.
    """
    base, _, _ = load_ompl()
    rows, size = grid.tolist(), len(grid)

    class Sampler(base.ValidStateSampler):  # type: ignore[misc, name-defined]
        def __init__(self, space_information: Any) -> None:
            super().__init__(space_information)
            self._states = iter(states)

        def sample(self, state: Any) -> bool:
            drawn = next(self._states, None)
            if drawn is None:
                return False
            x, y = float(drawn[0]), float(drawn[1])
            state[0:2] = [x, y]
            return 0 <= x < 1 and 0 <= y < 1 and not rows[int(y * size)][int(x * size)]

    return Sampler


def plan(world: World, states: NDArray[np.float64]) -> Plan:
    """Run PRM* on a fixed number of states, and return the best path through them.

    The number of drawn states is what is fixed: those in collision are wasted. Nothing else
    is random, so the same states give the same path.

    Parameters
    ----------
    world
        Where to plan.
    states
        ``(n, 2)`` positions, or rows that begin with them.
    """
    base, geometric, _ = load_ompl()
    positions = np.asarray(states, np.float64)[:, :2]
    n_drawn = 0

    def draw() -> Iterator[NDArray[np.float64]]:
        nonlocal n_drawn
        for position in positions:
            n_drawn += 1
            yield position

    with quiet():
        space, information = _space(world.grid)
        information.setValidStateSamplerAllocator(state_sampler(world.grid, draw()))
        information.setup()
        problem = base.ProblemDefinition(information)
        problem.setStartAndGoalStates(_state(space, world.start), _state(space, world.goal))
        planner = geometric.PRMstar(information)
        planner.setProblemDefinition(problem)
        planner.setup()
        exhausted = base.PlannerTerminationCondition(lambda: n_drawn >= len(positions))
        planner.growRoadmapPtc(exhausted)
        n_free = planner.milestoneCount()
        # Adds start and goal, and searches; the roadmap does not grow any more.
        planner.solve(base.plannerAlwaysTerminatingCondition())
        if not problem.hasSolution() or problem.getSolutionDifference() > 0:
            return Plan(None, np.inf, len(positions), n_free)
        path = problem.getSolutionPath()
        return Plan(_positions(path), float(path.length()), len(positions), n_free)


def shorten(
    grid: NDArray[np.bool_], path: NDArray[np.float64], *, step: float
) -> NDArray[np.float64]:
    """Pull a path tight like a rope, with OMPL's path simplifier.

    Parameters
    ----------
    grid
        Where it has to stay free.
    path
        Positions ``(k, 2)``.
    step
        Distance between the points of the rope.
    """
    _, geometric, _ = load_ompl()
    with quiet():
        space, information = _space(grid)
        information.setup()
        rope = geometric.PathGeometric(information)
        for position in path:
            rope.append(_state(space, position))
        simplifier = geometric.PathSimplifier(information)
        simplifier.ropeShortcutPath(rope, step)
        return _positions(rope)


def _space(grid: NDArray[np.bool_]) -> tuple[Any, Any]:
    """Return the unit square with the walls of a grid."""
    base, _, _ = load_ompl()
    rows, size = grid.tolist(), len(grid)

    class Validator(base.MotionValidator):  # type: ignore[misc, name-defined]
        def checkMotion(self, one: Any, other: Any, *_: Any) -> bool:
            return segment_is_free(rows, one[0:2], other[0:2])

    def is_free(state: Any) -> bool:
        x, y = state[0:2]
        return 0 <= x < 1 and 0 <= y < 1 and not rows[int(y * size)][int(x * size)]

    space = base.RealVectorStateSpace(2)
    space.setBounds(0.0, 1.0)
    information = base.SpaceInformation(space)
    information.setStateValidityChecker(is_free)
    information.setMotionValidator(Validator(information))
    return space, information


def _state(space: Any, position: NDArray[np.float64]) -> Any:
    state = space.allocState()
    state[0:2] = [float(position[0]), float(position[1])]
    return state


def _positions(path: Any) -> NDArray[np.float64]:
    return np.array([state[0:2] for state in path.getStates()])
