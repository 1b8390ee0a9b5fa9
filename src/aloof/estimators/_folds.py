"""Which member leaves out which rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from aloof.labels import ANOMALY
from aloof.training import Stream, derive

__all__ = ["NO_FOLD", "enough_for", "folds_of"]

NO_FOLD = -1

_FEWEST_ROWS = 4  # in a fold


def enough_for(n_folds: int, n_rows: int) -> bool:
    """Whether so many rows can be left out in turns."""
    return n_folds > 1 and n_rows >= _FEWEST_ROWS * n_folds


def folds_of(labels: NDArray[np.int64], n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row, as many rows in each as can be.

    Labelled anomalies are in folds only where each fold gets one: where there are fewer, every
    member needs them all, and their fold is `NO_FOLD`.

    Parameters
    ----------
    labels
        1 for anomalies.
    n_folds
        How many.
    seed
        Of the detector.
    """
    rng = np.random.default_rng(derive(seed, Stream.SPLIT))
    folds = np.full(len(labels), NO_FOLD, np.int64)
    for rows in (np.flatnonzero(labels != ANOMALY), np.flatnonzero(labels == ANOMALY)):
        if len(rows) >= n_folds:
            folds[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
    return folds
