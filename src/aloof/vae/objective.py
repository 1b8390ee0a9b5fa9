"""Which loss is minimised: the method and its numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from aloof.objectives import Reduction, Repulsion
from aloof.vae.methods import METHODS, Method

__all__ = ["LIKELIHOODS", "Likelihood", "Objective"]

Likelihood = Literal["squared-error", "gaussian", "bernoulli", "categorical"]

LIKELIHOODS: tuple[Likelihood, ...] = get_args(Likelihood)


@dataclass(frozen=True)
class Objective:
    """A method of the paper with its hyper-parameters.

    Problems of one stack may differ in every *number* here (each member gets its own), so
    a grid of settings trains as one computation.

    Attributes
    ----------
    method
        ``"vae"`` ignores labelled anomalies, ``"mml"`` lowers their likelihood through the
        CUBO, ``"dp"`` gives them a prior of their own, ``"mml-dp"`` does both.
    beta_kl
        Weight of the KL divergence.
    alpha
        Where the anomalies' prior lies, on every latent axis (``dp``).
    gamma
        Weight of the anomalous rows' loss.
    jitter
        How far anomalous rows are moved in every batch, in standard deviations of the normal
        rows, so that each of them stands for its neighbourhood.
    beta_cubo
        Weight of log p(z) - log q(z|x) in the CUBO (``mml``).
    repulsion, margin
        What is made of the CUBO; see `aloof.objectives.repulsion` (``mml``).
    n_samples
        Monte-Carlo samples of the CUBO (``mml``).
    likelihood, reduction
        What the decoder's output means, and how features are reduced. ``"categorical"`` is
        for sequences of integer classes, filled up with zeros, which do not count.
    """

    method: Method = "dp"
    beta_kl: float = 0.05
    alpha: float = 5.0
    gamma: float = 1.0
    jitter: float = 0.0
    beta_cubo: float = 0.05
    repulsion: Repulsion = "exp"
    margin: float = 0.0
    n_samples: int = 1
    likelihood: Likelihood = "squared-error"
    reduction: Reduction = "mean"

    @property
    def attracts(self) -> bool:
        """Whether anomalies are drawn to a prior of their own."""
        return METHODS[self.method].attracts

    @property
    def uses_labels(self) -> bool:
        """Whether labelled anomalies are more than rows to leave out."""
        return METHODS[self.method].uses_labels

    @property
    def kind(self) -> tuple[object, ...]:
        """All that is not a number: equal for the problems of one stack."""
        return (
            self.method,
            self.repulsion,
            self.n_samples,
            self.likelihood,
            self.reduction,
        )

    @property
    def numbers(self) -> dict[str, float]:
        """All that may differ between the members of one stack."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.type == "float"
        }
