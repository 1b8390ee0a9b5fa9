"""Training: one loop, members stacked.

`train` takes an array of rows, problems that index it, an architecture and a schedule, and
returns a trained ensemble for each problem. The estimators are a thin layer over it;
anything that trains a VAE with negative examples can use it directly.
"""

from aloof.training.checkpoint import discard_checkpoints
from aloof.training.config import LearningRateSchedule, Precision, TrainingConfig
from aloof.training.device import resolve_device
from aloof.training.ensemble import Ensemble
from aloof.training.loop import FitResult, count_epochs, train
from aloof.training.loss import log_likelihood
from aloof.training.objective import (
    LIKELIHOODS,
    METHODS,
    Likelihood,
    Method,
    Objective,
)
from aloof.training.problem import Problem
from aloof.training.progress import EpochReport, ProgressCallback, progress_bar
from aloof.training.seeds import Stream, derive
from aloof.training.stack import Engine, Stack

__all__ = [
    "LIKELIHOODS",
    "METHODS",
    "Engine",
    "Ensemble",
    "EpochReport",
    "FitResult",
    "LearningRateSchedule",
    "Likelihood",
    "Method",
    "Objective",
    "Precision",
    "Problem",
    "ProgressCallback",
    "Stack",
    "Stream",
    "TrainingConfig",
    "count_epochs",
    "derive",
    "discard_checkpoints",
    "log_likelihood",
    "progress_bar",
    "resolve_device",
    "train",
]
