"""What the deep baselines learn from, and for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from aloof.baselines.fitting import Schedule
from aloof.labels import ANOMALY, UNLABELLED
from aloof.training import Precision

__all__ = ["ImageProblem", "ImageSchedule", "seeds_of"]

_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ImageProblem:
    """Rows of an array that all problems of a run share.

    Attributes
    ----------
    normal
        Indices of the rows taken as normal.
    seeds
        One for each member.
    anomaly
        Indices of the labelled anomalies; may be empty.
    """

    normal: NDArray[np.int64]
    seeds: Sequence[int]
    anomaly: NDArray[np.int64] = field(default_factory=_NO_ROWS.copy)

    def __post_init__(self) -> None:
        if len(self.normal) < 2 or not self.seeds:
            raise ValueError(
                "An image problem needs at least two normal rows and one seed; got "
                f"{len(self.normal)} and {len(self.seeds)}."
            )

    @property
    def rows(self) -> NDArray[np.int64]:
        """Return all rows, normal ones first."""
        return np.concatenate([self.normal, self.anomaly]).astype(np.int64)

    @property
    def labels(self) -> NDArray[np.int64]:
        """Return their labels; rows taken as normal are unlabelled."""
        return np.repeat([UNLABELLED, ANOMALY], [len(self.normal), len(self.anomaly)])

    def evened(self) -> ImageProblem:
        """Return the problem with its anomalies repeated until there is one a normal row."""
        return replace(self, anomaly=np.resize(self.anomaly, len(self.normal)))

    def shape(self, batch_size: int) -> tuple[int, int]:
        """Return steps of an epoch and rows of a batch; those of one stack are equal."""
        n_rows = len(self.normal) + len(self.anomaly)
        n_steps = ceil(n_rows / batch_size)
        return n_steps, ceil(n_rows / n_steps)


@dataclass(frozen=True, kw_only=True)
class ImageSchedule:
    """How long and how fast; the numbers that Ruff et al. published.

    Every learning rate is a tenth of it after two thirds of the passes.

    Attributes
    ----------
    max_epochs, learning_rate, weight_decay
        Of what a method itself minimises.
    pretrain_epochs, pretrain_learning_rate, pretrain_weight_decay
        Of autoencoders: those that hyperspheres start from, the CAE, and the VAE of SS-DGM.
        0 epochs: start from random weights. The paper's "ill-trained" autoencoders have 10.
    batch_size
        Most rows in a batch. Batches of a pass are of equal size, and no row is dropped.
    precision
        ``"bfloat16"`` trains the networks in autocast, all but the last layer of encoders.
    """

    max_epochs: int = 150
    learning_rate: float = 1e-4
    weight_decay: float = 5e-7
    pretrain_epochs: int = 150
    pretrain_learning_rate: float = 1e-4
    pretrain_weight_decay: float = 5e-4
    batch_size: int = 128
    precision: Precision = "float32"

    @property
    def pretraining(self) -> Schedule:
        """Return the schedule of autoencoders."""
        return Schedule(
            self.pretrain_epochs, self.pretrain_learning_rate, self.pretrain_weight_decay
        )

    @property
    def training(self) -> Schedule:
        """Return the schedule of everything else."""
        return Schedule(self.max_epochs, self.learning_rate, self.weight_decay)


def seeds_of(problems: Sequence[ImageProblem]) -> list[int]:
    """Return the seeds of all members, in the order of the problems."""
    return [seed for problem in problems for seed in problem.seeds]
