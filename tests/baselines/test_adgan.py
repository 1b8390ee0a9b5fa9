"""ADGAN: the two losses in one, the penalty, and the search for a row."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from aloof.baselines import BASELINES
from aloof.baselines.adgan import ADGAN, AdversarialMembers, Search, gradient_penalty
from aloof.networks import Linear
from aloof.training import Stack
from aloof.training.seeds import seeded

CPU = torch.device("cpu")


@pytest.fixture
def fitted(fit_problems, visible):
    (found,) = fit_problems("adgan", visible, [visible.problem((0, 1))])
    return found


def test_the_penalty_of_a_linear_critic_is_that_of_its_weight():
    """Its slope is the norm of the weight everywhere; the gradient is known, too."""
    with seeded(0, CPU):
        critics = [nn.Linear(3, 1).double() for _ in range(2)]
        x = torch.randn(2, 5, 3, dtype=torch.float64)
    stack = Stack(critics, engine="vmap", example=[x], device=CPU)
    penalty = gradient_penalty(stack, x)
    weight = stack.parameters["weight"]
    norm = weight.detach().norm(dim=-1)
    torch.testing.assert_close(penalty, ((norm - 1) ** 2).expand(2, 5))
    (gradient,) = torch.autograd.grad(penalty[:, 0].sum(), weight)
    expected = 2 * (norm - 1).unsqueeze(-1) * weight.detach() / norm.unsqueeze(-1)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("kind", ["numbers", "images"])
def test_each_network_has_the_gradient_of_its_own_loss(fit_problems, request, kind):
    """As if there were two optimisers; the value is the critic's loss."""
    of = request.getfixturevalue("visible" if kind == "numbers" else "visible_images")
    (found,) = fit_problems("adgan", of, [of.problem((0,))], max_epochs=1)
    members = found.members.to(CPU, torch.float64)
    stacks = {name: Stack.joined([stack]) for name, stack in members.stacks.items()}
    members = members._with(stacks, members.tensors)
    x = torch.from_numpy(of.X[:6] / (255.0 if kind == "images" else 1.0)).unsqueeze(0)
    with seeded(0, CPU):
        noise = torch.randn(1, 6, members.noise_size, dtype=torch.float64)
    loss = members.row_loss(x, torch.zeros(1, 6), noise)

    critic, share = stacks["critic"], torch.special.ndtr(noise[0, :, -1])
    made = stacks["generator"](noise[..., :-1], training=True)
    share = share.view(1, -1, *[1] * (x.dim() - 2))
    between = (share * x + (1 - share) * made).detach()
    steepness = gradient_penalty(critic, between)
    of_critic = critic(made.detach()) - critic(x) + members.penalty * steepness.unsqueeze(-1)
    torch.testing.assert_close(loss, of_critic.squeeze(-1))
    for name, own in (("critic", of_critic), ("generator", -critic(made))):
        weights = [w for w in stacks[name].parameters.values() if w.requires_grad]
        found, expected = (
            torch.autograd.grad(value.mean(), weights, retain_graph=True)
            for value in (loss, own)
        )
        assert any((part != 0).any() for part in expected)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


class _Line(nn.Module):
    stackable = True

    def __init__(self) -> None:
        super().__init__()
        self.layer = Linear(2, 3)

    def forward(self, z):
        return torch.tanh(self.layer(z))


def test_the_search_is_adam_on_a_copy_for_every_row_and_start():
    """Against torch's own optimiser, row by row, start by start."""
    with seeded(1, CPU):
        networks = [_Line().double() for _ in range(2)]
        starts = torch.randn(2, 4, 2, dtype=torch.float64)
        x = torch.randn(2, 5, 3, dtype=torch.float64)
    code = [torch.zeros(2, 3, 2, dtype=torch.float64)]
    stack = Stack(networks, engine="stacked", example=code, device=CPU)
    found = Search(steps=3, code_rate=0.25, generator_rate=0.01)(stack, starts, x)
    expected = torch.zeros(2, 5, dtype=torch.float64)
    for k in range(2):
        trained = copy.deepcopy(networks[0])
        trained.load_state_dict({n: v[k] for n, v in stack.state().items()})
        for i in range(5):
            for start in starts[k]:
                own, z = copy.deepcopy(trained), start.clone().requires_grad_()
                groups = [{"params": [z], "lr": 0.25}, {"params": own.parameters(), "lr": 0.01}]
                optimizer = torch.optim.Adam(groups, betas=(0.5, 0.999))
                for _ in range(3):
                    optimizer.zero_grad()
                    (own(z) - x[k, i]).square().mean().backward()
                    optimizer.step()
                expected[k, i] += (own(z) - x[k, i]).square().mean().detach() / 4
    torch.testing.assert_close(found, expected)


def test_a_search_leaves_the_generator_alone(fitted, visible):
    before = {k: v.clone() for k, v in fitted.members.stacks["generator"].state().items()}
    first = fitted.score(visible.X_test)
    for name, value in fitted.members.stacks["generator"].state().items():
        assert torch.equal(value, before[name])
    np.testing.assert_array_equal(first, fitted.score(visible.X_test))


def test_without_a_step_the_score_is_the_error_of_the_starts(fit_problems, visible):
    (found,) = fit_problems("adgan", visible, [visible.problem()], search_steps=0)
    made = (
        found.members.stacks["generator"](found.members.tensors["starts"])[0].detach().numpy()
    )
    error = np.square(visible.X_test[:, None] - made).mean((1, 2))
    np.testing.assert_allclose(found.score(visible.X_test)[0], error)


def test_every_step_of_the_search_helps(fit_problems, visible):
    errors = []
    for steps in (0, 2, 8):
        (found,) = fit_problems(
            "adgan", visible, [visible.problem()], search_steps=steps, code_rate=0.05
        )
        errors.append(found.score(visible.X_test).mean())
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("rows", ["visible", "visible_images"])
def test_scores_do_not_depend_on_how_many_fit_into_memory(
    monkeypatch, fit_problems, request, rows
):
    of = request.getfixturevalue(rows)
    (found,) = fit_problems("adgan", of, [of.problem((0, 1))])
    chosen = of.X_test[:10]
    first = found.score(chosen)
    monkeypatch.setattr("aloof.baselines.members._CHUNK", 6)
    for at_once in (1, 4):
        monkeypatch.setattr(AdversarialMembers, "_rows_at_once", lambda self, x, n=at_once: n)
        np.testing.assert_allclose(found.score(chosen), first, rtol=1e-5)
        np.testing.assert_allclose(found.score(chosen[::-1]), first[:, ::-1], rtol=1e-5)


def test_what_fits_into_memory_depends_on_the_generator(fitted, visible):
    x = torch.from_numpy(visible.X[:2]).expand(2, 2, -1)
    own = sum(p.nbytes for p in fitted.members.stacks["generator"].parameters.values())
    assert fitted.members._rows_at_once(x) == 2**28 // (8 * own * 2)


def test_engines_agree(monkeypatch, fit_problems, visible_images):
    """Critics in a loop or by vmap, generators in a loop or stacked; in float64."""
    exact = visible_images._replace(X=visible_images.X / 255.0)
    problem = exact.problem((0, 1))
    (looped,) = fit_problems("adgan", exact, [problem])
    real = Stack.__init__

    def made(self, networks, *, engine, **others):
        real(self, networks, engine={"loop": "vmap", "auto": "stacked"}[engine], **others)

    monkeypatch.setattr(Stack, "__init__", made)
    (stacked,) = fit_problems("adgan", exact, [problem])
    engines = [
        {name: stack.engine for name, stack in found.members.stacks.items()}
        for found in (looped, stacked)
    ]
    assert engines == [
        {"generator": "loop", "critic": "loop"},
        {"generator": "stacked", "critic": "vmap"},
    ]
    np.testing.assert_allclose(
        stacked.score(exact.X[:10]), looped.score(exact.X[:10]), rtol=1e-6, atol=1e-8
    )


def test_members_begin_their_searches_elsewhere(fitted):
    starts = fitted.members.tensors["starts"]
    assert starts.shape == (2, 2, 8)
    assert not torch.allclose(starts[0], starts[1])


@pytest.mark.parametrize(
    ("side", "filters"),
    [(8, (64,)), (28, (64, 128)), (32, (64, 128, 256)), (64, (64, 64, 128, 256))],
)
def test_the_network_grows_with_the_image(side, filters):
    assert ADGAN()._options((3, side, side))["filters"] == filters
    assert ADGAN(images={"kernel": 5})._options((3, side, side)) == {"kernel": 5}
    assert ADGAN()._options((8,)) == {}


def test_a_gan_of_stripes_cannot_make_those_that_run_down(visible_images):
    on = visible_images
    network = {"filters": (8,), "hidden": (), "latent_dim": 4, "kernel": 3}
    gan = BASELINES["adgan"](
        images=network,
        max_epochs=60,
        batch_size=40,
        learning_rate=5e-3,
        device="cpu",
        random_state=0,
    ).fit(on.X, on.y)
    assert on.auroc(gan.anomaly_score(on.X_test)) > 0.9
