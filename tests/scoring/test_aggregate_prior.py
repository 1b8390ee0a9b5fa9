"""The divergence from a mixture of reference codes."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal
from torch.distributions import kl_divergence as exact_divergence

from aloof import VAE
from aloof.scoring import AggregatePrior


def draw(*shape: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def gaussian(mean: torch.Tensor, log_var: torch.Tensor) -> Independent:
    return Independent(Normal(mean, (0.5 * log_var).exp()), 1)


def test_one_reference_is_a_gaussian() -> None:
    mean, log_var = draw(2, 5, 3, seed=0), draw(2, 5, 3, seed=1)
    prior = AggregatePrior(draw(2, 1, 3, seed=2), draw(2, 1, 3, seed=3))
    expected = exact_divergence(gaussian(mean, log_var), gaussian(prior.mean, prior.log_var))
    torch.testing.assert_close(prior.divergence(mean, log_var), expected)


def test_it_is_an_upper_bound_of_the_divergence_from_the_mixture() -> None:
    mean, log_var = draw(1, 6, 2, seed=4), draw(1, 6, 2, seed=5)
    prior = AggregatePrior(draw(1, 8, 2, seed=6), 0.3 * draw(1, 8, 2, seed=7))
    mixture = MixtureSameFamily(
        Categorical(torch.ones(8, dtype=torch.float64)),
        gaussian(prior.mean[0], prior.log_var[0]),
    )
    z = mean[0] + (0.5 * log_var[0]).exp() * draw(20_000, 6, 2, seed=8)
    sampled = (gaussian(mean[0], log_var[0]).log_prob(z) - mixture.log_prob(z)).mean(0)
    bound = prior.divergence(mean, log_var)[0]
    assert (bound >= sampled - 0.02).all()
    assert (bound - sampled).max() < log(8.0)


def test_a_reference_costs_no_more_than_the_share_it_has() -> None:
    """Far from all others, a code that is one of n has a divergence of log n."""
    mean = 1000.0 * torch.arange(4, dtype=torch.float64).view(1, 4, 1).expand(1, 4, 3)
    prior = AggregatePrior(mean, torch.zeros(1, 4, 3, dtype=torch.float64))
    divergence = prior.divergence(mean, prior.log_var)
    torch.testing.assert_close(divergence, torch.full((1, 4), log(4.0), dtype=torch.float64))


def groups(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice([-3.0, 3.0], (n, 1)) * np.ones(4) + 0.3 * rng.normal(size=(n, 4))


def test_what_falls_between_groups_of_normal_rows_is_found() -> None:
    X, test = groups(400, 0), groups(200, 1)
    between = 0.3 * np.random.default_rng(2).normal(size=(200, 4))
    truth = np.repeat([0, 1], 200)
    auroc = {}
    for prior in (0, 256):
        model = VAE(n_members=2, max_epochs=60, aggregate_prior=prior, random_state=0).fit(X)
        auroc[prior] = roc_auc_score(truth, model.anomaly_score(np.r_[test, between]))
    assert auroc[256] > 0.99
    assert auroc[256] > auroc[0]


@pytest.mark.parametrize(("n", "expected"), [(400, 100), (4000, 256), (60, None)])
def test_at_most_a_quarter_of_the_rows_make_up_the_prior(n: int, expected: int | None) -> None:
    model = VAE(n_members=1, max_epochs=1, random_state=0).fit(groups(n, 0))
    found = model._aggregate_prior
    assert (None if found is None else found.mean.shape[1]) == expected


def test_the_threshold_holds_for_new_rows() -> None:
    """AggregatePrior score well themselves; they must not make others look like anomalies."""
    shares = []
    for seed in range(3):
        model = VAE(n_members=2, max_epochs=30, contamination=0.1, random_state=seed)
        model.fit(groups(400, 10 + seed))
        shares.append((model.predict(groups(2000, 20 + seed)) == -1).mean())
    assert 0.05 < np.mean(shares) < 0.2
