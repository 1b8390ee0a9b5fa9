"""What all models have in common: one protocol, a fit, decisions, a folder."""

from aloof.modelling.evaluation import Evaluation, evaluate_scores
from aloof.modelling.fitting import check_choices, fit_detector, hold_out
from aloof.modelling.making import how_to_make, made_by
from aloof.modelling.model import Model
from aloof.modelling.results import MostAnomalous, Progress, ScoredFile

__all__ = [
    "Evaluation",
    "Model",
    "MostAnomalous",
    "Progress",
    "ScoredFile",
    "check_choices",
    "evaluate_scores",
    "fit_detector",
    "hold_out",
    "how_to_make",
    "made_by",
]
