"""Which rows the members of a detector learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aloof.labels import ANOMALY
from aloof.training import Stream, derive
from aloof.vae import VAEProblem

if TYPE_CHECKING:
    from aloof.estimators._base import Detector

__all__ = ["problems_of", "spread_over", "weighted", "with_confirmed"]

# With fewer labelled anomalies than this, all of them are needed for training.
_FEWEST_TO_HOLD_OUT = 10


def problems_of(
    detector: Detector, labels: NDArray[np.int64], folds: NDArray[np.int64] | None, seed: int
) -> tuple[VAEProblem, ...]:
    """Turn labels into rows to train on and rows to validate with.

    One problem for all members, or one for each member that leaves out a fold.

    Parameters
    ----------
    detector
        Has its members' seeds.
    labels
        1 for anomalies.
    folds
        Which member leaves out each row, or None.
    seed
        Decides which rows are held out.
    """
    normal = np.flatnonzero(labels != ANOMALY)
    anomalies = np.flatnonzero(labels == ANOMALY)
    if folds is not None:
        return _without_folds(detector, normal, anomalies, folds)
    held_normal = held_anomalies = anomalies[:0]
    if detector.patience is not None:
        rng = np.random.default_rng(derive(seed, Stream.SPLIT))
        n_held = max(1, round(detector.validation_fraction * len(normal)))
        if len(normal) - n_held < 2:
            raise ValueError(
                f"patience={detector.patience} holds rows out, but {len(normal)} rows are too "
                "few for that. Set patience=None."
            )
        normal, held_normal = _split(normal, n_held, rng)
        if len(anomalies) >= _FEWEST_TO_HOLD_OUT:
            n_held = round(detector.validation_fraction * len(anomalies))
            anomalies, held_anomalies = _split(anomalies, n_held, rng)
    problem = VAEProblem(
        normal=normal,
        anomaly=anomalies,
        seeds=detector.member_seeds_,
        objective=detector._objective(),
        validation_normal=held_normal,
        validation_anomaly=held_anomalies,
    )
    return (problem,)


def _without_folds(
    detector: Detector,
    normal: NDArray[np.int64],
    anomalies: NDArray[np.int64],
    folds: NDArray[np.int64],
) -> tuple[VAEProblem, ...]:
    # Too few labelled anomalies are in no fold: every member learns from all of them.
    own = [
        (normal[folds[normal] != member], anomalies[folds[anomalies] != member])
        for member in range(detector.n_members)
    ]
    n_rows = min(len(rows) for rows, _ in own)  # equal epochs, so that all are one stack
    objective = detector._objective()
    return tuple(
        VAEProblem(
            normal=rows,
            anomaly=known,
            seeds=[seed],
            objective=objective,
            rows_per_epoch=n_rows,
        )
        for (rows, known), seed in zip(own, detector.member_seeds_, strict=True)
    )


def weighted(
    problems: Sequence[VAEProblem], confirmed: NDArray[np.int64], weight: int
) -> tuple[VAEProblem, ...]:
    """Let an epoch pass over rows that were confirmed as normal `weight` times."""
    if not len(confirmed):
        return tuple(problems)
    heavier = []
    for problem in problems:
        taught = np.intersect1d(confirmed, problem.normal)  # not those held out
        rows = np.concatenate([problem.normal, np.repeat(taught, weight - 1)])
        heavier.append(replace(problem, normal=rows))
    if problems[0].rows_per_epoch is None:
        return tuple(heavier)
    n_rows = min(len(problem.normal) for problem in heavier)
    return tuple(replace(problem, rows_per_epoch=n_rows) for problem in heavier)


def with_confirmed(
    normal: NDArray[np.int64], confirmed: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return `n` normal rows at equal distances, up to half of them confirmed ones."""
    sure = spread_over(np.intersect1d(confirmed, normal), n // 2)
    if not len(sure):
        return spread_over(normal, n)
    return np.union1d(spread_over(np.setdiff1d(normal, sure), n - len(sure)), sure)


def spread_over(rows: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return `n` of the rows at equal distances, or all."""
    return rows[np.linspace(0, len(rows) - 1, min(n, len(rows))).round().astype(np.int64)]


def _split(
    rows: NDArray[np.int64], n_held: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = rng.permutation(rows)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
