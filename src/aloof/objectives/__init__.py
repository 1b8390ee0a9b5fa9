"""The mathematics: tensors in, one value per sample out.

Nothing here knows a network, an optimiser or a random generator. Noise is an argument,
features lie on the last axis, and any leading axes (members, samples, rows) broadcast.
Functions named after a bound return the *bound*; the caller negates and reduces.
"""

from aloof.objectives.cubo import cubo, exp_cubo
from aloof.objectives.dirichlet import dirichlet_log_density, fit_dirichlet
from aloof.objectives.dual_prior import dual_prior_elbo
from aloof.objectives.elbo import elbo
from aloof.objectives.gaussian import (
    gaussian_kl,
    gaussian_log_density,
    reparameterize,
)
from aloof.objectives.likelihood import (
    Reduction,
    bernoulli,
    categorical,
    gaussian,
    squared_error,
)
from aloof.objectives.repulsion import Repulsion, repulsion

__all__ = [
    "Reduction",
    "Repulsion",
    "bernoulli",
    "categorical",
    "cubo",
    "dirichlet_log_density",
    "dual_prior_elbo",
    "elbo",
    "exp_cubo",
    "fit_dirichlet",
    "gaussian",
    "gaussian_kl",
    "gaussian_log_density",
    "reparameterize",
    "repulsion",
    "squared_error",
]
