r"""What normal codes look like: the prior in the score, made of codes of training rows.

Networks are trained against the prior N(0, I), which has its mode in the middle. Codes of
normal rows often lie in several groups around it, and a row that falls between them is nearer
to that mode than they are. The prior with the best bound is the aggregate of the codes' own
posteriors [1]_; a few hundred of them stand in for all. The divergence from such a mixture is
bounded from above [2]_:

.. math:: KL(q \| \tfrac 1 n \sum_i q_i) \le -\log \tfrac 1 n \sum_i e^{-KL(q \| q_i)} .

References
----------
.. [1] Tomczak & Welling, "VAE with a VampPrior", AISTATS 2018.
.. [2] Hershey & Olsen, "Approximating the Kullback Leibler divergence between Gaussian mixture
   models", ICASSP 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

__all__ = ["AggregatePrior"]


@dataclass(frozen=True)
class AggregatePrior:
    """The posteriors of some normal training rows, for each member.

    Attributes
    ----------
    mean, log_var
        Of their posteriors, ``(members, n, latent_dim)``.
    """

    mean: Tensor
    log_var: Tensor

    @classmethod
    def joined(cls, parts: Sequence[AggregatePrior]) -> AggregatePrior:
        """Return one prior for the members of several."""
        return cls(
            torch.cat([part.mean for part in parts]),
            torch.cat([part.log_var for part in parts]),
        )

    def select(self, members: Sequence[int] | slice) -> AggregatePrior:
        """Return the prior of some members."""
        return AggregatePrior(self.mean[members], self.log_var[members])

    def to(self, device: torch.device, dtype: torch.dtype) -> AggregatePrior:
        """Return them where and as codes are computed."""
        return AggregatePrior(self.mean.to(device, dtype), self.log_var.to(device, dtype))

    def divergence(self, mean: Tensor, log_var: Tensor) -> Tensor:
        """Return the bound on the divergence of codes from the mixture, ``(members, rows)``."""
        precision = (-self.log_var).exp()
        scaled = self.mean * precision
        constant = (self.mean * scaled + self.log_var - 1.0).sum(-1).unsqueeze(-2)
        twice = torch.baddbmm(
            constant - log_var.sum(-1, keepdim=True),
            log_var.exp() + mean.square(),
            precision.mT,
        )
        each = 0.5 * torch.baddbmm(twice, mean, scaled.mT, alpha=-2.0)
        return log(self.mean.shape[-2]) - torch.logsumexp(-each, -1)
