"""DADGT: 72 transformations, one classifier, and how its responses become a score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage, special, stats

from aloof.baselines import BASELINES
from aloof.baselines.dadgt import DADGT, TransformedClassifier
from aloof.baselines.wide_resnet import WideResNet
from aloof.objectives import fit_dirichlet
from aloof.training.seeds import seeded
from aloof.vision.transformations import N_TRANSFORMATIONS, transformations

BRIEF = {"depth": 10, "widen": 1, "batch_size": 32, "device": "cpu", "random_state": 0}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr("aloof.baselines.members._CHUNK", 32)


def test_there_are_72_different_transformations_and_the_first_is_none():
    sources = transformations(8)
    assert sources.shape == (N_TRANSFORMATIONS, 64)
    assert len({row.tobytes() for row in sources}) == N_TRANSFORMATIONS
    np.testing.assert_array_equal(sources[0], np.arange(64))


@pytest.mark.parametrize("side", [4, 7, 8, 28])
def test_images_are_mirrored_moved_and_turned_as_scipy_does_it(side):
    image = np.random.default_rng(0).random((side, side))
    expected = []
    step = side // 4
    for mirrored in (False, True):
        for down in (0, -step, step):
            for right in (0, -step, step):
                moved = ndimage.shift(
                    np.fliplr(image) if mirrored else image,
                    (-down, -right),
                    order=0,
                    mode="reflect",
                )
                expected += [np.rot90(moved, turns) for turns in range(4)]
    found = image.ravel()[transformations(side)].reshape(-1, side, side)
    np.testing.assert_array_equal(found, expected)


def test_those_that_move_nothing_are_the_symmetries_of_a_square():
    """Any two of them, one after the other, are a third, and each one is undone by one."""
    sources = transformations(8).reshape(2, 9, 4, 64)[:, 0].reshape(8, 64)
    known = {row.tobytes() for row in sources}
    identity = np.arange(64)
    for first in sources:
        composed = [second[first] for second in sources]
        assert {row.tobytes() for row in composed} == known
        assert sum(np.array_equal(row, identity) for row in composed) == 1
    turn, mirror = sources[1], sources[4]
    np.testing.assert_array_equal(turn[turn][turn][turn], identity)
    np.testing.assert_array_equal(mirror[mirror], identity)
    assert not np.array_equal(turn[turn], identity)


def test_the_classifier_sees_transformed_images():
    with seeded(0, torch.device("cpu")):
        network = TransformedClassifier((3, 8, 8), depth=10, widen=1).eval()
        x, which = torch.rand(5, 3, 8, 8), torch.tensor([0, 1, 17, 40, 71])
    sources = torch.from_numpy(transformations(8))
    seen = torch.stack(
        [
            image.flatten(1)[:, sources[t]].view(3, 8, 8)
            for image, t in zip(x, which, strict=True)
        ]
    )
    torch.testing.assert_close(network(x, which), network.network(2 * seen - 1))
    torch.testing.assert_close(network(x), network(x, torch.zeros(5, dtype=torch.int64)))


def test_the_network_is_the_published_one():
    """Which has 11.0 million parameters at 16-8 and 17.1 at 16-10, for ten classes."""

    def size(depth: int, widen: int) -> float:
        with torch.device("meta"), seeded(0, torch.device("cpu")):
            network = WideResNet((3, 32, 32), 10, depth=depth, widen=widen)
        return sum(p.numel() for p in network.parameters()) / 1e6

    assert round(size(16, 8), 1) == 11.0
    assert round(size(16, 10), 1) == 17.1
    with seeded(0, torch.device("cpu")):
        large = WideResNet((3, 64, 64), 72, depth=10, widen=1)
    assert large.head.in_features == 4 * 64
    with pytest.raises(ValueError, match="depth must be 10, 16, 22 or so on; got 12"):
        WideResNet((3, 32, 32), 10, depth=12, widen=1)


@pytest.mark.parametrize(("side", "width"), [(28, 256), (36, 512)])
def test_larger_images_have_a_larger_network(side, width):
    X = np.random.default_rng(0).random((4, 1, side, side), np.float32)
    fitted = DADGT(max_epochs=1, normality="softmax", device="cpu").fit(X).fitted_
    assert fitted.members.stacks["encoder"].network.network.norm.num_features == width


@pytest.fixture(scope="module")
def fitted(few_images):
    long = {"max_epochs": 60, "learning_rate": 3e-3}
    return DADGT(**BRIEF | long).fit(few_images.X, few_images.y)


def responses(fitted, images) -> np.ndarray:
    """Return probabilities ``(72, n, 72)``, without a stack."""
    stack = fitted.fitted_.members.stacks["encoder"]
    network = stack.network.eval()
    network.load_state_dict({name: value[0] for name, value in stack.state().items()})
    x = torch.from_numpy(images).float() / 255
    with torch.no_grad():
        logits = [network(x, torch.full((len(x),), t)) for t in range(N_TRANSFORMATIONS)]
    return special.softmax(torch.stack(logits).double().numpy(), -1)


def test_turned_stripes_are_found(fitted, few_images):
    loss = fitted.fitted_.history["loss"]
    assert loss[-1] < 0.8 * loss[0]  # stripes look the same in many ways
    assert few_images.auroc(fitted.anomaly_score(few_images.X_test)) > 0.9


def test_the_score_is_the_mean_of_scipys_log_densities(fitted, few_images):
    images = few_images.X_test[::8]
    seen = responses(fitted, few_images.X[few_images.y == 0])
    asked = responses(fitted, images)
    total = np.zeros(len(images))
    for own, new in zip(seen, asked, strict=True):
        log_p = torch.from_numpy(np.log(own))
        concentration = fit_dirichlet(log_p.mean(0), log_p.exp().mean(0)).numpy()
        total += [stats.dirichlet.logpdf(p / p.sum(), concentration) for p in new]
    found = fitted.anomaly_score(images)
    np.testing.assert_allclose(found, -total / N_TRANSFORMATIONS, rtol=1e-3)


def test_the_simple_score_is_the_probability_of_what_was_done(fitted, few_images):
    long = {"max_epochs": 60, "learning_rate": 3e-3}
    simple = DADGT(**BRIEF | long, normality="softmax").fit(few_images.X, few_images.y)
    asked = responses(fitted, few_images.X_test)
    right = asked[range(N_TRANSFORMATIONS), :, range(N_TRANSFORMATIONS)]
    scores = simple.anomaly_score(few_images.X_test)
    np.testing.assert_allclose(scores, 1 - right.mean(0), rtol=1e-3, atol=1e-6)
    assert few_images.auroc(scores) > 0.9


def test_members_have_densities_of_their_own(fit_problems, few_images):
    """The same alone and together, up to rounding."""
    options = {"normality": "dirichlet"}
    problems = [few_images.problem((3,)), few_images.problem((4,))]
    (both,) = fit_problems("dadgt", few_images, [few_images.problem((3, 4))], **options)
    for k, problem in enumerate(problems):
        (alone,) = fit_problems("dadgt", few_images, [problem], **options)
        found = both.members.tensors["concentration"][k]
        torch.testing.assert_close(
            found, alone.members.tensors["concentration"][0], rtol=1e-2, atol=1e-4
        )
    one, other = both.members.tensors["concentration"]
    assert not torch.allclose(one, other, rtol=0.1)


def test_engines_agree(monkeypatch, fit_problems, few_images):
    exact = few_images._replace(X=few_images.X / 255.0, X_test=few_images.X_test / 255.0)
    found = {}
    for engine in ("loop", "vmap"):

        def schedule(self, own=engine, **changes):
            return replace(super(DADGT, self)._schedule(**changes), engine=own)

        monkeypatch.setattr(DADGT, "_schedule", schedule)
        (found[engine],) = fit_problems("dadgt", exact, [exact.problem((0, 1))])
        assert found[engine].members.stacks["encoder"].engine == engine
    one, other = (found[engine].score(exact.X_test[::4]) for engine in ("loop", "vmap"))
    np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-8)


def test_a_task_has_every_pair_of_image_and_transformation(few_images):
    task = DADGT()._task(few_images.problem())
    pairs = set(zip(task.rows.tolist(), task.labels.tolist(), strict=True))
    assert len(pairs) == len(task.rows) == 40 * N_TRANSFORMATIONS
    assert task.rows_per_epoch == 40


def test_what_cannot_be_turned_is_refused(visible):
    with pytest.raises(ValueError, match=r"rows of numbers\. Use a method for tables instead"):
        BASELINES["dadgt"](device="cpu").fit(visible.X, visible.y)
    for shape in ((4, 1, 8, 6), (4, 1, 3, 3)):
        with pytest.raises(ValueError, match=f"these are {shape[2]} x {shape[3]}. Crop or"):
            BASELINES["dadgt"](device="cpu").fit(np.zeros(shape, np.float32))
