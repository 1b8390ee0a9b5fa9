"""Training: `aloof.vae`, with the world as context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from aloof.planning.dataset import Trajectories, training_rows
from aloof.planning.generator import (
    NetworkConfig,
    StateGenerator,
    scale_ends,
    scale_states,
)
from aloof.training import ProgressCallback, resolve_device
from aloof.vae import Method, Objective, TrainingConfig, VAEProblem, train

__all__ = ["default_config", "default_objective", "train_generators"]

_N_CALIBRATION = 4096  # states of trajectories that set the threshold


def default_objective(method: Method) -> Objective:
    """Return a method's objective with the numbers that suit states measured in cells.

    Chosen on worlds that are neither trained on nor reported. A weaker `beta_kl` leaves holes
    in the prior, whose codes are decoded to walls, with every method; a stronger one blurs.
    The second prior may lie far away and weigh little: states then stay as good as without it.
    """
    gamma = 0.1 if method == "dp" else 1.0
    return Objective(method, beta_kl=0.2, alpha=4.0, gamma=gamma, beta_cubo=0.2)


def default_config(max_epochs: int = 100) -> TrainingConfig:
    """Return a schedule: a third of it is the warm-up, without anomalies."""
    return TrainingConfig(
        max_epochs=max_epochs,
        warmup_epochs=max_epochs // 3,
        annealing_epochs=max(1, max_epochs // 10),
        batch_size=256,
        anomaly_batch_size=64,
        learning_rate=2e-3,
        lr_schedule="cosine",
    )


def train_generators(
    trajectories: Trajectories,
    objective: Objective | None = None,
    *,
    seeds: Sequence[int] = (0,),
    config: TrainingConfig | None = None,
    networks: NetworkConfig | None = None,
    anomaly_share: float = 0.05,
    accept: float = 0.95,
    device: str = "auto",
    checkpoint: Path | None = None,
    on_epoch: ProgressCallback | None = None,
) -> list[StateGenerator]:
    """Train a conditional VAE of states, given grid, start and goal, for each seed.

    This is `aloof.vae.train` with ``data = [states, grids, ends]``: encoder and decoder
    get the context of every row. Nothing in the library knows about planning. Seeds are
    trained as one stack, and none depends on the others.

    Parameters
    ----------
    trajectories
        What to imitate.
    objective
        ``default_objective("dp")`` unless given; `method` may be any.
    seeds
        Of the anomalies and the networks.
    config
        The schedule; `default_config` unless given.
    networks
        `NetworkConfig` unless given.
    anomaly_share
        Points on the boundaries of walls for each state, as negative examples.
    accept
        Share of the trajectories' own states that the threshold lets pass; see
        `StateGenerator.draw`.
    device
        Where to train and to draw.
    checkpoint
        File to continue from, as in `train`.
    on_epoch
        Called after each epoch.
    """
    objective = objective or default_objective("dp")
    networks = networks or NetworkConfig()
    config = config or default_config()
    on = resolve_device(device)
    size = trajectories.size
    own = [training_rows(trajectories, anomaly_share=anomaly_share, seed=s) for s in seeds]
    # All have the same normal rows, which come once; then the anomalies of each.
    n_normal, n_anomalies = own[0].n_normal, len(own[0].states) - own[0].n_normal
    states, grids, ends = (
        np.concatenate([first, *(part[n_normal:] for part in others)])
        for first, *others in (
            [rows.states for rows in own],
            [rows.grids for rows in own],
            [rows.ends for rows in own],
        )
    )
    data = [
        torch.from_numpy(scale_states(states, size)),
        torch.from_numpy(grids),
        torch.from_numpy(scale_ends(ends)),
    ]
    problems = [
        VAEProblem(
            normal=np.arange(n_normal),
            anomaly=n_normal + n_anomalies * number + np.arange(n_anomalies),
            seeds=[seed],
            objective=objective,
        )
        for number, seed in enumerate(seeds)
    ]
    results = train(
        data,
        problems,
        networks.architecture(size),
        config,
        device=on,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
    )
    models = []
    for seed, result in zip(seeds, results, strict=True):
        model = StateGenerator(result.ensemble, size, objective, networks, np.inf, on)
        some = np.random.default_rng(seed).permutation(n_normal)[:_N_CALIBRATION]
        scores = model._score([part[some].to(on) for part in data])
        models.append(replace(model, threshold=float(np.quantile(scores, accept))))
    return models
