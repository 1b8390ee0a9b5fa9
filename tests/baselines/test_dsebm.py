"""DSEBM: a step down the slope of the energy, and what its training makes of the slope."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from aloof.baselines import DSEBM
from aloof.baselines.dsebm import PUBLISHED, EnergyNetwork
from aloof.training.seeds import generator, seeded

CPU = torch.device("cpu")
IMAGES = {"filters": (8, 16), "hidden": (), "latent_dim": 32, "kernel": 3}
NETWORKS = {
    "numbers": ((5,), {"widths": (7, 6)}),
    "images": ((2, 9, 8), {"widths": (6, 4), "filters": (3, 5), "kernel": 3}),
    "even filters": ((1, 8, 11), {"widths": (4,), "filters": (3, 5), "kernel": 4}),
    "no normalisation": (
        (2, 7, 6),
        {"widths": (4,), "filters": (3,), "slope": 0.0, "normalise": False},
    ),
}


def made(name: str) -> tuple[EnergyNetwork, torch.Tensor]:
    shape, options = NETWORKS[name]
    with seeded(3, CPU):
        network = EnergyNetwork(shape, **options).double()
        torch.nn.init.normal_(network.centre)
    return network, torch.randn(6, *shape, generator=generator(1, CPU), dtype=torch.float64)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_way_back_is_a_step_down_the_slope(name, training):
    """By differences of energies; in training a row changes those of its whole batch."""
    network, x = made(name)
    network.train(training)
    found = network(x)[1]
    towards = torch.randn(x.shape, generator=generator(2, CPU), dtype=torch.float64)
    step = 1e-5
    ahead, behind = (network(x + sign * step * towards)[0].sum() for sign in (1, -1))
    slope = (ahead - behind) / (2 * step)
    torch.testing.assert_close(((x - found) * towards).sum(), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_weight_learns_from_the_way_back(name):
    """The gradient of the reconstruction is the second one of the energy."""
    network, x = made(name)
    parameters = list(network.parameters())
    found = torch.autograd.grad(network(x)[1].square().sum(), parameters, allow_unused=True)
    x = x.requires_grad_()
    (slope,) = torch.autograd.grad(network(x)[0].sum(), x, create_graph=True)
    expected = torch.autograd.grad((x - slope).square().sum(), parameters, allow_unused=True)
    for one, other in zip(found, expected, strict=True):
        one, other = (torch.zeros(()) if part is None else part for part in (one, other))
        torch.testing.assert_close(one, other.expand_as(one).to(one), rtol=1e-8, atol=1e-9)


def test_running_statistics_are_those_of_batch_normalisation():
    """And the energy is that of torch's own layers."""
    network, x = made("images")
    twin = torch.nn.Sequential()
    for stage in network.stages:
        own = stage.convolution
        with torch.random.fork_rng():
            plain = torch.nn.Conv2d(own.in_channels, own.out_channels, 3, stride=2, padding=1)
        plain.load_state_dict(own.state_dict())
        twin.extend([plain, torch.nn.BatchNorm2d(plain.out_channels), torch.nn.LeakyReLU(0.1)])
    twin.append(torch.nn.Flatten())
    for layer in network.dense:
        twin.extend([layer.linear, torch.nn.Softplus()])
    twin.double()
    for training in (True, False):
        network.train(training)
        twin.train(training)
        half = (x - network.centre).square().flatten(1).sum(1) / 2
        torch.testing.assert_close(network(x)[0], half - twin(x).sum(1))
    norms = [layer for layer in twin if isinstance(layer, torch.nn.BatchNorm2d)]
    for stage, norm in zip(network.stages, norms, strict=True):
        torch.testing.assert_close(stage.norm.running_mean, norm.running_mean)
        torch.testing.assert_close(stage.norm.running_var, norm.running_var)


def test_it_learns_the_log_density_of_noisy_rows():
    """Of a Gaussian with noise: E / noise^2 is half the Mahalanobis distance and a constant."""
    rng = np.random.default_rng(0)
    spread, noise = np.array([1.0, 0.3]), 0.5
    model = DSEBM(
        hidden=(32, 32),
        noise_scale=noise,
        max_epochs=60,
        learning_rate=3e-3,
        n_members=2,
        device="cpu",
        random_state=0,
    ).fit(spread * rng.normal(size=(1000, 2)))
    rows = np.sqrt(spread**2 + noise**2) * rng.normal(size=(200, 2))
    expected = (rows**2 / (spread**2 + noise**2)).sum(1) / 2
    found = model.anomaly_score(rows) / noise**2
    slope, _ = np.polyfit(expected, found, 1)
    assert np.corrcoef(expected, found)[0, 1] > 0.97
    assert slope == pytest.approx(1.0, abs=0.15)


def test_the_criteria_are_the_energy_and_the_length_of_its_slope(visible, visible_images):
    for on in (visible, visible_images):
        options = {"images": IMAGES if on.X.ndim == 4 else None, "max_epochs": 2}
        by_energy, by_slope = (
            DSEBM(criterion=criterion, device="cpu", random_state=0, **options).fit(on.X)
            for criterion in ("energy", "reconstruction")
        )
        network = by_energy.fitted_.members.stacks["energy"]
        x = torch.from_numpy(on.X_test / 127.5 - 1 if on.X.ndim == 4 else on.X_test)
        x = x.to(network.parameters["centre"].dtype)[None].requires_grad_()
        energy = network(x)[0]
        (slope,) = torch.autograd.grad(energy.sum(), x)
        np.testing.assert_allclose(
            by_energy.anomaly_score(on.X_test), energy[0].detach().numpy(), rtol=1e-3, atol=1e-4
        )
        squared = slope[0].square().flatten(1).mean(1).numpy()
        np.testing.assert_allclose(by_slope.anomaly_score(on.X_test), squared, rtol=1e-3)


def test_images_of_another_kind_are_found(fit_problems, visible_images):
    (fitted,) = fit_problems(
        "dsebm",
        visible_images,
        [visible_images.problem((0, 1))],
        images=IMAGES,
        max_epochs=30,
        learning_rate=5e-3,
    )
    for scores in fitted.score(visible_images.X_test):
        assert visible_images.auroc(scores) > 0.9


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_published_networks_end_with_images_of_four_pixels_a_side(dataset):
    side = 64 if dataset == "cats-vs-dogs" else 32
    with torch.random.fork_rng():
        network = DSEBM(**PUBLISHED[dataset])._network((3, side, side))
    filters = PUBLISHED[dataset]["images"]["filters"]
    (experts,) = network.dense
    assert (experts.linear.in_features, experts.linear.out_features) == (16 * filters[-1], 256)
