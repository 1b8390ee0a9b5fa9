"""The VAE methods of the paper, as a learner.

`train` takes an array of rows, problems that index it, an architecture and a schedule, and
returns a trained ensemble for each problem. The estimators are a thin layer over it; anything
that trains a VAE with negative examples can use it directly.
"""

from aloof.vae.config import LearningRateSchedule, TrainingConfig
from aloof.vae.ensemble import LOG_VAR_LIMIT, Ensemble
from aloof.vae.fitting import FitResult, count_epochs, train
from aloof.vae.learner import VAELearner
from aloof.vae.loss import log_likelihood
from aloof.vae.methods import METHODS, Method, MethodRecord
from aloof.vae.objective import LIKELIHOODS, Likelihood, Objective
from aloof.vae.problem import VAEProblem
from aloof.vae.terms import Anomalies

__all__ = [
    "LIKELIHOODS",
    "LOG_VAR_LIMIT",
    "METHODS",
    "Anomalies",
    "Ensemble",
    "FitResult",
    "LearningRateSchedule",
    "Likelihood",
    "Method",
    "MethodRecord",
    "Objective",
    "TrainingConfig",
    "VAELearner",
    "VAEProblem",
    "count_epochs",
    "log_likelihood",
    "train",
]
