"""A model whose evidence and posterior are known: z ~ N(m, I), x = W z + b + noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from aloof.objectives import gaussian


@dataclass(frozen=True)
class LinearGaussian:
    weight: Tensor  # (d, k); orthogonal columns make the posterior diagonal
    bias: Tensor  # (d,)
    log_var: float
    prior_mean: float

    @classmethod
    def draw(cls, seed: int, d: int = 4, k: int = 2, prior_mean: float = 0.0) -> LinearGaussian:
        g = torch.Generator().manual_seed(seed)
        basis, _ = torch.linalg.qr(torch.randn(d, k, generator=g, dtype=torch.float64))
        scales = 0.5 + torch.rand(k, generator=g, dtype=torch.float64)
        bias = torch.randn(d, generator=g, dtype=torch.float64)
        return cls(basis * scales, bias, -0.7, prior_mean)

    def log_evidence(self, x: Tensor) -> Tensor:
        d, k = self.weight.shape
        noise = torch.exp(torch.tensor(self.log_var, dtype=torch.float64))
        mean = self.weight @ torch.full((k,), self.prior_mean, dtype=torch.float64) + self.bias
        covariance = self.weight @ self.weight.T + noise * torch.eye(d, dtype=torch.float64)
        return torch.distributions.MultivariateNormal(mean, covariance).log_prob(x)

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Exact mean and log-variance; diagonal, because the columns are orthogonal."""
        noise = torch.exp(torch.tensor(self.log_var, dtype=torch.float64))
        precision = 1.0 + self.weight.square().sum(0) / noise
        mean = (self.prior_mean + (x - self.bias) @ self.weight / noise) / precision
        return mean, -precision.log().expand_as(mean)

    def log_likelihood(self, x: Tensor, z: Tensor) -> Tensor:
        return gaussian(x, z @ self.weight.T + self.bias, self.log_var, reduction="sum")

    def expected_log_likelihood(self, x: Tensor, mean: Tensor, log_var: Tensor) -> Tensor:
        """E_q[log p(x|z)], in closed form."""
        noise = torch.exp(torch.tensor(self.log_var, dtype=torch.float64))
        spread = (self.weight.square().sum(0) * log_var.exp()).sum(-1) / noise
        return self.log_likelihood(x, mean) - 0.5 * spread
