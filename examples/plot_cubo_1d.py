"""
The CUBO loss of a one-dimensional Gaussian
===========================================

What does the chi upper bound ask of an anomaly? With the decoder held fixed, the loss
exp(2 CUBO_2) depends only on the posterior q(z|x) = N(mu, sigma^2). The picture shows the
median of its 8-sample Monte-Carlo estimate, which is what a training step sees, for a prior
N(0, 1) and a constant reconstruction error. (The exact expectation is infinite for
sigma^2 <= 1/2: a narrow q hardly ever samples the tails that carry it.) The loss is lowest
away from the prior and for small variances: minimising it pushes an anomaly's code out of
the region where normal rows live.

Run it with ``python examples/plot_cubo_1d.py``; it writes ``cubo_1d.png``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor

from aloof.objectives import exp_cubo, reparameterize

MEANS = torch.linspace(-4, 4, 201, dtype=torch.float64)
SIGMAS = torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9, 1.0], dtype=torch.float64)


def cubo_loss(mean: Tensor, sigma: Tensor, n_samples: int = 8, n_draws: int = 1001) -> Tensor:
    """Return the median estimate of exp(2 CUBO_2) for every mean and standard deviation."""
    generator = torch.Generator().manual_seed(0)
    mu, log_var = torch.broadcast_tensors(mean[None, :], 2 * sigma[:, None].log())
    mu, log_var = mu.unsqueeze(-1), log_var.unsqueeze(-1)
    half = torch.randn(
        n_samples // 2, n_draws, 1, 1, 1, generator=generator, dtype=torch.float64
    )
    noise = torch.cat([half, -half])  # antithetic, for a symmetric picture
    z = reparameterize(mu, log_var, noise)
    reconstruction = torch.zeros(z.shape[:-1], dtype=torch.float64)  # L_R is fixed
    return exp_cubo(reconstruction, z, mu, log_var).median(0).values


def draw(path: Path) -> None:
    """Write the picture."""
    loss = cubo_loss(MEANS, SIGMAS)
    figure, axis = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.85, len(SIGMAS)))
    for sigma, curve, colour in zip(SIGMAS, loss, colours, strict=True):
        axis.plot(MEANS, curve, color=colour, lw=2, label=rf"$\sigma$ = {float(sigma):.1f}")
    axis.set_xlabel(r"posterior mean $\mu$")
    axis.set_ylabel(r"$\exp(2\,CUBO_2)$")
    axis.set_title("What the bound asks of an anomaly's code")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw the CUBO loss of a 1-D Gaussian.")
    parser.add_argument("--out", type=Path, default=Path("cubo_1d.png"))
    target = parser.parse_args().out
    draw(target)
    print(f"wrote {target}")
