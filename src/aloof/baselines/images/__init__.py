"""The systems the paper compares with, on images.

Deep ones train all members of all problems at once, with `fit_image_baselines`; shallow ones
learn from raw pixels (`raw_scores`) or from the codes of an autoencoder (`hybrid_scores`).
"""

from aloof.baselines.images.fitting import (
    IMAGE_METHODS,
    ImageMethod,
    fit_image_baselines,
    pretrain,
)
from aloof.baselines.images.pretraining import Pretrained
from aloof.baselines.images.problem import ImageProblem, ImageSchedule
from aloof.baselines.images.results import FittedImages
from aloof.baselines.images.shallow import (
    SHALLOW_METHODS,
    ShallowMethod,
    hybrid_scores,
    raw_scores,
)

__all__ = [
    "IMAGE_METHODS",
    "SHALLOW_METHODS",
    "FittedImages",
    "ImageMethod",
    "ImageProblem",
    "ImageSchedule",
    "Pretrained",
    "ShallowMethod",
    "fit_image_baselines",
    "hybrid_scores",
    "pretrain",
    "raw_scores",
]
