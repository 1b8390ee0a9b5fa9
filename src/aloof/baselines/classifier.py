"""A classifier: labelled anomalies against everything else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from aloof.baselines.contract import LabelUse
from aloof.baselines.deep import DeepBaseline
from aloof.baselines.members import LearningMembers, mixed_task
from aloof.baselines.networks import Networks
from aloof.labels import ANOMALY
from aloof.problem import Problem
from aloof.training import Setup, Task

__all__ = ["Classifier", "ClassifierMembers", "LogitMembers"]


class LogitMembers(LearningMembers):
    """Networks with one output, which is the score."""

    @classmethod
    def build(cls, networks: Networks, setup: Setup, *, normalise: bool = True) -> Self:
        """Initialise members."""
        (made,) = setup.build(lambda: [networks.classifier(normalise=normalise)])
        return cls({"encoder": setup.stack(made, setup.example)})

    def logit(self, x: Tensor, *, training: bool) -> Tensor:
        """Return the output for each row, ``(members, n)``."""
        logit: Tensor = self.stacks["encoder"](x, training=training)
        return logit.squeeze(-1)

    def score(self, x: Tensor) -> Tensor:
        """Return the output."""
        return self.logit(x, training=False)


class ClassifierMembers(LogitMembers):
    """Labelled anomalies against all other rows."""

    def row_loss(self, x: Tensor, labels: Tensor, noise: Tensor) -> Tensor:
        """Return the cross-entropy."""
        logit = self.logit(x, training=True)
        target = (labels == ANOMALY).to(logit.dtype)
        return binary_cross_entropy_with_logits(logit, target, reduction="none")


@dataclass(kw_only=True, repr=False, eq=False)
class Classifier(DeepBaseline):
    """A network that tells labelled anomalies from all other rows; the score is its logit.

    Unlabelled rows are taken as normal.
    """

    label_use: ClassVar[LabelUse] = "required"

    def _task(self, problem: Problem) -> Task:
        return mixed_task(problem)

    def _members(self, networks: Networks, setup: Setup) -> ClassifierMembers:
        return ClassifierMembers.build(networks, setup)
