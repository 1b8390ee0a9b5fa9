"""Networks that propose states: trained once, then measured in unseen worlds."""

from __future__ import annotations

import hashlib
import json
import time
from typing import Any

import numpy as np

from aloof.bench.identity import Identity
from aloof.bench.planning.specification import UNIFORM, PlanningSpecification, Sampler
from aloof.bench.revisions import revision
from aloof.bench.study import Outcome, Tell, Where, epochs
from aloof.planning import (
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
from aloof.training import discard_checkpoints

__all__ = ["configuration", "load_model", "load_worlds", "measure"]

# Of worlds: those of the test are never trained on. Those of seeds 2 and 3 were looked at when
# settings were chosen.
_TRAIN_SEED, _TEST_SEED = 1, 4

_ANOMALY_SHARE = 0.05  # points on the boundaries of walls for each state to learn from


def configuration(spec: PlanningSpecification, method: str) -> dict[str, Any]:
    """Return what results of a method depend on."""
    found: dict[str, Any] = {
        "size": spec.size,
        "n_walls": spec.n_walls,
        "n_states": spec.n_states,
        "learned": spec.learned,
        "seed": spec.seed,
        "counts": spec.counts,
    }
    return found if method == UNIFORM else {**found, **_model(spec, method)}


def _model(spec: PlanningSpecification, method: str) -> dict[str, Any]:
    """Return what a trained network depends on, beside the worlds."""
    return {
        "n_train": spec.n_train,
        "mirror": spec.mirror,
        "accept": spec.accept,
        "networks": spec.networks,
        "objective": default_objective(method),  # type: ignore[arg-type]
        "training": default_config(spec.max_epochs),
        "anomaly_share": _ANOMALY_SHARE,
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


def load_model(
    spec: PlanningSpecification, method: str, where: Where, tell: Tell
) -> StateGenerator:
    """Return the trained network of a method; one the folder holds is not trained again."""
    own = {"size": spec.size, "n_walls": spec.n_walls, "seed": spec.seed}
    identity = Identity({**own, **_model(spec, method)}, revision=revision(method))
    text = json.dumps(identity.record, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = where.folder / "models" / f"{method}-{digest}"
    device = str(where.device)
    if path.is_dir():
        return StateGenerator.load(path, device=device)
    trajectories = load_worlds(spec, where, tell, test=False)
    if spec.mirror:
        trajectories = mirrored(trajectories)
    path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint = path.with_suffix(".ckpt")
    model = train_generator(
        trajectories,
        default_objective(method),  # type: ignore[arg-type]
        config=default_config(spec.max_epochs),
        networks=spec.networks,
        anomaly_share=_ANOMALY_SHARE,
        accept=spec.accept,
        seed=spec.seed,
        device=device,
        checkpoint=checkpoint,
        on_epoch=epochs(tell, f"training {method}"),
    )
    model.save(path)
    discard_checkpoints(checkpoint)
    return model


def measure(
    spec: PlanningSpecification,
    model: StateGenerator | None,
    sampler: Sampler,
    test: Trajectories,
    number: int,
) -> Outcome:
    """Measure the states of a sampler in one unseen world, and what a planner makes of them."""
    world, trajectory = test.worlds[number], test.states[number]
    seed = int(np.random.SeedSequence([spec.seed, number]).generate_state(1)[0])
    how: dict[str, Any] = {"seed": seed, "screen": sampler.screen, "noise": sampler.noise}
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
