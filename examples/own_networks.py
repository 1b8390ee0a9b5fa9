"""
Your own encoder and decoder
============================

Any `torch.nn.Module` that follows the protocol of `aloof.networks` works with every method.
Here are two networks with batch normalisation; the ensemble, scoring, saving and loading come
for free.

Run it with ``python examples/own_networks.py``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from aloof import DualPriorVAE


class Encoder(nn.Module):
    """Rows ``(n, *shape)`` to a mean and a log-variance, each ``(n, latent_dim)``."""

    def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(shape[0], 64), nn.BatchNorm1d(64), nn.GELU())
        self.mean = nn.Linear(64, latent_dim)
        self.log_var = nn.Linear(64, latent_dim)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance."""
        hidden = self.body(x)
        return self.mean(hidden), self.log_var(hidden)


class Decoder(nn.Sequential):
    """Codes ``(n, latent_dim)`` to reconstructions ``(n, *shape)``."""

    def __init__(self, shape: tuple[int, ...], latent_dim: int) -> None:
        super().__init__(
            nn.Linear(latent_dim, 64), nn.BatchNorm1d(64), nn.GELU(), nn.Linear(64, shape[0])
        )


def main() -> float:
    """Fit, save, load and score; return the AUROC."""
    X, benign = load_breast_cancer(return_X_y=True)
    malignant = 1 - benign
    rng = np.random.default_rng(0)
    normal, anomalies = (rng.permutation(np.flatnonzero(malignant == k)) for k in (0, 1))
    train = np.r_[normal[:214], anomalies[:5]]
    test = np.r_[normal[214:], anomalies[5:]]

    detector = DualPriorVAE(encoder=Encoder, decoder=Decoder, latent_dim=8, random_state=0)
    detector.fit(X[train], malignant[train])

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        detector.save(path)  # weights and settings; no code
        again = DualPriorVAE.load(path, encoder=Encoder, decoder=Decoder)
    assert np.array_equal(again.score_samples(X), detector.score_samples(X))

    area = roc_auc_score(malignant[test], again.anomaly_score(X[test]))
    print(f"AUROC with five labelled anomalies: {100 * area:.1f}")
    return float(area)


if __name__ == "__main__":
    main()
