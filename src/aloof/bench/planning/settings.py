"""The two settings of the networks that propose states: our numbers, and the paper's.

``ours`` has convolutions over the grid and was chosen on worlds that are neither trained on nor
reported.

``paper`` is what the paper says, two layers of 512 with ReLU and dropout of 0.5 and 256 latent
axes, and what is in the code it builds on (Ichter et al. 2018): Adam with a rate of 1e-4,
batches of 256, no annealing, a KL divergence of weight 4e-4 beside the mean squared error of
states in a square of side 1. Readings:

- alpha is 5 and gamma 1; points on walls join after a third of the epochs, 64 to a batch; for
  MML-VAE, which the paper did not run here, beta_CUBO is beta_KL;
- there are 40 epochs, 60,000 steps with 3,000 worlds and their mirror images. That code makes
  half a million, but its loss has come most of the way by then;
- in that code dropout is never switched on. ``dropout = 0`` is what it computes, and 333 epochs
  are as long as it trains;
- that code weighs errors of velocities half as much; here they count as in ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from aloof.planning import NetworkConfig, default_config, default_objective
from aloof.vae import Method, Objective, TrainingConfig

__all__ = ["PLANNING_SETTINGS", "Recipe"]

_OUR_EPOCHS, _PAPER_EPOCHS = 6, 40
_PAPER_BETA_KL = 4e-4  # of states in a square of side 1


@dataclass(frozen=True)
class Recipe:
    """How a network is built and trained.

    Attributes
    ----------
    networks, objective, training
        As in `train_generators`.
    anomaly_share
        Points on the boundaries of walls for each state to learn from.
    """

    networks: NetworkConfig
    objective: Objective
    training: TrainingConfig
    anomaly_share: float = 0.05

    def with_changes(self, changes: Mapping[str, Any]) -> Recipe:
        """Return it with other numbers, by the names they have in its parts."""
        parts = {
            name: replace(part, **{k: v for k, v in changes.items() if k in _names(part)})
            for name in ("networks", "objective", "training")
            for part in [getattr(self, name)]
        }
        own = {k: v for k, v in changes.items() if k == "anomaly_share"}
        return replace(self, **parts, **own)

    def number(self, name: str) -> Any:
        """Return a number by the name it has in a part."""
        parts = (self, self.networks, self.objective, self.training)
        return next(getattr(part, name) for part in parts if name in _names(part))


def _names(part: Any) -> set[str]:
    return {field.name for field in fields(part)}


def _ours(method: Method, size: int, max_epochs: int | None) -> Recipe:
    return Recipe(
        NetworkConfig(hidden=(256, 256), dropout=0.0, latent_dim=16, filters=(16, 32)),
        default_objective(method),
        default_config(max_epochs or _OUR_EPOCHS),
    )


def _paper(method: Method, size: int, max_epochs: int | None) -> Recipe:
    epochs = max_epochs or _PAPER_EPOCHS
    beta_kl = _PAPER_BETA_KL * size**2  # states are measured in cells
    return Recipe(
        NetworkConfig(hidden=(512, 512), dropout=0.5, latent_dim=256),
        Objective(method, beta_kl=beta_kl, alpha=5.0, gamma=1.0, beta_cubo=beta_kl),
        TrainingConfig(
            max_epochs=epochs,
            warmup_epochs=epochs // 3,
            annealing_epochs=1,
            batch_size=256,
            anomaly_batch_size=64,
            learning_rate=1e-4,
        ),
    )


PLANNING_SETTINGS: Mapping[str, Callable[[Method, int, int | None], Recipe]] = {
    "ours": _ours,
    "paper": _paper,
}
"""By name: from a method, the cells a side of a grid, and epochs (None: its own)."""
