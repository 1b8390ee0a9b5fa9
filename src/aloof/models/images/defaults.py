"""How images are learned unless somebody says otherwise: every number in one place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["DEFAULTS", "default_epochs", "default_filters"]

DEFAULTS: dict[str, Any] = {
    "hidden": (64,),
    "latent_dim": 32,
    "beta_kl": 0.0005,
    "alpha": 10.0,
    "gamma": 1.0,
    "learning_rate": 1e-3,
    "batch_size": 32,
    "anomaly_batch_size": 16,
    "aggregate_prior": 256,
}

# A network sees this many images, more where a pass over all of them takes more.
_IMAGES_SEEN, _FEWEST_EPOCHS, _MOST_EPOCHS = 8_000, 20, 100


def default_epochs(n_images: int) -> int:
    """Return the passes over so many normal images.

    Examples
    --------
    >>> default_epochs(50), default_epochs(200), default_epochs(10_000)
    (100, 40, 20)
    """
    return int(np.clip(_IMAGES_SEEN // max(1, n_images), _FEWEST_EPOCHS, _MOST_EPOCHS))


def default_filters(shape: Sequence[int]) -> tuple[int, ...]:
    """Return filters with which two processor cores train an ensemble in minutes.

    Examples
    --------
    >>> default_filters((1, 28, 28)), default_filters((3, 64, 64))
    ((16, 32), (8, 16, 32))
    """
    side = min(shape[1:])
    filters = [16 if side <= 32 else 8]
    while side >> len(filters) > 8:
        filters.append(2 * filters[-1])
    return tuple(filters)
