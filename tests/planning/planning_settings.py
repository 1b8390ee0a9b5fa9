"""Networks and a schedule that take seconds."""

from __future__ import annotations

from aloof.planning import NetworkConfig
from aloof.vae import TrainingConfig

SMALL = NetworkConfig(hidden=(64, 64), dropout=0.0, latent_dim=8)
SHORT = TrainingConfig(
    max_epochs=24,
    warmup_epochs=8,
    annealing_epochs=3,
    batch_size=64,
    anomaly_batch_size=32,
    learning_rate=2e-3,
    lr_schedule="cosine",
)
