"""States for a planner: learned ones mixed with uniform ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray

from aloof.exceptions import PlanningError
from aloof.planning.generator import StateGenerator
from aloof.planning.worlds import World

__all__ = ["mixed_states", "state_stream"]


def mixed_states(
    generator: StateGenerator | None,
    world: World,
    n: int,
    *,
    learned: float = 0.5,
    seed: int = 0,
    screen: bool = False,
    noise: bool = True,
) -> NDArray[np.float64]:
    """Return `n` positions ``(n, 2)``, learned and uniform ones in turn.

    Uniform states are what keeps a planner complete: it finds a path some day, whatever the
    network says.

    Parameters
    ----------
    generator
        Where learned states come from; None: all are uniform.
    world
        Where to plan.
    n
        How many.
    learned
        Share of learned states.
    seed
        One seed, one answer. The uniform states are the same for every generator.
    screen, noise
        As in `StateGenerator.draw`.
    """
    if not 0 <= learned <= 1:
        raise PlanningError(f"learned must be a share between 0 and 1; got {learned}.")
    positions = np.random.default_rng(seed).random((n, 2))
    if generator is None:
        return positions
    # Spread the learned states evenly over the list, so that any beginning of it is mixed.
    place = np.flatnonzero(np.diff(np.floor(learned * np.arange(n + 1))))
    drawn = generator.draw(world, len(place), seed=seed, screen=screen, noise=noise)
    positions[place] = drawn[:, :2]
    return positions


def state_stream(
    generator: StateGenerator | None,
    world: World,
    *,
    learned: float = 0.5,
    seed: int = 0,
    screen: bool = False,
    chunk: int = 256,
) -> Iterator[NDArray[np.float64]]:
    """Yield positions for ever; for `aloof.planning.state_sampler`. See `mixed_states`."""
    for number in count():
        own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
        yield from mixed_states(
            generator, world, chunk, learned=learned, seed=own, screen=screen
        )
