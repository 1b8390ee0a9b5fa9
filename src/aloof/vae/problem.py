"""A problem, and what its members minimise."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from aloof.problem import Problem
from aloof.training import Task
from aloof.vae.objective import Objective

__all__ = ["VAEProblem"]


@dataclass(frozen=True, eq=False, kw_only=True)
class VAEProblem(Problem):
    """A problem for VAEs, to which rows labelled as normal are as good as unlabelled ones.

    Attributes
    ----------
    objective
        The method and its numbers.
    rows_per_epoch
        How many normal rows an epoch draws; None: every one once. Problems of different sizes
        are one stack if they draw equally many.
    """

    objective: Objective = field(default_factory=Objective)
    rows_per_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.known is not None:
            raise ValueError("a VAE does not use known; leave it out.")

    @property
    def uses_anomalies(self) -> bool:
        """Whether any step of the training sees a labelled anomaly."""
        return self.objective.uses_labels and len(self.anomaly) > 0

    def shifted(self, start: int) -> VAEProblem:
        """Return the problem for the same rows, `start` further down in a longer array."""
        return replace(
            self,
            normal=self.normal + start,
            anomaly=self.anomaly + start,
            validation_normal=self.validation_normal + start,
            validation_anomaly=self.validation_anomaly + start,
        )

    def task(self) -> Task:
        """Return it as a learner sees it: labelled anomalies join batches of normal rows."""
        return Task(
            rows=self.normal,
            seeds=self.seeds,
            extra=self.anomaly if self.uses_anomalies else self.anomaly[:0],
            held_out=self.validation_normal,
            held_out_extra=self.validation_anomaly,
            rows_per_epoch=self.rows_per_epoch,
            setting=self.objective,
            kind=self.objective.kind,
        )
