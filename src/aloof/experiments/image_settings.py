"""The paper's networks and numbers for each image set, and how long we train.

The numbers are those of the paper's appendix. Its 200 epochs, 50 of them without anomalies, are
fewer here, and the learning rate falls to zero after the warm-up, where the paper divides it by
ten twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from aloof.networks import PAPER_NETWORKS, Architecture, ConvDecoder, ConvEncoder
from aloof.training import Method, Objective, TrainingConfig

__all__ = ["IMAGE_SETTINGS", "ImageSetting", "image_architecture", "image_objective"]


@dataclass(frozen=True)
class ImageSetting:
    """How an image set is learned.

    Attributes
    ----------
    max_epochs, warmup_epochs, annealing_epochs
        Of the training.
    anomaly_interval
        Anomalies join every so many batches.
    learning_rate
        Of the VAE and DP-VAE.
    mml_rate
        Of MML-VAE.
    beta_kl, alpha, beta_cubo
        As in `Objective`.
    """

    max_epochs: int
    warmup_epochs: int
    annealing_epochs: int
    anomaly_interval: int = 2
    learning_rate: float = 1e-3
    mml_rate: float = 1e-3
    beta_kl: float = 0.005
    alpha: float = 10.0
    beta_cubo: float = 0.005

    def config(self, method: Method, **changes: object) -> TrainingConfig:
        """Return the schedule of a method."""
        config = TrainingConfig(
            max_epochs=self.max_epochs,
            warmup_epochs=self.warmup_epochs,
            annealing_epochs=self.annealing_epochs,
            anomaly_interval=self.anomaly_interval,
            batch_size=128,
            anomaly_batch_size=64,
            learning_rate=self.mml_rate if method == "mml" else self.learning_rate,
            lr_schedule="cosine",
        )
        return replace(config, **changes)  # type: ignore[arg-type]


IMAGE_SETTINGS: Mapping[str, ImageSetting] = {
    "fashion-mnist": ImageSetting(60, 20, 10),
    "mnist": ImageSetting(30, 10, 5, mml_rate=5e-4),
    "cifar10": ImageSetting(30, 10, 5),
    "cats-vs-dogs": ImageSetting(20, 6, 3, anomaly_interval=1, mml_rate=5e-4),
}


def image_objective(method: Method, setting: ImageSetting) -> Objective:
    """Return the paper's objective: gamma is 1, the score is the objective itself."""
    return Objective(
        method,
        beta_kl=setting.beta_kl,
        alpha=setting.alpha,
        gamma=1.0,
        beta_cubo=setting.beta_cubo,
    )


def image_architecture(dataset: str, shape: tuple[int, int, int]) -> Architecture:
    """Return the paper's network for an image set."""
    options = dict(PAPER_NETWORKS[dataset])
    latent_dim = options.pop("latent_dim")
    return Architecture(
        partial(ConvEncoder, shape, latent_dim, **options),
        partial(ConvDecoder, shape, latent_dim, **options),
        latent_dim,
    )
