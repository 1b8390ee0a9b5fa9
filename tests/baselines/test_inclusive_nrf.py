"""Inclusive-NRF: samples climb the potential, and each network learns from its own part."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from aloof.baselines import InclusiveNRF, inclusive_nrf
from aloof.baselines.inclusive_nrf import PUBLISHED, Potential, RandomFieldMembers, Sampling
from aloof.baselines.networks import networks_for
from aloof.exceptions import DivergenceError
from aloof.training.seeds import generator, seeded

CPU = torch.device("cpu")
POTENTIALS = {
    "numbers": ((6,), {"widths": (8, 5)}),
    "pixels": ((2, 4, 3), {"widths": (8,)}),
    "images": ((2, 9, 8), {"widths": (5,), "filters": (4, 16), "n_convolutions": 2}),
    "even filters": ((1, 8, 8), {"widths": (), "filters": (16,), "kernel": 4}),
}


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed, CPU), dtype=torch.float64)


def potential(name: str) -> tuple[Potential, torch.Tensor]:
    shape, options = POTENTIALS[name]
    with seeded(3, CPU):
        return Potential(shape, **options).double(), drawn(7, *shape)


@pytest.fixture
def members(fit_problems, visible, visible_images):
    """Barely trained members in float64, by what they learned from, and some rows."""

    def build(name: str, **options) -> tuple[RandomFieldMembers, torch.Tensor]:
        on = visible if name == "numbers" else visible_images
        exact = on._replace(X=on.X / 255 if on.X.dtype == np.uint8 else on.X)
        (fitted,) = fit_problems("inclusive-nrf", exact, [on.problem((0, 1))], **options)
        x = torch.from_numpy(exact.X[:20])
        own = fitted.members
        for stack in own.stacks.values():
            for value in stack.parameters.values():
                value.requires_grad_()
        return own, x.expand(2, *x.shape)

    return build


@pytest.mark.parametrize("name", POTENTIALS)
def test_the_length_of_weights_does_not_matter_but_that_of_the_last_scale_does(name):
    network, x = potential(name)
    before = network(x)
    assert before.shape == (7,)
    with torch.no_grad():
        for key, value in network.named_parameters():
            if key.endswith("weight"):
                value.mul_(50.0)
        torch.testing.assert_close(network(x), before, rtol=1e-3, atol=1e-4)
        network.scale.mul_(2.0)
        torch.testing.assert_close(network(x), 2 * before, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["images", "even filters"])
def test_the_kernels_of_a_gpu_compute_the_same_potential(monkeypatch, name):
    """And its slope; Triton's interpreter runs them here."""
    pytest.importorskip("triton")
    if torch.cuda.is_available():
        pytest.skip("Triton's interpreter is for machines without a GPU")
    network, x = potential(name)
    network.float()
    stacked = {key: value[None] for key, value in network.named_parameters()}
    x = x.float()
    found = []
    for fused in (False, True):
        monkeypatch.setattr(inclusive_nrf, "can_fuse", lambda _, own=fused: own)
        rows = x[None].clone().requires_grad_()
        u = torch.func.functional_call(network, stacked, (rows,))
        (slope,) = torch.autograd.grad(u.sum(), rows)
        found.append((u[0], slope[0]))
    alone = x.clone().requires_grad_()
    u = network(alone)
    found.append((u, torch.autograd.grad(u.sum(), alone)[0]))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["numbers", "images"])
def test_samples_climb_the_potential(members, name):
    own, x = members(name, step_noise=0.0, step_size=0.05)
    start = 2 * x - 1 if x.dim() == 5 else x
    code = drawn(2, 20, 10)
    moved, kept = own.revise(start, code, [code] * 5)
    before, after = (own.stacks["potential"](part).detach() for part in (start, moved))
    assert (after > before).double().mean() > 0.95
    assert not moved.requires_grad
    assert torch.equal(kept, code)
    if x.dim() == 5:
        assert moved.abs().max() <= 1.0


def test_pixels_stay_where_the_field_sees_them(members):
    own, x = members("images", centred=False, step_noise=0.0, step_size=1.0)
    code = drawn(2, 20, 10)
    moved, _ = own.revise(x, code, [code] * 5)
    assert moved.min() == 0.0
    assert moved.max() == 1.0
    torch.testing.assert_close(own.score(x), -own.stacks["potential"](x))


def test_dead_units_keep_their_weights(monkeypatch, fit_problems, visible):
    """At unit length, what is left of weights that decay would be noise."""
    initialise = inclusive_nrf._UnitLinear.__init__

    def with_a_dead_unit(layer, *sizes: int) -> None:
        initialise(layer, *sizes)
        if sizes[1] > 1:
            layer.bias.data[0] = -1e3

    monkeypatch.setattr(inclusive_nrf._UnitLinear, "__init__", with_a_dead_unit)
    monkeypatch.setattr(inclusive_nrf, "_SLOPE", 0.0)
    early, late = (
        fit_problems("inclusive-nrf", visible, [visible.problem((0,))], max_epochs=epochs)[0]
        for epochs in (1, 4)
    )
    before, after = (
        fitted.members.stacks["potential"].parameters["dense.0.weight"][0]
        for fitted in (early, late)
    )
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])


def test_momentum_carries_samples_on(members):
    moved = []
    for momentum in (0.0, 0.9):
        own, x = members("numbers", step_noise=0.0, step_size=1e-3, momentum=momentum)
        # The same potential for both: only how samples move differs.
        with seeded(0, CPU):
            for value in own.stacks["potential"].parameters.values():
                value.data.copy_(torch.randn_like(value))
        code = drawn(2, 20, 10)
        moved.append((own.revise(x, code, [code] * 20)[0] - x).norm())
    assert moved[1] > 4 * moved[0]


def test_steps_of_numbers_are_langevin_dynamics(monkeypatch, members):
    """At the slope of a standard normal density they come to rest in one."""
    own, _ = members("numbers", n_steps=3)
    how = own.sampling
    assert how == Sampling(True, 3, 0.1, 0.0, math.sqrt(0.2), 0.0, False)
    monkeypatch.setattr(own, "_slope_of_u", lambda x: -x)
    steps = [drawn(1, 4000, 8, seed=k) for k in range(60)]
    x, _ = own.revise(3 * drawn(1, 4000, 8, seed=99), drawn(1, 4000, 10), steps)
    expected = 2 / (2 - how.step_size)  # of the discrete steps; 1 in the limit
    assert x.mean().item() == pytest.approx(0.0, abs=0.02)
    assert x.var().item() == pytest.approx(expected, rel=0.03)


def test_codes_follow_their_samples(members):
    own, x = members("numbers", revise_codes=True, step_noise=0.0, step_size=0.02)
    code = drawn(2, 20, 10)
    moved, revised = own.revise(x, code, [code] * 30)

    def misfit(code: torch.Tensor) -> torch.Tensor:
        error = (moved - own._generated(code)).square().sum(-1)
        return ((error + code.square().sum(-1)) / 2).detach()

    assert misfit(revised).mean() < 0.9 * misfit(code).mean()


@pytest.mark.parametrize("revise_codes", [False, True])
@pytest.mark.parametrize("name", ["numbers", "images"])
def test_each_network_learns_from_its_own_part(members, name, revise_codes):
    own, x = members(
        name, revise_codes=revise_codes, confinement=0.3, sigma=0.1, step_noise=0.1
    )
    noise = drawn(2, 20, own.noise_size)
    loss = own.row_loss(x, torch.zeros(2, 20), noise)
    networks = [
        list(own.stacks[part].parameters.values()) for part in ("potential", "generator")
    ]
    found = torch.autograd.grad(loss.sum(), [*networks[0], *networks[1]])
    # By hand: samples first, then both parts alone.
    rows = 2 * x - 1 if x.dim() == 5 else x
    code, start, *steps = torch.split(noise, own._parts, -1)
    made = own._generated(code)
    start = made.detach() + 0.1 * start.reshape(rows.shape)
    sample, code = own.revise(start, code, steps)
    u, u_sample = (own.stacks["potential"](part, training=True) for part in (rows, sample))
    field = (u_sample - u + 0.3 * u.square()).sum()
    error = (sample - own._generated(code)).square().sum()
    expected = [
        *torch.autograd.grad(field, networks[0]),
        *torch.autograd.grad(error, networks[1]),
    ]
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(loss.sum(), field + error)


def test_the_score_is_minus_the_potential(members):
    for name in ("numbers", "images"):
        own, x = members(name)
        u = own.stacks["potential"](2 * x - 1 if x.dim() == 5 else x)
        torch.testing.assert_close(own.score(x), -u)


def test_images_of_another_kind_are_found(fit_problems, visible_images):
    (fitted,) = fit_problems(
        "inclusive-nrf",
        visible_images,
        [visible_images.problem((0, 1))],
        max_epochs=15,
        learning_rate=3e-3,
        n_steps=5,
    )
    for scores in fitted.score(visible_images.X_test):
        assert visible_images.auroc(scores) > 0.9


def test_images_without_filters_are_rows_of_pixels(fit_problems, visible_images):
    (fitted,) = fit_problems(
        "inclusive-nrf",
        visible_images,
        [visible_images.problem((0, 1))],
        images={"filters": (), "hidden": (32, 16), "latent_dim": 5},
        max_epochs=15,
        learning_rate=3e-3,
        n_steps=5,
    )
    weights = fitted.members.stacks["potential"].parameters["dense.0.weight"]
    assert weights.shape == (2, 32, 64)
    with torch.no_grad():
        made = fitted.members.stacks["generator"](torch.zeros(2, 3, 5))
    assert made.shape == (2, 3, 1, 8, 8)
    assert made.min() >= 0.0
    assert made.max() <= 1.0
    for scores in fitted.score(visible_images.X_test):
        assert visible_images.auroc(scores) > 0.9


def test_the_epoch_is_the_best_for_rows_that_are_held_out(fit_problems, visible):
    """Each member has its own. These rows are the wrong way round: an early epoch is best."""
    problem = visible.problem((0, 1))
    own = replace(
        problem,
        normal=problem.normal[20:],
        validation_normal=problem.anomaly,
        validation_anomaly=problem.normal[:20],
    )
    (fitted,) = fit_problems("inclusive-nrf", visible, [own], max_epochs=12, learning_rate=0.03)
    curve = -fitted.history["validation"]
    assert curve.shape == (12, 2)
    rows = np.concatenate([own.validation_normal, own.validation_anomaly])
    truth = np.repeat([0, 1], [len(problem.anomaly), 20])
    found = [roc_auc_score(truth, scores) for scores in fitted.score(visible.X[rows])]
    np.testing.assert_allclose(found, curve.max(0), atol=1e-6)
    assert (curve.max(0) > curve[-1]).all()


def test_a_member_that_diverges_is_named_and_does_not_choose(fit_problems, visible):
    """Also if it is in the last step of an epoch, when no loss shows it yet."""
    problem = visible.problem((0, 1))
    own = replace(
        problem,
        validation_normal=problem.normal[:20],
        validation_anomaly=problem.anomaly,
    )
    options = {"batch_size": len(problem.normal), "learning_rate": 1e20, "max_epochs": 3}
    with pytest.raises(DivergenceError, match="2 of 2 members is not finite in epoch 2"):
        fit_problems("inclusive-nrf", visible, [own], **options)


def test_an_epoch_is_not_chosen_by_half(fit_problems, visible):
    problem = visible.problem((0,))
    half = replace(problem, validation_normal=problem.normal[:20])
    with pytest.raises(ValueError, match="by normal rows and anomalies, or not at all"):
        fit_problems("inclusive-nrf", visible, [half])
    with pytest.raises(ValueError, match="Autoencoder does not choose its epoch by rows"):
        fit_problems("autoencoder", visible, [half])


def test_published_numbers_are_parameters():
    for dataset, shape, n_layers in (("cifar10", (3, 32, 32), 9), ("mnist", (1, 28, 28), 5)):
        model = InclusiveNRF(**PUBLISHED[dataset])
        model._check_parameters()
        assert model._sampling(of_images=True).step_noise == 0.0
        with torch.random.fork_rng():
            networks = model._networks(networks_for(shape, (), model.images))
        assert len(networks[0].stages) + len(networks[0].dense) == n_layers
        with torch.no_grad():
            images = networks[1](torch.zeros(2, 100))
            assert networks[0](2 * images - 1).shape == (2,)
