"""Which member leaves out which rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aloof.labels import ANOMALY
from aloof.training import Stream, derive

__all__ = ["NO_FOLD", "KnownRows", "enough_for", "folds_of"]

NO_FOLD = -1

_FEWEST_ROWS = 4  # in a fold
_CHUNK = 4096  # rows at once


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


@dataclass(frozen=True)
class KnownRows:
    """Rows that members have seen, to be recognised among others.

    Attributes
    ----------
    digests
        A number for each, in ascending order; equal rows have equal ones.
    folds
        Which member has not seen it; `NO_FOLD`: all have.
    """

    digests: NDArray[np.int64]
    folds: NDArray[np.int16]

    @classmethod
    def of(cls, rows: NDArray[np.float32], folds: NDArray[np.int64]) -> KnownRows:
        """Remember rows ``(n, n_features)``."""
        digests = _digests(rows)
        order = np.argsort(digests, kind="stable")
        return cls(digests[order], folds[order].astype(np.int16))

    def folds_of(
        self, rows: NDArray[np.float32], labels: NDArray[np.int64], n_folds: int, seed: int
    ) -> NDArray[np.int64]:
        """Return the fold of each row, such that no member leaves out what it has seen.

        Rows that are new are shared out. Labelled anomalies are left out only where there are
        at least as many to leave out as folds, and each member keeps one.

        Parameters
        ----------
        rows
            As they were remembered.
        labels, n_folds, seed
            As in `aloof.estimators._folds.folds_of`.
        """
        digests = _digests(rows)
        place = np.minimum(np.searchsorted(self.digests, digests), len(self.digests) - 1)
        is_known = self.digests[place] == digests
        before = np.where(is_known, self.folds[place], NO_FOLD).astype(np.int64)
        anomalous = labels == ANOMALY
        # What all members have seen as an anomaly none can leave out. If it is none, any can.
        new = (before == NO_FOLD) & ~(is_known & anomalous)
        rng = np.random.default_rng(derive(seed, Stream.SPLIT))
        folds = before.copy()
        for group in (new & ~anomalous, new & anomalous):
            order = rng.permutation(np.flatnonzero(group))
            folds[order] = np.arange(len(order)) % n_folds
        own = folds[anomalous]
        seen = [(own != fold).any() for fold in range(n_folds)]
        if (own != NO_FOLD).sum() < n_folds or not all(seen):
            folds[anomalous] = NO_FOLD
        return folds


def _digests(rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return a number for each row, by all bits of all its values: multilinear hashing."""
    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32)
    factors = np.random.default_rng(0).integers(2**64, size=rows.shape[1], dtype=np.uint64)
    found = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), _CHUNK):
        found[start : start + _CHUNK] = bits[start : start + _CHUNK].astype(np.uint64) @ factors
    return found.view(np.int64)
