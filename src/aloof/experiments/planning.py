"""The motion-planning experiment: who proposes states, and what a planner makes of them.

Every sampler meets the same unseen worlds. A folder holds ``models/`` (trained networks),
``records.jsonl`` (a line for each sampler and world) and what is made of them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from aloof.exceptions import ExperimentError
from aloof.experiments.names import did_you_mean
from aloof.experiments.records import append_lines, jsonable, read_records, write_text
from aloof.persistence import versions
from aloof.planning import (
    NetworkConfig,
    StateGenerator,
    Trajectories,
    collision_share,
    coverage,
    default_config,
    default_objective,
    load_trajectories,
    mirrored,
    mixed_states,
    plan,
    train_generator,
)
from aloof.training import EpochReport, discard_checkpoints, resolve_device
from aloof.vae import METHODS

__all__ = [
    "PlanningExperiment",
    "Sampler",
    "load_worlds",
    "make_planning_experiment",
    "run_planning",
    "train_models",
]

# Of worlds: those of the test are never trained on. Those of seeds 2 and 3 were looked at when
# settings were chosen.
_TRAIN_SEED, _TEST_SEED = 1, 4
_RECORDS, _MANIFEST, _MODELS = "records.jsonl", "manifest.json", "models"


@dataclass(frozen=True)
class PlanningExperiment:
    """What to train, and what to measure.

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
    max_epochs, hidden, dropout, latent_dim, channels
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

    n_train: int = 3000
    n_worlds: int = 100
    methods: tuple[str, ...] = ("vae", "dp", "mml")
    counts: tuple[int, ...] = (16, 32, 64, 128, 256)
    size: int = 16
    n_walls: int = 3
    mirror: bool = False
    max_epochs: int = 200
    hidden: tuple[int, ...] = (512, 512)
    dropout: float = 0.5
    latent_dim: int = 256
    channels: tuple[int, ...] = ()
    learned: float = 0.5
    accept: float = 0.95
    n_states: int = 128
    seed: int = 0

    @property
    def samplers(self) -> tuple[Sampler, ...]:
        """Everyone who proposes states, in the order of the table."""
        kinds = ((False, False), (True, False), (True, True))
        learned = [Sampler(method, *kind) for method in self.methods for kind in kinds]
        return (Sampler("uniform"), *learned)

    @property
    def digest(self) -> str:
        """What results depend on, but for the number of unseen worlds."""
        options = {k: v for k, v in asdict(self).items() if k not in ("n_worlds", "methods")}
        options["objectives"] = [asdict(default_objective(method)) for method in METHODS]
        return hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sampler:
    """A method, whether it draws from its likelihood, and whether it judges its own states."""

    method: str
    noise: bool = False
    screen: bool = False

    @property
    def label(self) -> str:
        """Its name in tables."""
        names = {"vae": "VAE", "dp": "DP-VAE", "mml": "MML-VAE", "mml-dp": "MML-DP-VAE"}
        name = names.get(self.method, self.method)
        if self.method == "uniform":
            return name
        return f"{name}, screened" if self.screen else name if self.noise else f"{name}, means"


def make_planning_experiment(options: Mapping[str, Any]) -> PlanningExperiment:
    """Check options, and fill in the rest.

    Examples
    --------
    >>> make_planning_experiment({"n_wrlds": 3})
    Traceback (most recent call last):
    aloof.exceptions.ExperimentError: There is no option 'n_wrlds'; did you mean 'n_worlds'?...
    """
    known = [field.name for field in fields(PlanningExperiment)]
    for name in options:
        if name not in known:
            raise ExperimentError(f"There is no option {name!r}{did_you_mean(name, known)}")
    given: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in options.items()
    }
    experiment = PlanningExperiment(**given)
    for method in experiment.methods:
        if method not in METHODS:
            raise ExperimentError(
                f"There is no method {method!r}{did_you_mean(method, METHODS)}"
            )
    for name in ("n_train", "n_worlds", "max_epochs", "n_states"):
        if getattr(experiment, name) < 1:
            raise ExperimentError(
                f"{name} must be at least 1; got {getattr(experiment, name)}."
            )
    if not experiment.counts or min(experiment.counts) < 1:
        raise ExperimentError(f"counts must be numbers above 0; got {experiment.counts}.")
    return experiment


def load_worlds(
    experiment: PlanningExperiment,
    *,
    test: bool,
    jobs: int = 1,
    on_done: Callable[[int], None] | None = None,
) -> Trajectories:
    """Return the worlds to learn from, or the unseen ones, with optimal trajectories."""
    return load_trajectories(
        experiment.n_worlds if test else experiment.n_train,
        size=experiment.size,
        n_walls=experiment.n_walls,
        seed=_TEST_SEED if test else _TRAIN_SEED,
        jobs=jobs,
        on_done=on_done,
    )


def train_models(
    experiment: PlanningExperiment,
    folder: Path,
    *,
    device: str = "auto",
    jobs: int = 1,
    on_epoch: Callable[[str, EpochReport], None] | None = None,
    on_solved: Callable[[int], None] | None = None,
) -> dict[str, StateGenerator]:
    """Return a trained model of each method; those the folder holds are not trained again."""
    resolve_device(device)  # before minutes of solving
    models, trajectories = {}, None
    for method in experiment.methods:
        path = folder / _MODELS / f"{method}-{experiment.digest}"
        if path.is_dir():
            models[method] = StateGenerator.load(path, device=device)
            continue
        if trajectories is None:
            trajectories = load_worlds(experiment, test=False, jobs=jobs, on_done=on_solved)
            if experiment.mirror:
                trajectories = mirrored(trajectories)
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = path.with_suffix(".ckpt")
        models[method] = train_generator(
            trajectories,
            default_objective(method),  # type: ignore[arg-type]
            config=default_config(experiment.max_epochs),
            networks=NetworkConfig(
                experiment.hidden,
                experiment.dropout,
                experiment.latent_dim,
                experiment.channels,
            ),
            accept=experiment.accept,
            seed=experiment.seed,
            device=device,
            checkpoint=checkpoint,
            on_epoch=None if on_epoch is None else _named(on_epoch, method),
        )
        models[method].save(path)
        discard_checkpoints(checkpoint)
    return models


def run_planning(
    experiment: PlanningExperiment,
    models: Mapping[str, StateGenerator],
    test: Trajectories,
    folder: Path,
    *,
    device: str = "auto",
    command: str = "",
    on_record: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Measure every sampler in every unseen world; what the folder holds is not run again.

    Returns
    -------
    Records, sampler by sampler in the order of the table.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        found = {_key(record): record for record in read_records(folder / _RECORDS, check=_key)}
    except OSError as error:
        raise ExperimentError(
            f"{folder} cannot be used for results: {error.strerror or error}."
        ) from error
    manifest = {
        "command": command,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "experiment": asdict(experiment),
        "objectives": {name: asdict(model.objective) for name, model in models.items()},
        "device": str(resolve_device(device)),
        "versions": versions(),
    }
    write_text(folder / _MANIFEST, json.dumps(jsonable(manifest), indent=2) + "\n")
    records, total = [], len(experiment.samplers) * len(test)
    for sampler in experiment.samplers:
        for number in range(len(test)):
            key = (experiment.digest, sampler.label, number)
            if key not in found:
                record = {
                    "experiment": experiment.digest,
                    "sampler": sampler.label,
                    "world": number,
                    **_measure(experiment, models.get(sampler.method), sampler, test, number),
                }
                found[key] = record
                append_lines(folder / _RECORDS, [record])
            records.append(found[key])
            if on_record is not None:
                on_record(len(records), total)
    return records


def _measure(
    experiment: PlanningExperiment,
    model: StateGenerator | None,
    sampler: Sampler,
    test: Trajectories,
    number: int,
) -> dict[str, Any]:
    world, trajectory = test.worlds[number], test.states[number]
    seed = int(np.random.SeedSequence([experiment.seed, number]).generate_state(1)[0])
    how: dict[str, Any] = {"seed": seed, "screen": sampler.screen, "noise": sampler.noise}
    pure = mixed_states(model, world, experiment.n_states, learned=1.0, **how)
    steps = np.diff(trajectory[:, :2], axis=0)
    best = float(np.linalg.norm(steps, axis=1).sum())
    plans = []
    for n in experiment.counts:
        started = time.perf_counter()
        states = mixed_states(model, world, n, learned=experiment.learned, **how)
        found = plan(world, states)
        outcome = {"n": n, "found": found.found, "seconds": time.perf_counter() - started}
        if found.found:
            outcome["cost"] = found.cost / best
        plans.append(outcome)
    return {
        "collision": collision_share(world, pure),
        "coverage": coverage(world, trajectory, pure),
        "plans": plans,
    }


def _key(record: Mapping[str, Any]) -> tuple[str, str, int]:
    return record["experiment"], record["sampler"], record["world"]


def _named(
    report: Callable[[str, EpochReport], None], method: str
) -> Callable[[EpochReport], None]:
    return lambda epoch: report(method, epoch)
