"""Data to learn from: states of optimal trajectories, with points on walls as anomalies."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aloof.datasets import cache_folder
from aloof.exceptions import DatasetError, PlanningError
from aloof.io import write_file
from aloof.planning.solving import solve_many
from aloof.planning.worlds import World, boundary_points, make_worlds

__all__ = [
    "Rows",
    "Trajectories",
    "load_trajectories",
    "make_trajectories",
    "mirrored",
    "training_rows",
]

_VERSION = 1  # of what the generator makes of a seed; part of the names in the cache


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Worlds with an optimal trajectory through each.

    Attributes
    ----------
    worlds
        Grids of one size, with starts and goals.
    states
        ``(worlds, k, 4)``: position and velocity, at equal intervals of time.
    """

    worlds: tuple[World, ...]
    states: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.worlds)

    @property
    def size(self) -> int:
        """Cells a side of the grids."""
        return self.worlds[0].size

    def save(self, path: Path) -> None:
        """Write a compressed ``.npz``, a bit for each cell."""
        write_file(path, self._write, DatasetError, parents=True)

    def _write(self, path: Path) -> None:
        with path.open("wb") as file:  # given a name, NumPy would add an ending of its own
            np.savez_compressed(
                file,
                cells=np.packbits([world.grid for world in self.worlds], axis=None),
                size=self.size,
                starts=[world.start for world in self.worlds],
                goals=[world.goal for world in self.worlds],
                states=self.states,
            )

    @classmethod
    def load(cls, path: Path) -> Trajectories:
        """Read what `save` wrote."""
        try:
            with np.load(path, allow_pickle=False) as file:
                starts, goals, states = file["starts"], file["goals"], file["states"]
                n, size = len(starts), int(file["size"])
                bits = np.unpackbits(file["cells"], count=n * size * size)
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise DatasetError(
                f"{path} does not hold trajectories ({error}). Remove it, and it will be made "
                "again."
            ) from error
        grids = bits.reshape(n, size, size).astype(bool)
        parts = zip(grids, starts, goals, strict=True)
        return cls(tuple(World(*part) for part in parts), states)


def make_trajectories(
    n: int,
    *,
    size: int = 16,
    n_walls: int = 3,
    n_states: int = 32,
    seed: int = 0,
    jobs: int = 1,
    on_done: Callable[[int], None] | None = None,
) -> Trajectories:
    """Make worlds and solve them. Parameters as in `make_worlds` and `solve_many`."""
    if n < 1:
        raise PlanningError(f"n must be at least 1; got {n}.")
    worlds = make_worlds(n, size=size, n_walls=n_walls, seed=seed)
    states = solve_many(worlds, n_states=n_states, jobs=jobs, on_done=on_done)
    return Trajectories(tuple(worlds), states)


def load_trajectories(
    n: int,
    *,
    size: int = 16,
    n_walls: int = 3,
    n_states: int = 32,
    seed: int = 0,
    jobs: int = 1,
    on_done: Callable[[int], None] | None = None,
) -> Trajectories:
    """Return `make_trajectories` from the cache folder; the first call fills it."""
    name = f"v{_VERSION}-{size}-{n_walls}-{n_states}-{seed}-{n}.npz"
    path = cache_folder() / "planning" / name
    if path.is_file():
        return Trajectories.load(path)
    made = make_trajectories(
        n,
        size=size,
        n_walls=n_walls,
        n_states=n_states,
        seed=seed,
        jobs=jobs,
        on_done=on_done,
    )
    made.save(path)
    return made


def mirrored(trajectories: Trajectories) -> Trajectories:
    """Return four times as many: each world also upside down, and each of the two backwards.

    Backwards is from right to left in time that runs back, so that a start stays on the left.
    An optimal trajectory stays optimal.
    """
    upside_down = Trajectories(
        tuple(
            World(world.grid[::-1], _flip(world.start, 1), _flip(world.goal, 1))
            for world in trajectories.worlds
        ),
        _affine(trajectories.states, [1, -1, 1, -1], [0, 1, 0, 0]),
    )
    both = Trajectories(
        trajectories.worlds + upside_down.worlds,
        np.concatenate([trajectories.states, upside_down.states]),
    )
    backwards = tuple(
        World(world.grid[:, ::-1], _flip(world.goal, 0), _flip(world.start, 0))
        for world in both.worlds
    )
    states = _affine(both.states[:, ::-1], [-1, 1, 1, -1], [1, 0, 0, 0])
    return Trajectories(both.worlds + backwards, np.concatenate([both.states, states]))


def _affine(
    states: NDArray[np.float32], factors: list[int], offsets: list[int]
) -> NDArray[np.float32]:
    return states * np.array(factors, np.float32) + np.array(offsets, np.float32)


def _flip(point: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    flipped = point.copy()
    flipped[axis] = np.nextafter(1.0, 0.0) - point[axis]
    return flipped


@dataclass(frozen=True, eq=False)
class Rows:
    """What a conditional VAE is trained on, normal rows first.

    Attributes
    ----------
    states
        ``(n, 4)``.
    grids
        The grid of each row, flat, in bytes, ``(n, cells)``.
    ends
        Start and goal of each row, ``(n, 4)``.
    n_normal
        States of trajectories; the rest are anomalies.
    """

    states: NDArray[np.float32]
    grids: NDArray[np.uint8]
    ends: NDArray[np.float32]
    n_normal: int


def training_rows(
    trajectories: Trajectories, *, anomaly_share: float = 0.05, seed: int = 0
) -> Rows:
    """Return every state of the trajectories, and anomalies on the boundaries of walls.

    An anomaly has the velocity of a random state of the same world's trajectory, so that its
    position alone gives it away.

    Parameters
    ----------
    trajectories
        What to imitate.
    anomaly_share
        Anomalies for each state.
    seed
        Of the anomalies.
    """
    rng = np.random.default_rng(seed)
    n_worlds, n_states, width = trajectories.states.shape
    normal = trajectories.states.reshape(-1, width)
    owner = np.repeat(np.arange(n_worlds), n_states)
    n_anomalies = round(anomaly_share * len(normal))
    of_anomaly = np.sort(rng.integers(n_worlds, size=n_anomalies))
    anomalies = np.empty((n_anomalies, width), np.float32)
    for world, first, count in zip(
        *np.unique(of_anomaly, return_index=True, return_counts=True), strict=True
    ):
        own = slice(first, first + count)
        anomalies[own, :2] = boundary_points(trajectories.worlds[world].grid, count, rng)
        like = rng.integers(n_states, size=count)
        anomalies[own, 2:] = trajectories.states[world, like, 2:]
    owner = np.concatenate([owner, of_anomaly])
    grids = np.array([world.grid.ravel() for world in trajectories.worlds], np.uint8)
    ends = np.array([[*world.start, *world.goal] for world in trajectories.worlds], np.float32)
    states = np.concatenate([normal, anomalies])
    return Rows(states, grids[owner], ends[owner], len(normal))
