"""What to run in motion planning: what to train, and what to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from aloof.bench.methods import title_of
from aloof.bench.specification import (
    Count,
    Counts,
    Names,
    Share,
    Specification,
    known,
    several,
)
from aloof.planning import NetworkConfig
from aloof.vae import METHODS

__all__ = ["UNIFORM", "PlanningSpecification", "Sampler"]

UNIFORM = "uniform"


@dataclass(frozen=True)
class Sampler:
    """A method, whether it draws from its likelihood, and whether it judges its own states."""

    method: str
    noise: bool = False
    screen: bool = False

    @property
    def label(self) -> str:
        """Its name in tables."""
        name = title_of(self.method)
        if self.method == UNIFORM:
            return name
        return f"{name}, screened" if self.screen else name if self.noise else f"{name}, means"


def _part(value: float) -> float:
    if not 0 <= value <= 1:
        raise ValueError(f"must be a share, from 0 to 1; got {value!r}.")
    return value


_Part = Annotated[float, AfterValidator(_part)]
_Widths = Annotated[tuple[Count, ...], BeforeValidator(several)]


class PlanningSpecification(Specification):
    """Options of ``aloof bench planning``.

    Attributes
    ----------
    n_train, n_worlds
        Worlds to learn from, and unseen worlds to be measured in.
    methods
        Of the networks; uniform states are always there.
    counts
        Numbers of states a planner gets.
    size, n_walls
        Of the worlds; see `make_worlds`.
    mirror
        Whether to learn from the worlds' mirror images too; see `mirrored`.
    max_epochs, hidden, dropout, latent_dim, filters
        Of the training; see `NetworkConfig`.
    learned
        Share of learned states a planner gets; the rest is uniform.
    accept
        See `train_generator`.
    n_states
        States whose collisions and coverage are measured.
    seed
        Of networks and states.
    """

    title: str = "Motion planning: where not to sample"
    n_train: Count = 3000
    n_worlds: Count = 100
    methods: Annotated[Names, AfterValidator(known("method", METHODS))] = ("vae", "dp", "mml")
    counts: Counts = (16, 32, 64, 128, 256)
    size: Count = 16
    n_walls: int = 3
    mirror: bool = False
    max_epochs: Count = 200
    hidden: _Widths = (512, 512)
    dropout: Share = 0.5
    latent_dim: Count = 256
    filters: _Widths = ()
    learned: _Part = 0.5
    accept: _Part = 0.95
    n_states: Count = 128
    seed: int = 0

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """Everyone who proposes states, in the order of the table."""
        kinds = ((False, False), (True, False), (True, True))
        learned = [Sampler(method, *kind) for method in self.methods for kind in kinds]
        return (Sampler(UNIFORM), *learned)

    @property
    def networks(self) -> NetworkConfig:
        """Their sizes."""
        return NetworkConfig(self.hidden, self.dropout, self.latent_dim, self.filters)
