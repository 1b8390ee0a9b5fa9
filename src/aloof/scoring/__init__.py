"""Scores of trained members: deterministic, the same for a row in any company.

The scorer, its fast way for `Perceptrons`, what codes are compared with (`AggregatePrior`,
`DirectionPenalty`), and what each feature contributes to a score (`explain`).
"""

from aloof.scoring.aggregate_prior import AggregatePrior
from aloof.scoring.attribution import Explanation, decoded, explain, explain_errors, reconstruct
from aloof.scoring.chunks import RowReader, in_chunks, over_rows
from aloof.scoring.direction_penalty import DirectionPenalty
from aloof.scoring.distilling import Distilled, distil
from aloof.scoring.errors import feature_errors
from aloof.scoring.perceptrons import Perceptrons
from aloof.scoring.scorer import Scorer, ScoreTerms

__all__ = [
    "AggregatePrior",
    "DirectionPenalty",
    "Distilled",
    "Explanation",
    "Perceptrons",
    "RowReader",
    "ScoreTerms",
    "Scorer",
    "decoded",
    "distil",
    "explain",
    "explain_errors",
    "feature_errors",
    "in_chunks",
    "over_rows",
    "reconstruct",
]
