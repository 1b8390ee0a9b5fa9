"""Deep baselines on images: they learn, members do not see each other, seeds decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from aloof.baselines.images import (
    IMAGE_METHODS,
    ImageProblem,
    ImageSchedule,
    fit_image_baselines,
    pretrain,
)
from aloof.baselines.images.members import Spheres
from aloof.exceptions import DivergenceError, LabelError
from aloof.training import Stack

CPU = torch.device("cpu")
NETWORK = {"filters": (4, 8), "hidden": (16,), "latent_dim": 8, "kernel": 3}
SHORT = ImageSchedule(
    max_epochs=15,
    learning_rate=1e-3,
    pretrain_epochs=15,
    pretrain_learning_rate=1e-3,
    batch_size=64,
)
BRIEF = replace(SHORT, max_epochs=2, pretrain_epochs=2)
HOW = {"network": NETWORK, "schedule": BRIEF, "device": CPU}


@pytest.mark.parametrize("method", ["cae", "deep-svdd", "deep-sad"])
def test_anomalies_of_another_kind_are_found(fit, visible, method):
    (fitted,) = fit(visible, [visible.problem((1,))], method)
    assert visible.auroc(fitted.score(visible.test)[0]) > 0.9


@pytest.mark.parametrize("method", ["deep-sad", "classifier"])
def test_labels_give_away_what_hides_among_normal_images(fit, hidden, method):
    (fitted,) = fit(hidden, [hidden.problem()], method)
    assert hidden.auroc(fitted.score(hidden.test)[0]) > 0.85


@pytest.mark.parametrize("method", ["cae", "deep-svdd"])
def test_what_learns_nothing_from_labels_is_trained_once(visible, method):
    problems = [visible.problem((0, 1), 2), visible.problem((2, 3)), visible.problem((0, 1))]
    reports = []
    fitted = fit_image_baselines(
        torch.from_numpy(visible.train), problems, method, on_epoch=reports.append, **HOW
    )
    assert {report.n_members for report in reports} == {4}
    first, other, again = (result.score(visible.test) for result in fitted)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_generative_model_learns_from_labels(fit, hidden):
    """Its classifier sees codes that were made without labels, hence the lower floor."""
    longer = replace(SHORT, max_epochs=40, learning_rate=3e-3)
    (fitted,) = fit(hidden, [hidden.problem((2, 3))], "ss-dgm", schedule=longer)
    assert all(hidden.auroc(scores) > 0.8 for scores in fitted.score(hidden.test))
    codes = fitted.encode(hidden.train)
    np.testing.assert_allclose(codes.mean(1), 0.0, atol=1e-4)
    np.testing.assert_allclose(codes.std(1), 1.0, atol=1e-4)


def test_without_labels_nothing_gives_them_away(fit, hidden):
    """So that the test above is one of labels."""
    (fitted,) = fit(hidden, [hidden.problem()], "deep-svdd")
    assert hidden.auroc(fitted.score(hidden.test)[0]) < 0.7


@pytest.mark.parametrize("method", IMAGE_METHODS)
def test_a_member_is_the_same_alone_and_in_a_stack(fit, visible, hidden, method):
    fewer = ImageProblem(visible.normal[:-1], (3, 5), visible.anomaly)
    other = ImageProblem(visible.normal[20:], (4,), visible.anomaly[:5])
    together = fit(visible, [visible.problem((5, 7)), other, fewer], method, schedule=BRIEF)
    (alone,) = fit(visible, [replace(fewer, seeds=(5,))], method, schedule=BRIEF)
    np.testing.assert_allclose(
        together[2].score(visible.test)[1], alone.score(visible.test)[0], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(together[2].loss_curve[:, 1], alone.loss_curve[:, 0], rtol=1e-4)


@pytest.mark.parametrize("method", ["cae", "deep-sad", "classifier"])
def test_the_engine_of_a_gpu_trains_the_same_members(monkeypatch, fit, visible, method):
    problems = [visible.problem((0, 1)), ImageProblem(visible.normal[1:], (1,))]
    problems = problems[:1] if method == "classifier" else problems
    looped = fit(visible, problems, method, schedule=BRIEF)
    monkeypatch.setattr(Stack, "_choose", lambda self, example: "stacked")
    stacked = fit(visible, problems, method, schedule=BRIEF)
    for one, other in zip(looped, stacked, strict=True):
        assert other.members.encoder.engine == "stacked"
        # A bias before normalisation has no gradient but rounding, of which Adam makes
        # whole steps; they cancel in training, and nearly so in eval mode.
        scores = one.score(visible.test)
        np.testing.assert_allclose(other.score(visible.test), scores, rtol=1e-3, atol=2e-3)
        np.testing.assert_allclose(other.loss_curve, one.loss_curve, rtol=1e-4)


@pytest.mark.parametrize("method", IMAGE_METHODS)
def test_seeds_decide_everything(fit, visible, method):
    problem = visible.problem((0, 1))
    (first,), (second,) = (fit(visible, [problem], method, schedule=BRIEF) for _ in range(2))
    scores = first.score(visible.test)
    np.testing.assert_array_equal(scores, second.score(visible.test))
    assert scores.shape == (2, len(visible.test))
    assert scores.dtype == np.float64
    assert not np.allclose(scores[0], scores[1])


@pytest.mark.parametrize("method", IMAGE_METHODS)
def test_bytes_and_numbers_are_the_same_images(fit, visible, method):
    problem = [visible.problem()]
    (of_bytes,) = fit(visible, problem, method, schedule=BRIEF)
    numbers = visible._replace(train=visible.train.astype(np.float32) / 255)
    (of_numbers,) = fit(numbers, problem, method, schedule=BRIEF)
    np.testing.assert_allclose(
        of_bytes.score(visible.test), of_numbers.score(visible.test / 255), rtol=1e-5
    )


def test_deep_sad_without_anomalies_is_deep_svdd(fit, visible):
    sad, svdd = (
        fit(visible, [visible.problem(n_anomalies=n)], method, schedule=BRIEF)[0]
        for method, n in (("deep-sad", 0), ("deep-svdd", None))
    )
    np.testing.assert_array_equal(sad.score(visible.test), svdd.score(visible.test))


def test_eta_weighs_the_anomalies(fit, hidden):
    def distance(eta):
        (sad,) = fit(hidden, [hidden.problem()], "deep-sad", eta=eta)
        return sad.score(hidden.train[hidden.anomaly]).mean()

    assert distance(1.0) > 2 * distance(1e-6)


def test_scores_do_not_depend_on_the_other_images(fit, visible):
    (fitted,) = fit(visible, [visible.problem((0, 1))], "deep-svdd", schedule=BRIEF)
    scores = fitted.score(np.concatenate([visible.test, visible.train]))
    np.testing.assert_allclose(scores[:, :7], fitted.score(visible.test[:7]), rtol=1e-6)
    backwards = fitted.score(visible.test[::-1])
    np.testing.assert_allclose(scores[:, : len(visible.test)], backwards[:, ::-1], rtol=1e-6)


def test_pretraining_is_shared_by_what_has_the_same_normal_images(fit, visible):
    schedule = replace(BRIEF, max_epochs=1)
    problems = [visible.problem((0, 1), n) for n in (0, 4, 10)]
    images = torch.from_numpy(visible.train)
    reports = []
    pretrained = pretrain(images, problems, on_epoch=reports.append, **HOW)
    assert [(r.epoch, r.max_epochs, r.n_members) for r in reports] == [(1, 2, 2), (2, 2, 2)]
    shared = fit(visible, problems, "deep-sad", schedule=schedule, pretrained=pretrained)
    for problem, fitted in zip(problems, shared, strict=True):
        (own,) = fit(visible, [problem], "deep-sad", schedule=schedule)
        np.testing.assert_allclose(
            fitted.score(visible.test), own.score(visible.test), rtol=1e-5
        )
    stranger = [visible.problem((2,))]
    with pytest.raises(ValueError, match="pass it to pretrain too"):
        fit(visible, stranger, "deep-sad", schedule=schedule, pretrained=pretrained)


def test_pretraining_arrives(fit, visible):
    """At no learning rate the encoder is the autoencoder's, and not a fresh one."""
    still = replace(BRIEF, max_epochs=1, learning_rate=0.0)
    images, problems = torch.from_numpy(visible.train), [visible.problem()]
    pretrained = pretrain(images, problems, **HOW)
    ((_, state),) = pretrained.states.items()
    (sad,) = fit(visible, problems, "deep-sad", schedule=still, pretrained=pretrained)
    (fresh,) = fit(visible, problems, "deep-sad", schedule=replace(still, pretrain_epochs=0))
    for name, value in sad.members.encoder.parameters.items():
        assert torch.equal(value[0], state[name])
        assert not torch.allclose(value[0], fresh.members.encoder.parameters[name][0])


def test_the_centre_is_where_normal_images_are(visible):
    images = torch.from_numpy(visible.train)
    pretrained = pretrain(images, [visible.problem((0, 1))], **HOW)
    sphere = pretrained.start([visible.problem((0, 1))], eta=1.0)
    assert isinstance(sphere, Spheres)
    normal = torch.from_numpy(visible.train[visible.normal]).float() / 255
    with torch.no_grad():
        mean = sphere.encoder(normal.expand(2, *normal.shape)).mean(1)
    far = mean.abs() > 0.1
    assert far.any()
    torch.testing.assert_close(sphere.centre[far], mean[far], atol=1e-5, rtol=1e-4)
    assert (sphere.centre.abs() >= 0.1 - 1e-6).all()


@pytest.mark.parametrize("method", IMAGE_METHODS)
def test_epochs_are_reported_over_stacks_and_phases(fit, visible, method):
    reports = []
    other = ImageProblem(visible.normal[:100], (0,), visible.anomaly)
    problems = [visible.problem((0, 1)), other]
    fit(visible, problems, method, schedule=BRIEF, on_epoch=reports.append)
    total = 2 * 2 if method in ("cae", "classifier") else 2 * (2 + 2)
    assert [report.epoch for report in reports] == list(range(1, total + 1))
    assert {report.max_epochs for report in reports} == {total}
    assert {report.n_members for report in reports} == {1, 2}


def test_half_of_what_the_labelled_model_sees_are_anomalies(fit, visible):
    """So that problems with few and with many of them have batches of one shape."""
    few, many = visible.problem((0,), 3), visible.problem((0, 1))
    even = few.evened()
    assert (even.labels == 1).mean() == 0.5
    _, times = np.unique(even.anomaly, return_counts=True)
    assert times.tolist() == [67, 67, 66]
    reports = []
    fit(visible, [few, many], "ss-dgm", schedule=BRIEF, on_epoch=reports.append)
    assert [report.n_members for report in reports] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("method", ["classifier", "ss-dgm"])
def test_some_methods_need_anomalies(fit, visible, method):
    with pytest.raises(LabelError, match=f"{method} learns from labelled anomalies"):
        fit(visible, [visible.problem(n_anomalies=0)], method)


@pytest.mark.parametrize("name", ["weight_decay", "pretrain_weight_decay"])
def test_weights_decay_in_both_phases(fit, visible, name):
    def norm(decay):
        schedule = replace(BRIEF, **{name: decay})
        (fitted,) = fit(visible, [visible.problem()], "deep-svdd", schedule=schedule)
        return sum(p.square().sum() for p in fitted.members.encoder.parameters.values())

    assert norm(10.0) < norm(0.0)


def test_anomalies_take_no_part_in_pretraining(visible):
    images = torch.from_numpy(visible.train)
    states = [
        pretrain(images, [visible.problem(n_anomalies=n)], **HOW).states for n in (0, None)
    ]
    ((key, one),), ((same, other),) = (state.items() for state in states)
    assert key == same
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_half_precision_trains_nearly_the_same(fit, visible):
    full, half = (
        fit(visible, [visible.problem()], "deep-sad", schedule=replace(BRIEF, precision=name))
        for name in ("float32", "bfloat16")
    )
    assert not np.array_equal(full[0].loss_curve, half[0].loss_curve)
    np.testing.assert_allclose(half[0].loss_curve, full[0].loss_curve, rtol=0.05)


def test_what_cannot_be_learned_from_is_refused(visible):
    with pytest.raises(ValueError, match="two normal rows and one seed; got 1 and 2"):
        ImageProblem(visible.normal[:1], (0, 1))


def test_training_that_diverges_is_said_to(fit, visible):
    steep = replace(BRIEF, learning_rate=float("inf"))
    with pytest.raises(DivergenceError, match="learning rate"):
        fit(visible, [visible.problem()], "classifier", schedule=steep)


def test_unknown_methods_are_named(visible):
    with pytest.raises(ValueError, match="must be one of cae, deep-svdd"):
        fit_image_baselines(
            torch.from_numpy(visible.train), [visible.problem()], "deepsad", device=CPU
        )
