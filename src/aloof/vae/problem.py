"""A problem, and what its members minimise."""

from __future__ import annotations

from dataclasses import dataclass, field

from aloof.problem import Problem
from aloof.training import Task
from aloof.vae.objective import Objective

__all__ = ["VAEProblem"]


@dataclass(frozen=True, eq=False, kw_only=True)
class VAEProblem(Problem):
    """A problem for VAEs.

    Attributes
    ----------
    objective
        The method and its numbers.
    """

    objective: Objective = field(default_factory=Objective)

    @property
    def uses_anomalies(self) -> bool:
        """Whether any step of the training sees a labelled anomaly."""
        return self.objective.uses_labels and len(self.anomaly) > 0

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
