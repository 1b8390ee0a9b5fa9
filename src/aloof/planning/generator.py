"""A trained conditional VAE: it proposes states for a world, and judges them."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ConfigDict, Field
from torch import Tensor

from aloof.exceptions import ModelError, PlanningError
from aloof.io.sections import STRICT, from_json
from aloof.networks import Architecture, ConditionalMLPDecoder, ConditionalMLPEncoder
from aloof.persistence import check_tensors, read_model, refusing, versions, write_model
from aloof.planning.solving import STATE_DIM
from aloof.planning.worlds import World
from aloof.scoring import Scorer
from aloof.training import resolve_device
from aloof.vae import Ensemble, Objective

__all__ = ["NetworkConfig", "StateGenerator", "scale_ends", "scale_states", "unscale_states"]

_SPEED = 0.25  # the unit of velocities; that of positions is a cell
_LARGEST = 4096  # cells a side: more is a mistake
_ROUNDS = 8  # of drawing, before states that were refused are taken


@dataclass(frozen=True)
class NetworkConfig:
    """The networks; unless told otherwise, those of the paper's experiment.

    Attributes
    ----------
    hidden
        Widths of the hidden layers.
    dropout
        In training.
    latent_dim
        Size of the latent space.
    filters
        How many, of each convolution over the grid, which halves its side; the paper has none,
        its first layer sees the cells as they are.
    """

    hidden: tuple[int, ...] = (512, 512)
    dropout: float = 0.5
    latent_dim: int = 256
    filters: tuple[int, ...] = ()

    def architecture(self, size: int) -> Architecture:
        """Return what makes networks for grids of `size` cells a side."""
        sizes = (STATE_DIM, size * size + 4, self.latent_dim)
        options: dict[str, Any] = {
            "hidden": self.hidden,
            "dropout": self.dropout,
            "filters": self.filters,
            "image_size": size,
        }
        return Architecture(
            encoder=partial(ConditionalMLPEncoder, *sizes, **options),
            decoder=partial(ConditionalMLPDecoder, *sizes, **options),
            latent_dim=self.latent_dim,
        )


@dataclass(frozen=True)
class _Saved:
    """What the manifest of a `StateGenerator` holds."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    size: Annotated[int, Field(ge=1, le=_LARGEST)]
    objective: Objective
    networks: NetworkConfig
    threshold: float

    def __post_init__(self) -> None:
        if self.objective.beta_kl < 0:
            raise ValueError("objective.beta_kl is less than 0")


@dataclass(frozen=True, eq=False)
class StateGenerator:
    """Proposes states for a world it has not seen; made by `train_generators`.

    Attributes
    ----------
    ensemble
        The networks, one member.
    size
        Cells a side of the grids it was trained on.
    objective, networks
        How it was trained.
    threshold
        Anomaly score above which a state is refused by `draw` with ``screen=True``.
    device
        Where to compute.
    """

    ensemble: Ensemble
    size: int
    objective: Objective
    networks: NetworkConfig
    threshold: float
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def draw(
        self,
        world: World,
        n: int,
        *,
        seed: int = 0,
        screen: bool = False,
        noise: bool = True,
    ) -> NDArray[np.float64]:
        """Return `n` states ``(n, 4)``: codes from the prior, decoded for the world.

        Parameters
        ----------
        world
            Its grid must have the size of those in training.
        n
            How many.
        seed
            One seed, one answer.
        screen
            Let the model judge its own states: those it takes for anomalies are drawn again.
            Collisions are not looked up; this is all the model knows.
        noise
            Draw states from the likelihood, as the model has it; False: its means alone,
            which lie on a thin line where the model is sure of the path.
        """
        generator = torch.Generator().manual_seed(seed)
        spread = self.spread if noise else 0.0
        if not screen:
            return self._decode(world, n, spread, generator)
        kept: list[NDArray[np.float64]] = []
        refused: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        for _ in range(_ROUNDS):
            states = self._decode(world, max(n, 32), spread, generator)
            scores = self.anomaly_score(world, states)
            kept.append(states[scores <= self.threshold])
            refused.append((scores[scores > self.threshold], states[scores > self.threshold]))
            if sum(map(len, kept)) >= n:
                return np.concatenate(kept)[:n]
        # The model likes hardly anything here; the best of the rest fill the list.
        scores, states = (np.concatenate(part) for part in zip(*refused, strict=True))
        return np.concatenate([*kept, states[np.argsort(scores, kind="stable")]])[:n]

    @property
    def spread(self) -> float:
        """Standard deviation of the likelihood, in the units of the networks.

        A squared error with a KL divergence of weight b is the ELBO of a Gaussian likelihood
        of variance b / 2; a mean over d numbers makes it d b / 2.
        """
        n_summed = STATE_DIM if self.objective.reduction == "mean" else 1
        return float(np.sqrt(n_summed * self.objective.beta_kl / 2))

    def anomaly_score(self, world: World, states: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how little each state belongs to a trajectory; higher = worse.

        Minus the evidence lower bound at the posterior mean.
        """
        rows = torch.from_numpy(scale_states(states, self.size)).to(self.device)
        return self._score([rows, *self._context(world, len(rows))])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model folder: weights and settings, no code."""
        saved = _Saved(self.size, self.objective, self.networks, self.threshold)
        manifest = {"kind": "planning", **asdict(saved), "versions": versions()}
        write_model(path, manifest, self.ensemble.state())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "auto") -> StateGenerator:
        """Read what `save` wrote."""
        manifest, tensors = read_model(path)
        if manifest.get("kind") != "planning":
            raise ModelError(f"{path} holds a model, but not one that proposes states.")
        on = resolve_device(device)
        with refusing(path):
            keys = [key.name for key in fields(_Saved) if key.name in manifest]
            saved = from_json(_Saved, {key: manifest[key] for key in keys})
            example = [
                torch.zeros(2, STATE_DIM),
                torch.zeros(2, saved.size**2, dtype=torch.uint8),
                torch.zeros(2, 4),
            ]
            architecture = saved.networks.architecture(saved.size)
            ensemble = Ensemble.build(architecture, [0], example, device=on)
            check_tensors(ensemble.state(), tensors, path)
            ensemble.load(tensors)
        return cls(ensemble, saved.size, saved.objective, saved.networks, saved.threshold, on)

    def _decode(
        self, world: World, n: int, spread: float, generator: torch.Generator
    ) -> NDArray[np.float64]:
        z = torch.randn(1, n, self.networks.latent_dim, generator=generator).to(self.device)
        context = [part[None] for part in self._context(world, n)]
        with torch.no_grad():
            states = self.ensemble.decoder(z, *context)[0].cpu()
        if spread:
            states = states + spread * torch.randn(n, STATE_DIM, generator=generator)
        return unscale_states(states.double().numpy(), self.size)

    def _context(self, world: World, n: int) -> list[Tensor]:
        if world.size != self.size:
            raise PlanningError(
                f"The model was trained on grids of {self.size} x {self.size} cells, but this "
                f"world has {world.size} x {world.size}. Redraw the world's grid in that "
                "size, or train a model for this one."
            )
        grid = torch.from_numpy(world.grid.ravel().astype(np.uint8))
        ends = torch.from_numpy(scale_ends(np.array([[*world.start, *world.goal]])))
        return [part.expand(n, -1).to(self.device) for part in (grid[None], ends)]

    def _score(self, rows: list[Tensor]) -> NDArray[np.float64]:
        """Score scaled rows with their context."""
        scorer = Scorer(self.ensemble, self.objective, device=self.device, dtype=torch.float32)
        parts = [part.cpu().numpy() for part in rows]
        return -scorer.score(lambda chunk: [part[chunk] for part in parts], len(parts[0]))


def scale_states(states: NDArray[Any], size: int) -> NDArray[np.float32]:
    """Return states in the units of the networks: cells from the middle, quarters of speed."""
    position = (states[:, :2] - 0.5) * size
    return np.concatenate([position, states[:, 2:] / _SPEED], 1).astype(np.float32)


def unscale_states(rows: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Undo `scale_states`."""
    return np.concatenate([rows[:, :2] / size + 0.5, rows[:, 2:] * _SPEED], 1)


def scale_ends(ends: NDArray[Any]) -> NDArray[np.float32]:
    """Return starts and goals as networks like them, between -2 and 2."""
    return ((ends - 0.5) * 4).astype(np.float32)
