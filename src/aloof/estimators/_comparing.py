"""What the training rows say about scores: what codes are compared with, and own scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from aloof.estimators._folds import NO_FOLD
from aloof.estimators._images import as_numbers
from aloof.estimators._problems import spread_over, with_confirmed
from aloof.scoring import AggregatePrior, DirectionPenalty

if TYPE_CHECKING:
    from aloof.estimators._base import Detector
    from aloof.estimators._fitting import Prepared

__all__ = ["measured", "training_scores"]

# Rows to measure the spread of codes with, and the fewest that make up a prior.
_ENOUGH_ROWS, _FEWEST_CODES = 10_000, 16


def measured(
    detector: Detector, task: Prepared
) -> tuple[DirectionPenalty | None, AggregatePrior | None]:
    """Learn from normal training rows what the codes of others are compared with."""
    problems, rows = task.problems, task.rows.numpy()
    alone = len(problems) == 1
    scorers = [detector._scorer] if alone else list(detector._member_scorers())
    priors, penalties = [], []
    known = [np.unique(problem.normal) for problem in problems]
    if task.folds is None:
        known = [task.normal]
    fewest = min(map(len, known))
    for problem, scorer, normal in zip(problems, scorers, known, strict=True):
        if detector._knows_direction(problem):
            some = rows[spread_over(normal, _ENOUGH_ROWS)]
            penalties.append(scorer.measure_direction(partial(_numbers, some), len(some)))
        # Rows of which a part make up the prior still say what scores other rows will have.
        n_codes = min(detector.aggregate_prior, fewest // 4)
        if n_codes >= _FEWEST_CODES:
            codes = rows[with_confirmed(normal, task.confirmed, n_codes)]
            priors.append(scorer.measure_prior(partial(_numbers, codes), len(codes)))
    return (
        DirectionPenalty.joined(penalties) if penalties else None,
        AggregatePrior.joined(priors) if priors else None,
    )


def training_scores(detector: Detector, task: Prepared) -> NDArray[np.float64]:
    """Return anomaly scores of the training rows, from members that did not see them."""
    if task.folds is None:
        return -detector._scorer.score(detector._reader(task.X), len(task.X))
    rows, scores = task.rows.numpy(), np.empty(len(task.X))
    for fold, scorer in [(NO_FOLD, detector._scorer), *enumerate(detector._member_scorers())]:
        own = rows[task.folds == fold]
        if len(own):
            scores[task.folds == fold] = -scorer.score(partial(_numbers, own), len(own))
    return scores


def _numbers(rows: NDArray[Any], chunk: slice) -> NDArray[Any]:
    """Read some rows as networks take them."""
    return as_numbers(rows[chunk])
