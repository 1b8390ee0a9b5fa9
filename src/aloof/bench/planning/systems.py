"""Networks that propose states: trained once, then measured in unseen worlds."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from aloof.bench.identity import Identity
from aloof.bench.planning.specification import UNIFORM, PlanningSpecification, Sampler
from aloof.bench.resuming import resumed
from aloof.bench.revisions import revision
from aloof.bench.study import Outcome, Tell, Where, epochs
from aloof.planning import (
    StateGenerator,
    Trajectories,
    collision_share,
    coverage,
    load_trajectories,
    mirrored,
    mixed_states,
    plan,
    train_generators,
)
from aloof.training import discard_checkpoints

__all__ = ["configuration", "load_models", "load_worlds", "measure", "model_folder"]

# Of worlds: those of the test are never trained on. Those of seeds 2 and 3 were looked at when
# settings were chosen.
_TRAIN_SEED, _TEST_SEED = 1, 4


def configuration(
    spec: PlanningSpecification, setting: str, method: str, seed: int
) -> dict[str, Any]:
    """Return what results of a method depend on."""
    found: dict[str, Any] = {
        "size": spec.size,
        "n_walls": spec.n_walls,
        "n_states": spec.n_states,
        "learned": spec.learned,
        "seed": seed,
        "counts": spec.counts,
    }
    return found if method == UNIFORM else {**found, **_model(spec, setting, method)}


def _model(spec: PlanningSpecification, setting: str, method: str) -> dict[str, Any]:
    """Return what a trained network depends on, beside the worlds and its seed."""
    recipe = spec.recipe(setting, method)
    return {
        "n_train": spec.n_train,
        "mirror": spec.mirror,
        "accept": spec.accept,
        "networks": recipe.networks,
        "objective": recipe.objective,
        "training": recipe.training,
        "anomaly_share": recipe.anomaly_share,
    }


def load_worlds(
    spec: PlanningSpecification, where: Where, tell: Tell, *, test: bool
) -> Trajectories:
    """Return the worlds to learn from, or the unseen ones, with optimal trajectories."""
    n = spec.n_worlds if test else spec.n_train
    what = "solving unseen worlds" if test else "solving worlds to learn from"
    return load_trajectories(
        n,
        size=spec.size,
        n_walls=spec.n_walls,
        seed=_TEST_SEED if test else _TRAIN_SEED,
        jobs=where.jobs,
        on_done=lambda done: tell(done, n, what),
    )


def load_models(
    spec: PlanningSpecification,
    setting: str,
    method: str,
    seeds: Sequence[int],
    where: Where,
    tell: Tell,
) -> dict[int, StateGenerator]:
    """Return the trained networks of a method; those the folder holds are not trained again."""
    paths = {seed: model_folder(spec, setting, method, seed, where) for seed in seeds}
    device = str(where.device)
    models = {
        seed: StateGenerator.load(path, device=device)
        for seed, path in paths.items()
        if path.is_dir()
    }
    missing = [seed for seed in seeds if seed not in models]
    if not missing:
        return models
    trajectories = load_worlds(spec, where, tell, test=False)
    if spec.mirror:
        trajectories = mirrored(trajectories)
    first = paths[missing[0]]
    first.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = first.with_name(f"{first.name}-{len(missing)}.ckpt")
    recipe = spec.recipe(setting, method)
    trained = resumed(
        partial(
            train_generators,
            trajectories,
            recipe.objective,
            seeds=missing,
            config=recipe.training,
            networks=recipe.networks,
            anomaly_share=recipe.anomaly_share,
            accept=spec.accept,
            device=device,
            on_epoch=epochs(tell, f"training {method} ({setting})"),
        ),
        checkpoint,
    )
    for seed, model in zip(missing, trained, strict=True):
        model.save(paths[seed])
        models[seed] = model
    discard_checkpoints(checkpoint)
    return models


def model_folder(
    spec: PlanningSpecification, setting: str, method: str, seed: int, where: Where
) -> Path:
    """Return where a trained network is kept: what it is, and a digest of how it is made."""
    own = {"size": spec.size, "n_walls": spec.n_walls, "seed": seed}
    identity = Identity({**own, **_model(spec, setting, method)}, revision=revision(method))
    text = json.dumps(identity.record, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return where.folder / "models" / f"{method}-{digest}"


def measure(
    spec: PlanningSpecification,
    model: StateGenerator | None,
    sampler: Sampler,
    test: Trajectories,
    number: int,
    seed: int,
) -> Outcome:
    """Measure the states of a sampler in one unseen world, and what a planner makes of them."""
    world, trajectory = test.worlds[number], test.states[number]
    drawn = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    how: dict[str, Any] = {"seed": drawn, "screen": sampler.screen, "noise": sampler.noise}
    pure = mixed_states(model, world, spec.n_states, learned=1.0, **how)
    steps = np.diff(trajectory[:, :2], axis=0)
    best = float(np.linalg.norm(steps, axis=1).sum())
    plans = []
    for n in spec.counts:
        started = time.perf_counter()
        states = mixed_states(model, world, n, learned=spec.learned, **how)
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
