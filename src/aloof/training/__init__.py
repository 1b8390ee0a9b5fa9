"""Training: one loop, many learners.

A `Run` takes rows, tasks that index them, a factory of learners and a schedule, and returns
trained members for each task. It knows rows, members, batches, optimiser, schedule, precision,
replay, checkpoints and progress; what is learned is the `Learner`'s. The VAE methods are one
(`aloof.vae`), the deep systems they are compared with are others (`aloof.baselines`).
"""

from aloof.training.batches import Batch
from aloof.training.checkpoint import discard_checkpoints
from aloof.training.device import resolve_device
from aloof.training.learner import Learner, LearnerFactory, Phase, Setup
from aloof.training.progress import EpochReport, ProgressCallback, progress_bar
from aloof.training.schedule import Precision, Schedule
from aloof.training.seeds import Stream, derive
from aloof.training.stack import Engine, Stack
from aloof.training.task import Task
from aloof.training.trainer import Run, Trained, joined_history, stacks_of

__all__ = [
    "Batch",
    "Engine",
    "EpochReport",
    "Learner",
    "LearnerFactory",
    "Phase",
    "Precision",
    "ProgressCallback",
    "Run",
    "Schedule",
    "Setup",
    "Stack",
    "Stream",
    "Task",
    "Trained",
    "derive",
    "discard_checkpoints",
    "joined_history",
    "progress_bar",
    "resolve_device",
    "stacks_of",
]
