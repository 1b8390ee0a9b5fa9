"""M2 and M1+M2 minimise what was published, and keep labelled anomalies apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn.functional import softplus

from aloof.baselines import M1M2, M2
from aloof.training import Batch, Phase

SMALL = {"hidden": (6, 4), "batch_size": 32, "max_epochs": 2, "device": "cpu"}


@pytest.fixture(scope="module", params=[M2, M1M2])
def trained(request, visible):
    """Return the members of a fit of rows in [0, 1], and a batch of them."""
    unit = (visible.X - visible.X.min(0)) / np.ptp(visible.X, axis=0)
    more = {"pretrain_epochs": 2} if request.param is M1M2 else {}
    model = request.param(likelihood="bernoulli", **SMALL, **more)
    data = torch.from_numpy(unit.astype(np.float64))
    (fitted,) = model.fit_problems(data, [visible.problem((0, 1))])
    source = torch.Generator().manual_seed(0)
    members = fitted.members
    noise = torch.randn(2, 9, members.noise_size, generator=source, dtype=torch.float64)
    return members, data[:9].expand(2, -1, -1), noise


def reference(members, x, noise, label, which):
    """Return minus the bound of log p(x, y) of rows of one member, in a plain way."""

    def ask(name, rows):
        def own(tensors):
            return {k: v[which] for k, v in tensors.items()}

        stack = members.stacks[name]
        tensors = own(stack.parameters), own(stack.buffers)
        return torch.func.functional_call(stack.network, tensors, (rows,))

    halves = noise.chunk(2, -1)[label]
    inputs = x
    if "encoder" in members.stacks:
        halves, for_code = halves.chunk(2, -1)
        mean, raw = ask("encoder", x)
        inputs = mean + softplus(raw).exp().sqrt() * for_code
    one_hot = torch.eye(2, dtype=x.dtype)[label].expand(len(x), 2)
    mean, raw = ask("recognition", torch.cat([inputs, one_hot], 1))
    posterior = Normal(mean, softplus(raw).exp().sqrt())
    z = posterior.loc + posterior.scale * halves
    logits = ask("generation", torch.cat([z, one_hot], 1))
    likelihood = Bernoulli(logits=logits, validate_args=False).log_prob(x).sum(1)
    prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))
    return likelihood - kl_divergence(posterior, prior).sum(1) + np.log(0.5)


@pytest.mark.parametrize("which", [0, 1])
def test_rows_have_the_published_loss(trained, which):
    members, x, noise = trained
    with torch.no_grad():
        joint = torch.stack(
            [reference(members, x[which], noise[which], y, which) for y in (0, 1)]
        )
        p = torch.sigmoid(members.score(x)[which])  # of being an anomaly
        q = torch.stack([1 - p, p])
        for label, expected in (
            (-1, (q * (joint - q.log())).sum(0)),
            (1, joint[1] + members.tensors["weight"][which] * p.log()),
        ):
            labels = torch.full((2, 9), label)
            loss = members.row_loss(x, labels, noise)[which]
            torch.testing.assert_close(-loss, expected)


def test_the_classifier_weighs_as_much_as_anomalies_are_rare(fit_problems, visible):
    one = visible.problem((0,))
    fewer = replace(one, anomaly=one.anomaly[:5])
    for problem in (one, fewer):
        (fitted,) = fit_problems("ss-dgm-m2", visible, [problem], classifier_weight=0.3)
        expected = 0.3 * len(problem.normal) / len(problem.anomaly)
        assert fitted.members.tensors["weight"].tolist() == pytest.approx([expected])


@pytest.mark.parametrize(
    ("n_normal", "n_anomalies", "size", "interval"),
    [(990, 10, 2, 2), (950, 50, 6, 1), (800, 200, 26, 1), (9999, 1, 2, 156), (54, 6, 6, 1)],
)
def test_anomalies_join_as_often_as_they_would_be_drawn(
    visible, n_normal, n_anomalies, size, interval
):
    problem = replace(
        visible.problem(),
        normal=np.arange(n_normal),
        anomaly=np.arange(n_normal, n_normal + n_anomalies),
    )
    assert M2(batch_size=128)._task(problem).kind == (size, interval)


def test_labelled_anomalies_do_not_reach_the_statistics_of_other_rows(visible_images):
    """A batch's loss is that of its rows plus that of its anomalies, each on their own."""
    from aloof.baselines.m2 import GenerativeClassifiers, SeparateRows
    from aloof.baselines.networks import networks_for
    from aloof.training import Setup

    model = M2(hidden=(6, 4))
    options = {"filters": (4,), "hidden": (), "latent_dim": 3, "kernel": 3}
    data = torch.from_numpy(visible_images.X).double() / 255
    networks = networks_for(data.shape[1:], model.hidden, options)
    task = model._task(visible_images.problem((0,)))
    cpu = torch.device("cpu")
    setup = Setup([task], [0], [data], [data[:2]], cpu, torch.float64, "auto")

    def loss(n_anomalies: int) -> torch.Tensor:
        learner = SeparateRows(
            lambda own: GenerativeClassifiers.build(networks, model, "bernoulli", None, own),
            setup,
        )
        size = learner.noise_size
        batch = Batch(
            rows=torch.zeros(0),
            n_rows=8,
            noise=torch.zeros(1, 8, size).double(),
            extra_noise=torch.zeros(1, 1, n_anomalies, size).double() if n_anomalies else None,
            labels=None,
            chances=(),
            seeds=(0,),
        )
        rows = data[: 8 + n_anomalies].unsqueeze(0)
        (found,) = learner.loss([rows], batch, Phase())
        labels = torch.ones(1, n_anomalies)
        alone = learner.members.row_loss(rows[:, 8:], labels, batch.noise[:, :n_anomalies])
        return found - alone.mean(1) if n_anomalies else found

    torch.testing.assert_close(loss(4), loss(0))


def test_m1_is_held_fixed_while_m2_learns(visible):
    problem = visible.problem((0,))
    found = []
    for epochs in (1, 4):
        model = M1M2(**{**SMALL, "max_epochs": epochs}, pretrain_epochs=3)
        (fitted,) = model.fit_problems(torch.from_numpy(visible.X), [problem])
        found.append(fitted)
    codes, scores = ([getattr(f, ask)(visible.X) for f in found] for ask in ("encode", "score"))
    np.testing.assert_array_equal(*codes)
    assert not np.allclose(*scores)


def test_rows_beyond_0_and_1_have_no_bernoulli_likelihood(visible):
    model = M2(likelihood="bernoulli", **SMALL)
    with pytest.raises(ValueError, match=r"needs rows in \[0, 1\]. Scale them, or set like"):
        model.fit(visible.X, visible.y)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (torch.tensor([[0.0, 1.0], [0.5, 0.2]]), "bernoulli"),
        (torch.tensor([[0.0, 1.1], [0.5, 0.2]]), "gaussian"),
        (torch.tensor([[-0.1, 1.0], [0.5, 0.2]]), "gaussian"),
        (torch.tensor([[0, 255]], dtype=torch.uint8), "bernoulli"),
    ],
)
def test_rows_choose_their_likelihood(rows, expected):
    assert M2().likelihood_of(rows) == expected
    assert M2(likelihood="gaussian").likelihood_of(rows) == "gaussian"


def test_a_problem_chooses_its_likelihood_by_its_own_rows(visible):
    """Not by those it is fitted beside."""
    unit = (visible.X - visible.X.min(0)) / np.ptp(visible.X, axis=0)
    data, problem = torch.from_numpy(np.concatenate([unit, visible.X])), visible.problem((0,))
    beyond = replace(
        problem, normal=problem.normal + len(unit), anomaly=problem.anomaly + len(unit)
    )
    for cls in (M2, M1M2):
        model = cls(**SMALL, **({"pretrain_epochs": 2} if cls is M1M2 else {}))
        reports = []
        together = model.fit_problems(data, [problem, beyond, problem], on_epoch=reports.append)
        assert [report.epoch for report in reports] == [*range(1, len(reports) + 1)]
        assert {report.max_epochs for report in reports} == {len(reports)}
        chosen = [fitted.members.likelihood for fitted in together]
        assert chosen == ["bernoulli", "gaussian", "bernoulli"]
        for own, fitted in zip((problem, beyond), together, strict=False):
            (alone,) = model.fit_problems(data, [own])
            np.testing.assert_allclose(fitted.score(unit), alone.score(unit), rtol=1e-6)


def test_labelled_anomalies_are_learned(make, hidden):
    """They look like normal rows to a model without labels."""
    for name in ("ss-dgm-m2", "ss-dgm-m1-m2"):
        scores = make(name).fit(hidden.X, hidden.y).anomaly_score(hidden.X_test)
        anomalies, normal = scores[hidden.y_test == 1], scores[hidden.y_test == 0]
        assert (anomalies[:, None] > normal).mean() > 0.7
