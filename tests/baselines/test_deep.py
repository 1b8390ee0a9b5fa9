"""Laws of all deep baselines, on rows of numbers and on images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from aloof.baselines import BASELINES, DeepBaseline, Hybrid
from aloof.exceptions import DivergenceError, LabelError, StaleCheckpointError
from aloof.problem import Problem
from aloof.training import Stack, trainer
from aloof.training.checkpoint import CheckpointFile

# One name for each learner; hybrids have the autoencoder's.
LEARNERS = [
    "adgan",
    "autoencoder",
    "classifier",
    "dadgt",
    "dagmm",
    "deep-sad",
    "deep-svdd",
    "deep-svdd-soft",
    "devnet",
    "dsebm",
    "inclusive-nrf",
    "prenet",
    "ss-dgm",
    "ss-dgm-m1-m2",
    "ss-dgm-m2",
]
REQUIRED = ["classifier", "devnet", "prenet", "ss-dgm", "ss-dgm-m1-m2", "ss-dgm-m2"]
FOR_IMAGES = ["dadgt"]
PHASES = {"deep-sad": 2, "deep-svdd": 2, "deep-svdd-soft": 2, "ss-dgm": 2, "ss-dgm-m1-m2": 2}


@pytest.fixture(scope="module", params=["numbers", "images"])
def rows(request, visible, visible_images, few_images):
    kinds = {"numbers": visible, "images": visible_images, "few images": few_images}
    return kinds[request.param]


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Score a few rows at once, so that a few rows cost little."""
    monkeypatch.setattr("aloof.baselines.members._CHUNK", 32)


def each(*left_out):
    """Pass every learner but some, with every kind of rows that it is for."""
    pairs = [
        (name, kind)
        for name in LEARNERS
        for kind in (("few images",) if name in FOR_IMAGES else ("numbers", "images"))
        if name not in left_out
    ]
    return pytest.mark.parametrize(("name", "rows"), pairs, indirect=["rows"])


@pytest.fixture
def simple(name, visible, few_images):
    """Rows of numbers, or images where a learner is for these alone."""
    return few_images if name in FOR_IMAGES else visible


def test_every_deep_baseline_is_tested_here():
    made = {name: factory() for name, factory in BASELINES.items()}
    assert {name for name, peer in made.items() if peer.images_only} == set(FOR_IMAGES)
    classes = {type(m) for m in made.values() if isinstance(m, DeepBaseline)} - {Hybrid}
    assert classes == {type(made[name]) for name in LEARNERS}


@each()
def test_member_equals_the_model_trained_alone(fit_problems, rows, name):
    """Whatever it is stacked with: members of its problem, and of others of other sizes.

    In float64, so that it is seen whether rounding is all the difference.
    """
    exact = rows.X / 255.0 if rows.X.dtype == np.uint8 else rows.X
    rows = rows._replace(X=exact)
    one = rows.problem((5, 7))
    fewer = replace(one, normal=one.normal[:-1], seeds=(3, 5))
    other = replace(one, normal=one.normal[20:], anomaly=one.anomaly[:5], seeds=(4,))
    options = {"max_epochs": 11} if name == "deep-svdd-soft" else {}
    together = fit_problems(name, rows, [one, other, fewer], **options)
    (alone,) = fit_problems(name, rows, [replace(fewer, seeds=(5,))], **options)
    np.testing.assert_allclose(
        together[2].score(rows.X_test)[1], alone.score(rows.X_test)[0], rtol=1e-6, atol=1e-9
    )
    np.testing.assert_allclose(
        together[2].history["loss"][:, 1], alone.history["loss"][:, 0], rtol=1e-4
    )


@each()
def test_seeds_decide_everything(fit_problems, rows, name):
    problem = rows.problem((0, 1))
    (first,), (second,) = (fit_problems(name, rows, [problem]) for _ in range(2))
    scores = first.score(rows.X_test)
    np.testing.assert_array_equal(scores, second.score(rows.X_test))
    assert scores.shape == (2, len(rows.X_test))
    assert scores.dtype == np.float64
    assert not np.allclose(scores[0], scores[1])


@each("adgan", "dadgt", "ss-dgm")
def test_engines_agree(monkeypatch, fit_problems, rows, name):
    """On a CPU convolutions are looped over and the rest is stacked; a GPU stacks all.

    In float64. M2 of SS-DGM has no engine but vmap and the loop, which `tests/vae` compares;
    those of ADGAN and DADGT are compared in tests of their own.
    """
    exact = rows._replace(X=rows.X / 255.0 if rows.X.dtype == np.uint8 else rows.X)
    found = {}
    for engine in ("loop", "stacked"):
        monkeypatch.setattr(Stack, "_choose", lambda self, example, own=engine: own)
        (found[engine],) = fit_problems(name, exact, [rows.problem((0, 1))])
        stacks = found[engine].members.stacks.values()
        assert {stack.engine for stack in stacks} == {engine}
    one, other = (found[engine].score(exact.X[:20]) for engine in ("loop", "stacked"))
    np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        found["stacked"].history["loss"], found["loop"].history["loss"], rtol=1e-5
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_a_killed_fit_continues_to_the_same_bits(fit_problems, simple, tmp_path, name):
    problems = [simple.problem((0, 1))]
    epochs = {"max_epochs": 12}
    if name in PHASES:
        epochs["pretrain_epochs"] = 12
    (whole,) = fit_problems(name, simple, problems, **epochs)
    path = tmp_path / "fit.ckpt"
    for stop in (11, 23):

        def kill(report, stop=stop):
            if report.epoch == stop:
                raise KeyboardInterrupt

        try:
            fit_problems(name, simple, problems, checkpoint=path, on_epoch=kill, **epochs)
        except KeyboardInterrupt:
            assert path.exists()
    reports = []
    (resumed,) = fit_problems(
        name, simple, problems, checkpoint=path, on_epoch=reports.append, **epochs
    )
    assert len(reports) < 12 * PHASES.get(name, 1)
    np.testing.assert_array_equal(resumed.score(simple.X_test), whole.score(simple.X_test))
    with pytest.raises(StaleCheckpointError):
        fit_problems(name, simple, [simple.problem((0, 2))], checkpoint=path, **epochs)


def epochs_seen(fit_problems, name, rows, checkpoint, **epochs):
    """Fit from a checkpoint; return the epochs that are told of."""
    told = []
    fit_problems(
        name, rows, [rows.problem()], checkpoint=checkpoint, on_epoch=told.append, **epochs
    )
    return [report.epoch for report in told]


def test_the_end_of_a_phase_is_kept_whatever_it_takes(
    fit_problems, visible, tmp_path, monkeypatch
):
    monkeypatch.setattr(CheckpointFile, "affords", lambda self, tensors: False)
    path, epochs = tmp_path / "fit.ckpt", {"max_epochs": 12, "pretrain_epochs": 4}

    def kill(report):
        if report.epoch == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_problems(
            "deep-sad", visible, [visible.problem()], checkpoint=path, on_epoch=kill, **epochs
        )
    assert path.exists()
    seen = epochs_seen(fit_problems, "deep-sad", visible, path, **epochs)
    assert seen == [4, *range(6, 17)]


def test_slow_epochs_are_kept_one_by_one(fit_problems, visible, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "_CHECKPOINT_SECONDS", -1.0)
    whole, n_done = trainer._StackRun._epoch, 0

    def end_within(self, *args):
        nonlocal n_done
        if n_done == 3:
            raise KeyboardInterrupt
        n_done += 1
        return whole(self, *args)

    path, epochs = tmp_path / "fit.ckpt", {"max_epochs": 6}
    with monkeypatch.context() as patch:
        patch.setattr(trainer._StackRun, "_epoch", end_within)
        with pytest.raises(KeyboardInterrupt):
            fit_problems("autoencoder", visible, [visible.problem()], checkpoint=path, **epochs)
    seen = epochs_seen(fit_problems, "autoencoder", visible, path, **epochs)
    assert seen == [4, 5, 6]


@pytest.mark.parametrize("name", LEARNERS)
def test_half_precision_trains_nearly_the_same(fit_problems, visible_images, name):
    full, half = (
        fit_problems(name, visible_images, [visible_images.problem()], precision=precision)[0]
        for precision in ("float32", "bfloat16")
    )
    some = visible_images.X[:32]
    assert not np.array_equal(full.score(some), half.score(some))
    np.testing.assert_allclose(half.history["loss"], full.history["loss"], rtol=0.1)


@pytest.mark.parametrize("name", LEARNERS)
def test_epochs_are_reported_over_stacks_and_phases(fit_problems, simple, name):
    reports = []
    one = simple.problem((0, 1))
    other = replace(one, normal=one.normal[: len(one.normal) // 3], seeds=(0,))
    fit_problems(name, simple, [one, other], on_epoch=reports.append)
    total = 2 * 2 * PHASES.get(name, 1)
    assert [report.epoch for report in reports] == list(range(1, total + 1))
    assert {report.max_epochs for report in reports} == {total}
    assert {report.n_members for report in reports} == {1, 2}


@pytest.mark.parametrize(
    "name", ["autoencoder", "dagmm", "deep-svdd", "deep-svdd-soft", "dsebm", "inclusive-nrf"]
)
def test_what_learns_nothing_from_labels_is_trained_once(fit_problems, rows, name):
    problems = [rows.problem((0, 1), 2), rows.problem((2, 3)), rows.problem((0, 1))]
    reports = []
    fitted = fit_problems(name, rows, problems, on_epoch=reports.append)
    # Two problems of two members: one stack, or one after another where networks convolve.
    n_trained = sum(report.n_members for report in reports)
    assert n_trained == 4 * reports[-1].max_epochs
    first, other, again = (result.score(rows.X_test) for result in fitted)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_networks_that_convolve_take_the_memory_of_one_problem_on_a_cpu(fit_problems, rows):
    reports = []
    problems = [rows.problem((0, 1)), rows.problem((2, 3)), rows.problem((4, 5))]
    fit_problems("deep-sad", rows, problems, on_epoch=reports.append)
    if len(rows.X.shape) == 2:
        assert {report.n_members for report in reports} == {6}
        return
    assert {report.n_members for report in reports} == {1, 2}  # pre-training goes by seeds
    shown = [report.epoch for report in reports]
    assert shown == sorted(shown)
    assert shown[-1] == reports[-1].max_epochs == 4


@pytest.mark.parametrize("name", ["autoencoder", "deep-svdd", "deep-sad"])
def test_images_of_another_kind_are_found(fit_problems, visible_images, name):
    long = {"max_epochs": 15, "learning_rate": 1e-3}
    if name in PHASES:
        long |= {"pretrain_epochs": 15, "pretrain_learning_rate": 1e-3}
    (fitted,) = fit_problems(name, visible_images, [visible_images.problem((1,))], **long)
    assert visible_images.auroc(fitted.score(visible_images.X_test)[0]) > 0.9


@pytest.mark.parametrize("name", ["deep-sad", "classifier", "devnet", "ss-dgm"])
def test_labels_give_away_what_hides_among_normal_images(fit_problems, hidden_images, name):
    long = {"max_epochs": 15, "learning_rate": 1e-3}
    if name in PHASES:
        long |= {"pretrain_epochs": 15, "pretrain_learning_rate": 1e-3}
    if name in ("devnet", "ss-dgm"):  # the latter's classifier sees codes made without labels
        long |= {"max_epochs": 40, "learning_rate": 3e-3}
    (fitted,) = fit_problems(name, hidden_images, [hidden_images.problem()], **long)
    assert hidden_images.auroc(fitted.score(hidden_images.X_test)[0]) > 0.8
    (blind,) = fit_problems(
        "deep-svdd",
        hidden_images,
        [hidden_images.problem()],
        max_epochs=15,
        pretrain_epochs=15,
        learning_rate=1e-3,
        pretrain_learning_rate=1e-3,
    )
    assert hidden_images.auroc(blind.score(hidden_images.X_test)[0]) < 0.7


@pytest.mark.parametrize("name", LEARNERS)
def test_bytes_and_numbers_are_the_same_images(fit_problems, visible_images, name):
    problem = [visible_images.problem()]
    (of_bytes,) = fit_problems(name, visible_images, problem)
    numbers = visible_images._replace(X=visible_images.X.astype(np.float32) / 255)
    (of_numbers,) = fit_problems(name, numbers, problem)
    test = visible_images.X_test[::10]
    np.testing.assert_allclose(
        of_bytes.score(test), of_numbers.score(test / 255), rtol=1e-4, atol=1e-5
    )


def test_some_members_score_as_among_all(fit_problems, visible):
    (both,) = fit_problems("deep-sad", visible, [visible.problem((0, 1))])
    second = both.select(slice(1, 2))
    scores = both.score(visible.X_test)
    np.testing.assert_array_equal(second.score(visible.X_test), scores[1:])
    np.testing.assert_array_equal(second.history["loss"], both.history["loss"][:, 1:])


def test_fit_takes_images(visible_images):
    on = visible_images
    sad = BASELINES["deep-sad"](
        max_epochs=2, pretrain_epochs=2, n_members=2, device="cpu", random_state=0
    ).fit(on.X, on.y)
    scores = sad.anomaly_score(on.X_test)
    assert scores.shape == (len(on.X_test),)
    np.testing.assert_allclose(scores, sad.fitted_.score(on.X_test).mean(0))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("deep-sad", {"pretrain_epochs": 3}),
        ("deep-sad", {"eta": 2.0}),
        ("deep-svdd-soft", {"nu": 0.2}),
        ("ss-dgm", {"classifier_weight": 50.0}),
        ("ss-dgm", {"anomaly_share": 0.5}),
        ("ss-dgm-m2", {"classifier_weight": 5.0}),
        ("ss-dgm-m1-m2", {"classifier_weight": 5.0}),
        ("ss-dgm-m1-m2", {"hidden": (16, 8)}),
        ("classifier", {"weight_decay": 0.1}),
        ("classifier", {"milestones": (1,)}),
        ("deep-sad", {"pretrain_milestones": (1,)}),
        ("autoencoder", {"bias": False}),
        ("adgan", {"penalty": 1.0}),
        ("dadgt", {"widen": 2}),
        ("dsebm", {"noise_scale": 0.4}),
        ("dagmm", {"energy_weight": 0.2}),
        ("dagmm", {"penalty_weight": 0.1}),
        ("dagmm", {"dropout": 0.0}),
        ("inclusive-nrf", {"confinement": 0.2}),
        ("inclusive-nrf", {"n_steps": 3}),
        ("inclusive-nrf", {"step_size": 0.2}),
        ("prenet", {"weight_decay": 0.1}),
    ],
)
def test_a_checkpoint_of_other_settings_is_refused_in_every_phase(
    fit_problems, simple, tmp_path, name, change
):
    path, problems = tmp_path / "fit.ckpt", [simple.problem((0,))]
    fit_problems(name, simple, problems, checkpoint=path)
    with pytest.raises(StaleCheckpointError):
        fit_problems(name, simple, problems, checkpoint=path, **change)
    path.unlink()  # the first phase's alone, as somebody would who reads one name
    try:
        (found,) = fit_problems(name, simple, problems, checkpoint=path, **change)
    except StaleCheckpointError:
        return
    (fresh,) = fit_problems(name, simple, problems, **change)
    np.testing.assert_array_equal(found.score(simple.X_test), fresh.score(simple.X_test))


def test_options_of_images_are_refused_for_numbers(fit_problems, visible):
    with pytest.raises(ValueError, match="'images' parameter of Autoencoder is for images"):
        fit_problems("autoencoder", visible, [visible.problem()], images={"latent_dim": 3})


def test_images_that_are_none_are_refused(visible_images):
    on = visible_images
    for name in ("oc-svm", "classifier"):
        brief = {"max_epochs": 1, "device": "cpu"} if name == "classifier" else {}
        with pytest.raises(ValueError, match=r"must be numbers in \[0, 1\] or bytes"):
            BASELINES[name](**brief).fit(on.X.astype(int), on.y)
        fitted = BASELINES[name](random_state=0, **brief).fit(on.X, on.y)
        with pytest.raises(ValueError, match=r"in \[0, 1\] or bytes"):
            fitted.anomaly_score(on.X.astype(float))
        with pytest.raises(ValueError, match="images of shape"):
            fitted.anomaly_score(on.X[:, :, :7])
        assert fitted.anomaly_score(on.X[:2]).shape == (2,)


@pytest.mark.parametrize("name", ["ssad-hybrid", "kde-hybrid"])
def test_unlabelled_rows_and_anomalies_alone_will_do(make, hidden, name):
    y = np.where(hidden.y == 1, 1.0, np.nan)
    by_gaps = make(name).fit(hidden.X, y).anomaly_score(hidden.X_test)
    assert np.isfinite(by_gaps).all()


def test_a_hybrid_says_that_it_is_no_stack(fit_problems, visible):
    with pytest.raises(TypeError, match="CodeDetectors"):
        fit_problems("kde-hybrid", visible, [visible.problem()])


def test_deep_sad_without_labels_is_deep_svdd(fit_problems, rows):
    (sad,) = fit_problems("deep-sad", rows, [rows.problem(n_anomalies=0)])
    (svdd,) = fit_problems("deep-svdd", rows, [rows.problem()])
    np.testing.assert_array_equal(sad.score(rows.X_test), svdd.score(rows.X_test))


def test_few_and_many_anomalies_are_one_stack_where_batches_are_half_of_them(
    fit_problems, visible
):
    for name in ("devnet", "ss-dgm"):
        reports = []
        problems = [visible.problem((0,), 3), visible.problem((0, 1))]
        fit_problems(name, visible, problems, on_epoch=reports.append)
        assert reports[-1].n_members == 3


def test_scores_do_not_depend_on_the_other_rows(fit_problems, rows):
    (fitted,) = fit_problems("deep-svdd", rows, [rows.problem((0, 1))])
    scores = fitted.score(np.concatenate([rows.X_test, rows.X]))
    np.testing.assert_allclose(scores[:, :7], fitted.score(rows.X_test[:7]), rtol=1e-6)
    backwards = fitted.score(rows.X_test[::-1])
    np.testing.assert_allclose(scores[:, : len(rows.X_test)], backwards[:, ::-1], rtol=1e-6)


@pytest.mark.parametrize("name", REQUIRED)
def test_some_need_anomalies(fit_problems, rows, name):
    with pytest.raises(LabelError, match="learns from labelled anomalies"):
        fit_problems(name, rows, [rows.problem(n_anomalies=0)])


def test_what_cannot_be_learned_from_is_refused(fit_problems, visible):
    few = Problem(normal=np.arange(1), seeds=(0, 1))
    with pytest.raises(ValueError, match="two normal rows and one seed; got 1 and 2"):
        fit_problems("autoencoder", visible, [few])


def test_training_that_diverges_is_said_to(fit_problems, visible):
    with pytest.raises(DivergenceError, match="learning_rate"):
        fit_problems("classifier", visible, [visible.problem()], learning_rate=1e30)


def test_the_rate_falls_where_it_is_told_to():
    sad = BASELINES["deep-sad"](
        max_epochs=9, milestones=(3, 6), pretrain_epochs=6, pretrain_milestones=()
    )
    rates = [sad._schedule().rate(epoch) for epoch in range(9)]
    assert rates == pytest.approx([1e-4] * 3 + [1e-5] * 3 + [1e-6] * 3)
    assert {sad._pretraining().rate(epoch) for epoch in range(6)} == {1e-4}
    default = BASELINES["classifier"](max_epochs=9)._schedule()
    assert [default.rate(epoch) for epoch in (5, 6)] == pytest.approx([1e-3, 1e-4])


@pytest.mark.parametrize("name", ["weight_decay", "pretrain_weight_decay"])
def test_weights_decay_in_both_phases(fit_problems, visible, name):
    def norm(decay):
        (fitted,) = fit_problems("deep-svdd", visible, [visible.problem()], **{name: decay})
        stack = fitted.members.stacks["encoder"]
        return sum(p.square().sum() for p in stack.parameters.values())

    assert norm(10.0) < norm(0.0)


@pytest.mark.gpu
@each()
def test_a_gpu_trains_what_a_cpu_does(fit_problems, rows, name):
    """Other random numbers, so the same to the eye: replayed, in both precisions."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    long = {"max_epochs": 12, "learning_rate": 1e-3}
    losses = {
        (device, precision): fit_problems(
            name,
            rows,
            [rows.problem((0, 1, 2))],
            device=device,
            precision=precision,
            **long,
        )[0]
        .history["loss"][-1]
        .mean()
        for device, precision in (
            ("cpu", "float32"),
            ("cuda", "float32"),
            ("cuda", "bfloat16"),
        )
    }
    expected = losses["cpu", "float32"]
    for found in losses.values():
        assert abs(found - expected) < 0.3 * abs(expected) + 0.05
