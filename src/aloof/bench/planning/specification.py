"""What to run in motion planning: what to train, and what to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, model_validator

from aloof.bench.methods import title_of
from aloof.bench.planning.settings import PLANNING_SETTINGS, Recipe
from aloof.bench.specification import (
    Count,
    Counts,
    Names,
    Positive,
    Settings,
    Share,
    Specification,
    Weight,
    Whole,
    known,
    several,
)
from aloof.exceptions import PlanningError
from aloof.planning import make_worlds
from aloof.vae import METHODS, LearningRateSchedule

__all__ = ["KINDS", "UNIFORM", "PlanningSpecification", "Sampler"]

UNIFORM = "uniform"

# What a network can propose: whether it draws from its likelihood, whether it judges.
KINDS = {"means": (False, False), "draws": (True, False), "screened draws": (True, True)}


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

    A number of the networks and their training that is not given is the setting's; one that is
    given counts in every setting.

    Attributes
    ----------
    setting
        Of the networks: ``ours``, ``paper`` or both.
    n_train, n_worlds
        Worlds to learn from, and unseen worlds to be measured in.
    methods
        Of the networks; uniform states are always there.
    seeds
        Networks of each method, made from 0, 1, ... up to but without this number; states are
        drawn with the same.
    counts
        Numbers of states a planner gets.
    size, n_walls
        Of the worlds; see `make_worlds`.
    mirror
        Whether to learn from the worlds' mirror images too; see `mirrored`.
    hidden, dropout, latent_dim, filters
        See `NetworkConfig`.
    max_epochs, warmup_epochs, annealing_epochs, batch_size, anomaly_batch_size
        See `TrainingConfig`. The warm-up is a third of the epochs unless it is given.
    learning_rate, lr_schedule
        See `TrainingConfig`.
    beta_kl, alpha, gamma, beta_cubo
        See `Objective`; states are measured in cells.
    anomaly_share
        Points on the boundaries of walls for each state to learn from.
    learned
        Share of learned states a planner gets; the rest is uniform.
    accept
        See `train_generators`.
    n_states
        States whose collisions and coverage are measured.
    """

    title: str = "Motion planning: where not to sample"
    setting: Settings = ("ours",)
    n_train: Count = 3000
    n_worlds: Count = 100
    methods: Annotated[Names, AfterValidator(known("method", METHODS))] = ("vae", "dp", "mml")
    seeds: Count = 1
    counts: Counts = (8, 16, 32, 64, 128)
    size: Count = 12
    n_walls: Count = 2
    mirror: bool = True
    hidden: _Widths | None = None
    dropout: Share | None = None
    latent_dim: Count | None = None
    filters: _Widths | None = None
    max_epochs: Count | None = None
    warmup_epochs: Whole | None = None
    annealing_epochs: Count | None = None
    batch_size: Count | None = None
    anomaly_batch_size: Count | None = None
    learning_rate: Positive | None = None
    lr_schedule: LearningRateSchedule | None = None
    beta_kl: Weight | None = None
    alpha: Weight | None = None
    gamma: Weight | None = None
    beta_cubo: Weight | None = None
    anomaly_share: _Part | None = None
    learned: _Part = 0.5
    accept: _Part = 0.95
    n_states: Count = 128

    @model_validator(mode="after")
    def _check(self) -> PlanningSpecification:
        try:
            make_worlds(0, size=self.size, n_walls=self.n_walls)
        except PlanningError as error:
            raise ValueError(str(error)) from error
        for setting in self.setting:
            training = self.recipe(setting, "vae").training
            if training.warmup_epochs >= training.max_epochs:
                raise ValueError(
                    "warmup_epochs must be less than max_epochs, which is "
                    f"{training.max_epochs} in the setting {setting!r}; got "
                    f"{training.warmup_epochs}."
                )
        return self

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """Everyone who proposes states, in the order of the table."""
        learned = [Sampler(method, *kind) for method in self.methods for kind in KINDS.values()]
        return (Sampler(UNIFORM), *learned)

    def recipe(self, setting: str, method: str) -> Recipe:
        """Return how a network is made in a setting, with the numbers that were given."""
        own = PLANNING_SETTINGS[setting]
        return own(method, self.size, self.max_epochs).with_changes(self._given)  # type: ignore[arg-type]

    def departures(self, setting: str) -> dict[str, Any]:
        """Return the numbers that were given and are not the setting's own."""
        own = [PLANNING_SETTINGS[setting](m, self.size, None) for m in self.methods]  # type: ignore[arg-type]
        return {k: v for k, v in self._given.items() if any(r.number(k) != v for r in own)}

    @property
    def _given(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _NUMBERS}
        return {name: value for name, value in found.items() if value is not None}


# The options that are numbers of a recipe.
_NUMBERS = tuple(
    name for name, field in PlanningSpecification.model_fields.items() if field.default is None
)
