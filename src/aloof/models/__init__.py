"""What all models have in common: one protocol, a fit, decisions, a folder."""

from aloof.models.base import Model
from aloof.models.detecting import check_choices, distil_detector, fit_detector, hold_out
from aloof.models.evaluation import Evaluation, evaluate_scores
from aloof.models.making import how_to_make, made_by
from aloof.models.results import Drift, MostAnomalous, Progress, ScoredFile

__all__ = [
    "Drift",
    "Evaluation",
    "Model",
    "MostAnomalous",
    "Progress",
    "ScoredFile",
    "check_choices",
    "distil_detector",
    "evaluate_scores",
    "fit_detector",
    "hold_out",
    "how_to_make",
    "made_by",
]
