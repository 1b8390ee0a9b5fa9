"""Small problems to train on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from aloof.networks import Architecture, MLPDecoder, MLPEncoder
from aloof.vae import Objective, TrainingConfig, VAEProblem

N_FEATURES, LATENT = 5, 3
CPU = torch.device("cpu")


def data(n_normal: int = 90, n_anomaly: int = 12, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_normal, 2)) @ rng.normal(size=(2, N_FEATURES))
    normal = factors + 0.1 * rng.normal(size=(n_normal, N_FEATURES))
    anomaly = 2 * rng.normal(size=(n_anomaly, N_FEATURES))
    return torch.from_numpy(np.r_[normal, anomaly])


def problem(
    seeds: list[int], n_normal: int = 90, n_anomaly: int = 12, **changes: Any
) -> VAEProblem:
    base = VAEProblem(
        normal=np.arange(n_normal),
        anomaly=np.arange(n_normal, n_normal + n_anomaly),
        seeds=seeds,
    )
    return replace(base, **changes)


def architecture(hidden: tuple[int, ...] = (8,)) -> Architecture:
    return Architecture(
        partial(MLPEncoder, (N_FEATURES,), LATENT, hidden),
        partial(MLPDecoder, (N_FEATURES,), LATENT, hidden),
        LATENT,
    )


def config(**changes: Any) -> TrainingConfig:
    base = TrainingConfig(
        max_epochs=8, warmup_epochs=3, annealing_epochs=2, batch_size=32, anomaly_batch_size=8
    )
    return replace(base, **changes)


def states(ensemble: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in ensemble.state().items()}


OBJECTIVES = {
    "vae": Objective("vae"),
    "dp": Objective("dp", alpha=3.0),
    "mml": Objective("mml", n_samples=3),
    "mml-softplus": Objective("mml", repulsion="softplus", margin=4.0),
    "mml-dp": Objective("mml-dp", n_samples=2),
}
